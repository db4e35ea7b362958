"""Numbers are read in every writing, with what they count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.douban.intros.factguard.number_mentions import chinese_number, number_mentions


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("120分钟", [("120", "分钟")]),
        ("１２０分", [("120", "分钟")]),
        ("一百二十分钟", [("120", "分钟")]),
        ("共二十四集，第2话", [("24", "集"), ("2", "集")]),
        ("二〇一八年", [("2018", "年")]),
        ("二零一八年", [("2018", "年")]),
        ("1,200人", [("1200", "个")]),
        ("3.5亿", [("350000000", "")]),
        ("5万公里", [("50000", "公里")]),
        ("三万五千名", [("35000", "个")]),
        ("九十年代", [("90", "年代")]),
        ("第Ⅱ部，第II季", [("2", "部"), ("2", "季")]),
        ("廿四集", [("24", "集")]),
        ("两百元", [("200", "元")]),
        ("十几岁，二十多年", [("10", "岁"), ("20", "年")]),
        ("三个、三位、三名", [("3", "个")] * 3),
        ("复仇者3", [("3", "")]),
        ("一部电影，两个人，第一次，万一", []),
        ("十分，九十分钟", [("90", "分钟")]),
        ("二〇一二", [("2012", "")]),
    ],
)
def test_what_a_text_counts(text, said):
    assert [(number.value, number.kind) for number in number_mentions(text)] == said


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("十", 10), ("十二", 12), ("二十", 20), ("一百零一", 101), ("三千零五", 3005), ("一万二千", 12_000),
        ("两亿", 200_000_000), ("一九九三", 1993), ("零", 0), ("三三十", None), ("", None), ("一" * 21, None),
    ],
)  # fmt: skip
def test_the_value_of_a_chinese_numeral(text, value):
    assert chinese_number(text) == value


@given(st.text("零〇一二两三四五六七八九十百千万亿廿卅第集年个半0123456789.,% ", max_size=60))
def test_no_heap_of_numerals_breaks_it(text):
    for number in number_mentions(text):
        assert number.value
        assert number.piece
