"""What is read quickly is read as it would be slowly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.cms import values as stored
from douban_pipeline.douban.sources import answer_values as values

LOOSE = st.text(
    alphabet=" ,，、|/;；&#<>ltamp()（）[]【】《》内详未知无暂N/anA0-.…*bB\u200b\n\t39quot更多待定不其他", max_size=24
)


@given(LOOSE)
def test_a_placeholder_is_known_by_the_whole_text(text):
    assert stored.is_placeholder(text) == (stored._NOTHING.fullmatch(text.casefold()) is not None)


@pytest.mark.parametrize(
    "text", ["内详", "未知主演", "N/A", "n/a", "NULL", "unknown", "Undefined", "—", "...", "0", "暂无"]
)
def test_placeholders_are_found_in_any_case(text):
    assert stored.is_placeholder(text)


@given(LOOSE, st.sampled_from([(",，、|;；", True), (",|", False), (",|，、", False)]))
def test_lists_are_split_as_if_each_piece_were_cleaned(text, how):
    separators, bare_slash = how
    listed = values._NOT_AVAILABLE.sub("", values.clean(text))
    pieces = (values.clean(piece) for piece in values._split(listed, separators, bare_slash=bare_slash))
    expected = tuple(dict.fromkeys(piece for piece in pieces if piece))
    assert values._items(text, separators, bare_slash=bare_slash) == expected
