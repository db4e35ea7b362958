"""Moments as people type them: in the site's zone, or with an offset, and never a guess."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from douban_pipeline.core.clock import moment_in
from douban_pipeline.douban.undo.revert_request import listed, looked_for
from douban_pipeline.douban.writes.revert_selection import ChangeSelection

SHANGHAI, BERLIN = ZoneInfo("Asia/Shanghai"), ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "zone", "moment"),
    [
        ("2026-11-20 08:00", SHANGHAI, datetime(2026, 11, 20, 0, 0, tzinfo=UTC)),
        ("  2026-11-20 08:00:30  ", SHANGHAI, datetime(2026, 11, 20, 0, 0, 30, tzinfo=UTC)),
        ("2026-11-20T08:00", SHANGHAI, datetime(2026, 11, 20, 0, 0, tzinfo=UTC)),
        ("2026-11-20 08:00:30.250", SHANGHAI, datetime(2026, 11, 20, 0, 0, 30, 250_000, tzinfo=UTC)),
        ("2026-11-20T08:00:00+08:00", BERLIN, datetime(2026, 11, 20, 0, 0, tzinfo=UTC)),
        ("2026-11-20T08:00Z", SHANGHAI, datetime(2026, 11, 20, 8, 0, tzinfo=UTC)),
        ("2026-07-20 08:00", BERLIN, datetime(2026, 7, 20, 6, 0, tzinfo=UTC)),
        ("2026-10-25 02:30+01:00", BERLIN, datetime(2026, 10, 25, 1, 30, tzinfo=UTC)),
        ("", SHANGHAI, None),
        ("   ", SHANGHAI, None),
    ],
)
def test_a_moment(text, zone, moment):
    assert moment_in(text, zone) == moment


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("昨天", "不是时间"),
        ("2026-11-31 08:00", "不是时间"),
        ("08:00", "不是时间"),
        ("2026/11/20 08:00", "不是时间"),
        ("2026-11-20", "没有写到分钟"),
        ("2026-11-20 08", "没有写到分钟"),
        ("2026-11-20+08:00", "没有写到分钟"),
        ("2026-11-20-08:00", "没有写到分钟"),
        ("0001-01-01 00:00", "不是时间"),
        ("9999-12-31T23:59-08:00", "不是时间"),
        ("2026-10-25 02:30", "时钟调整"),
        ("2026-03-29 02:30", "时钟调整"),
    ],
)
def test_what_is_no_moment_or_not_one_for_certain(text, why):
    with pytest.raises(ValueError, match=why):
        moment_in(text, BERLIN)


def test_what_was_looked_for_is_reported_in_words():
    since, until = moment_in("2026-11-20 08:00", SHANGHAI), moment_in("2026-11-20 09:00:30", SHANGHAI)
    selection = ChangeSelection((5, 6), "b", "r", (7,), (8,), "小李", "rules-2", since=since, until=until)
    reported = looked_for(selection, SHANGHAI).replace("\u00a0", " ")
    assert reported == (
        "变更 5、6；每部影片的上一步，影片 7；决定 8；批次 b；运行 r；审核员 小李；规则版本 rules-2；"
        "自 2026-11-20 08:00:00；2026-11-20 09:00:30 之前"
    )
    assert listed(range(1, 31)).endswith("、20 等 30 个")
