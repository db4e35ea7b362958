"""The loose values of the ``vod_*`` shape."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.douban.sources import answer_values as values


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("甲,乙", ("甲", "乙")),
        ("甲/乙", ("甲", "乙")),
        ("甲 / 乙", ("甲", "乙")),
        ("甲、乙，丙|丁", ("甲", "乙", "丙", "丁")),
        ("安东尼·罗素,乔·罗素", ("安东尼·罗素", "乔·罗素")),
        ("Anthony Russo / Joe Russo", ("Anthony Russo", "Joe Russo")),
        ("Tom Hanks/Robin Wright", ("Tom Hanks", "Robin Wright")),
        ("甲,,乙,", ("甲", "乙")),
        ("甲,甲,乙", ("甲", "乙")),
        ("内详", ()),
        ("未知主演,甲,N/A,暂无", ("甲",)),
        ("不详", ()),
        ("", ()),
        (None, ()),
        (7, ("7",)),
        (True, ()),
        (["甲", "乙 丙", ""], ("甲", "乙 丙")),
        ([{"name": "甲"}, {"id": 1}], ("甲",)),
        ("汤姆&#039;s,A &amp; B", ("汤姆's", "A & B")),
        ("A &amp;amp; B", ("A & B",)),
        ("2018-05-11(中国大陆) / 2018-04-27(美国,加拿大)", ("2018-05-11(中国大陆)", "2018-04-27(美国,加拿大)")),
        ("2018-05-11(中国大陆),2018-04-23(洛杉矶首映)", ("2018-05-11(中国大陆)", "2018-04-23(洛杉矶首映)")),
        ("甲(乙,丙", ("甲(乙", "丙")),
        ("<a href='x'>甲</a>,乙", ("甲", "乙")),
    ],
)
def test_names(value: object, expected: tuple[str, ...]) -> None:
    assert values.names(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("复联3,复仇者联盟：无限之战(台)", ("复联3", "复仇者联盟：无限之战(台)")),
        ("复联3/复仇者联盟：无限之战(台)", ("复联3", "复仇者联盟：无限之战(台)")),
        ("月黑高飞(港) / 刺激1995(台)", ("月黑高飞(港)", "刺激1995(台)")),
        ("Fate/Zero / 命运之夜前传", ("Fate/Zero", "命运之夜前传")),
        ("Face/Off,变脸", ("Face/Off", "变脸")),
        ("蜘蛛侠：英雄远征(港/台)", ("蜘蛛侠：英雄远征(港/台)",)),
        ("你好，李焕英,Hi, Mom", ("你好，李焕英", "Hi, Mom")),
        ("Goodbye, My Friend", ("Goodbye, My Friend",)),
        ("Goodbye,My Friend", ("Goodbye", "My Friend")),
        ("再见, My Friend", ("再见", "My Friend")),
        ("Tom &amp; Jerry, Movie", ("Tom & Jerry, Movie",)),
        ("我,机器人 / Goodbye, My Friend / 甲、乙", ("我,机器人", "Goodbye, My Friend", "甲、乙")),
        ("智能叛变(台), 机械公敌", ("智能叛变(台)", "机械公敌")),
        ("甲、乙", ("甲", "乙")),
        (["Good, Bad", "甲、乙"], ("Good, Bad", "甲、乙")),
    ],
)
def test_titles(value: object, expected: tuple[str, ...]) -> None:
    assert values.titles(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (142.0, 142),
        ("120分钟(国际版) / 118分钟", 120),
        ("120分钟 / 2小时5分(加长版)", 120),
        ("149 min", 149),
        ("单集片长: 45分钟", 45),
        ("95:12", 95),
        (None, None),
        ("未知", None),
        ([142], None),
    ],
)
def test_minutes(value: object, expected: int | None) -> None:
    assert values.minutes(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2018-2019", 2018),
        ("0", None),
        (0, None),
        ("", None),
        ("1765", None),
        (None, None),
    ],
)
def test_year(value: object, expected: int | None) -> None:
    assert values.year(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("8.4", 8.4),
        (8.4, 8.4),
        (9, 9.0),
        ("8.4分", 8.4),
        ("10.0", 10.0),
        ("0.0", None),
        (0, None),
        ("", None),
        (None, None),
        ("84", None),
        ("-1", None),
        ("暂无评分", None),
    ],
)
def test_rating(value: object, expected: float | None) -> None:
    assert values.rating(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("24", 24),
        (24, 24),
        ("全24集", 24),
        ("0", None),
        ("", None),
        (None, None),
        ("更新至12集/24集", None),
        ("-", None),
    ],
)
def test_count(value: object, expected: int | None) -> None:
    assert values.count(value) == expected


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=60),
    st.lists(st.text(max_size=9), max_size=4),
)


@given(ANYTHING)
def test_no_value_breaks_a_reader(value: object) -> None:
    for reader in (values.names, values.titles):
        items = reader(value)
        assert all(item == values.clean(item) for item in items if "&" not in item and "<" not in item)
        assert len(items) == len(set(items))
        assert "" not in items
    for found, least, most in (
        (values.minutes(value), 1, 1440),
        (values.year(value), 1800, 2099),
        (values.rating(value), 0.001, 10),
        (values.count(value), 1, 20_000),
    ):
        assert found is None or least <= found <= most
