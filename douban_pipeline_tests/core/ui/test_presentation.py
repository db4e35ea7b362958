"""Tables for people: what came from outside is text in a cell, whatever it holds."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.core.ui.presentation import Markdown, counted, local_time, panel, subject_link, table
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.matching import Status


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("a & b", "a &amp; b"),
        ("甲|乙", "甲\\|乙"),
        ("甲\n乙\r\n\t丙", "甲 乙 丙"),
        ("`rm -rf`", "\\`rm -rf\\`"),
        ("*粗* _斜_", "\\*粗\\* \\_斜\\_"),
        ("[点我](javascript:alert(1))", "\\[点我\\](javascript:alert(1))"),
        ("\\|", "\\\\\\|"),
        ("", ""),
        (None, ""),
        (97.25, "97.2"),
        (0, "0"),
        (True, "True"),
        ("  007  ", "007"),
        ("1e5", "1e5"),
        (Markdown("**已经是**"), "**已经是**"),
    ],
)
def test_a_cell_is_text(value, shown):
    line = table([{"列": value, "尾": "|"}]).splitlines()[2]
    assert line.startswith(f"| {shown}")
    assert line.removeprefix(f"| {shown}").split() == ["|", "\\|", "|"]


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=5))
def test_no_text_makes_a_row_or_a_column_more(rows):
    shown = table([{"a": first, "b": second} for first, second in rows])
    lines = shown.split("\n")
    assert len(lines) == len(rows) + 2
    for line in lines:
        bare = line.replace("\\\\", "").replace("\\|", "")
        assert bare.count("|") == 3
        assert "<" not in line
        assert "`" not in bare.replace("\\`", "")


def test_a_long_table_says_what_it_leaves_out():
    rows = [{"n": n} for n in range(25)]
    shown = table(rows)
    assert shown.endswith("\n\n… and 5 more")
    assert shown.count("\n| ") == 20
    assert "more" not in table(rows, most=25)


def test_what_is_left_out_is_said_in_the_language_of_the_heads():
    assert table([{"影片": "Film", "": 1}] * 3, most=2).endswith("\n\n…… 另有 1 条")
    assert table([{"title": "影片"}] * 3, most=2).endswith("\n\n… and 1 more")
    assert table([]) == "—"


def test_links_and_times():
    assert subject_link(1_292_052) == "[1292052](https://movie.douban.com/subject/1292052/)"
    assert subject_link(0) == ""
    moment = datetime(2026, 3, 1, 20, 30, 59, tzinfo=UTC)
    assert local_time(moment, ZoneInfo("Asia/Shanghai")) == "2026-03-02\u00a004:30"
    assert local_time(None, ZoneInfo("Asia/Shanghai")) == ""


def test_counts_are_reported_by_kind() -> None:
    kinds = Counter([ReviewStatus.REVIEW, Status.NOT_FOUND, ReviewStatus.REVIEW])
    assert counted("videos judged", kinds) == "3 videos judged (2 REVIEW, 1 NOT_FOUND)"
    assert counted("videos judged", Counter()) == "0 videos judged"


LONG = "搜索来源连续三次返回空结果，已暂停一小时；到期后先放行一次试探"


def test_what_has_room_in_an_assets_page_is_a_table():
    rows = [{"影片": "甲", "条目": Markdown(f"[1292052](https://example.org/{'x' * 200})")} for _ in range(4)]
    assert panel(rows) == table(rows)
    assert panel([]) == "—"


def test_what_has_none_is_a_list_of_its_rows():
    rows = [
        {"来源": "豆瓣", "状态": LONG, "上限": "0 / 30", "配额": ""},
        {"来源": "SearXNG", "状态": "放行", "上限": "0 / 20", "配额": "9 | 10"},
    ]
    assert panel(rows).split("\n") == [
        f"1. **豆瓣**　状态：{LONG}；上限：0 / 30",
        "2. **SearXNG**　状态：放行；上限：0 / 20；配额：9 \\| 10",
    ]
    assert panel(rows * 20, most=3).endswith("\n\n…… 另有 37 条")


def test_long_text_stands_under_the_table_of_a_dialog():
    rows = [{"影片": "甲", "原因": "放行", "次数": 3, "说明": LONG * 2} for _ in range(12)]
    rows[1]["说明"] = ""
    shown = panel(rows)
    lines = shown.split("\n")
    assert [cell.strip() for cell in lines[0].strip("|").split("|")] == ["#", "影片", "原因", "次数"]
    assert lines[2].split("|")[1].strip() == "1"
    assert f"\n\n- **1** 说明：{LONG * 2}\n- **3** 说明：{LONG * 2}\n" in shown
    assert "**2**" not in shown
    several = [{"影片": "甲" * 20, "原因": LONG, "怎么办": LONG} for _ in range(9)]
    assert f"- **9** 原因：{LONG}；怎么办：{LONG}" in panel(several)
    short = [{"甲": "一" * 20, "乙": "一" * 12, "丙": "一" * 12, "丁": "一" * 12} for _ in range(20)]
    assert panel(short) == table(short), "nothing in it is long"
