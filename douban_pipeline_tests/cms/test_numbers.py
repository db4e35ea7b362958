"""Years, running times, episode counts and ratings, as sites and sources write them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from douban_pipeline.cms.numbers import episodes_of, minutes_of, score, year_of


@pytest.mark.parametrize(
    ("value", "year"),
    [
        ("2018", 2018),
        (2019, 2019),
        ("2019-2020", 2019),
        ("2018年", 2018),
        ("2018-05-11(中国大陆)", 2018),
        ("20180511", 2018),
        ("２０１８", 2018),
        ("2023-03-29(泰国)", 2023),
        ("1895", 1895),
        ("0", None),
        (0, None),
        ("", None),
        (None, None),
        ("1080", None),
        ("9999", None),
        ("12018", None),
        ("未知", None),
    ],
)
def test_years(value: str | int | None, year: int | None) -> None:
    assert year_of(value) == year


@pytest.mark.parametrize(
    ("value", "minutes"),
    [
        ("142", 142),
        (142, 142),
        ("142分钟", 142),
        ("142 min", 142),
        ("１４２分鐘", 142),
        ("120分钟/118分钟", 120),
        ("120/118", 120),
        ("118分钟(中国大陆)", 118),
        ("01:35:00", 95),
        ("00:23:40", 24),
        ("24:10", 24),
        ("05:30", 6),
        ("04:51", None),
        ("01:35", None),
        ("1小时35分钟", 95),
        ("2小时", 120),
        ("1.5小时", 90),
        ("95′", 95),
        ("9" * 5000, None),
        ("9" * 5000 + "分钟", None),
        ("1h35m", 95),
        ("PT2H22M", 142),
        ("7分30秒", 8),
        ("每集45分钟", 45),
        ("", None),
        ("0", None),
        (None, None),
        ("12集", None),
        ("99999", None),
    ],
)
def test_running_times(value: str | int | None, minutes: int | None) -> None:
    assert minutes_of(value) == minutes


@pytest.mark.parametrize(
    ("total", "remarks", "episodes"),
    [
        (0, "全76集", 76),
        (0, "全13集", 13),
        (0, "共24集完结", 24),
        (0, "24集全", 24),
        (0, "第12集完结", 12),
        (0, "已完结 全24话", 24),
        (0, "完结12集", 12),
        (0, "全12集 OVA", 12),
        (0, "全１２話", 12),
        (0, "全52期", 52),
        (0, "全二十四集", 24),
        (0, "全1-24集", 24),
        (0, "更新至24集完结", 24),
        (0, "更新至12集/共24集", 24),
        (0, "更新至41集", None),
        (0, "更新至【48】", None),
        (0, "更新至第08集", None),
        (0, "第3集 全网首播", None),
        (0, "12集完整版", None),
        (0, "HD中字", None),
        (0, "BD1080P", None),
        (0, "完结", None),
        (0, "", None),
        (0, None, None),
        (None, "全集", None),
        (24, "更新至12集", 24),
        ("24", "", 24),
        ("0", "全5集", 5),
        ("9" * 5000, "全5集", 5),
        (0, "全0集", None),
    ],
)
def test_episode_counts(total: str | int | None, remarks: str | None, episodes: int | None) -> None:
    assert episodes_of(total, remarks) == episodes


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("9.7", "9.7"),
        (9.75, "9.8"),
        (8.25, "8.3"),
        ("9.96", "10.0"),
        (10, "10.0"),
        (Decimal("8.1"), "8.1"),
        ("0.0", "0.0"),
        ("", "0.0"),
        (None, "0.0"),
        ("暂无评分", "0.0"),
        (97, "0.0"),
        (-1, "0.0"),
        ("NaN", "0.0"),
        ("inf", "0.0"),
    ],
)
def test_scores(value: str | float | Decimal | None, stored: str) -> None:
    assert str(score(value)) == stored
