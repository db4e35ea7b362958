"""Whatever a text is made of, its pieces fit, are valid, and together are the text."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.core.messages.message_parts import cut, json_width, plain, split, utf8_width, utf16_width
from douban_pipeline.core.messages.platforms import PLATFORMS, READ_MORE, UNLIMITED, Robot
from douban_pipeline.core.messages.robots import RobotChannel
from douban_pipeline.core.messages.types import Message

WIDTHS = (utf8_width, json_width, utf16_width)
LETTERS = st.one_of(st.sampled_from('字😀a\n"\\é\t\x01'), st.characters(exclude_categories=["Cs"]))
TEXTS = st.text(LETTERS, max_size=400)
AT = datetime(2026, 11, 20, 14, tzinfo=UTC)
URL = "https://example.com/daily/2026-11-20"


@given(text=TEXTS, most=st.integers(8, 80), width=st.sampled_from(WIDTHS))
def test_pieces_fit_and_together_are_the_text(text: str, most: int, width) -> None:
    pieces = split(text, most, width)
    assert "".join(pieces) == text
    assert all(width(piece) <= most for piece in pieces)
    for piece in pieces:
        assert piece.encode().decode() == piece


@given(text=TEXTS, most=st.integers(16, 80), width=st.sampled_from(WIDTHS))
def test_what_is_cut_is_a_beginning_that_fits(text: str, most: int, width) -> None:
    short = cut(text, most, width)
    assert width(short) <= most
    assert short == text or text.startswith(short.removesuffix("…"))


def test_a_limit_below_one_letter_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="less than one character"):
        split("字", 2)


def test_pieces_end_at_lines_where_that_fills_half_of_them() -> None:
    assert split("一二\n三四五六", 15) == ["一二\n", "三四五六"]
    assert split("一\n二三四五六七八", 15) == ["一\n二三四", "五六七八"]


def test_letters_that_utf8_does_not_have_become_question_marks() -> None:
    assert plain("a\ud800\x00<b>") == "a?＜b＞"


@pytest.mark.parametrize("kind", sorted(set(PLATFORMS) - {"webhook"}))
@given(
    text=st.lists(st.text(LETTERS, max_size=120), max_size=12).map("\n".join),
    title=st.text(LETTERS, max_size=120),
    repeat=st.sampled_from([1, 40, 150]),
)
def test_every_part_fits_its_platform_and_nothing_is_lost(kind: str, text: str, title: str, repeat: int) -> None:
    platform = PLATFORMS[kind]
    channel = RobotChannel(kind, platform, Robot("https://example.com/key-0123456"))
    message = Message(title, text * repeat, "report", "c", AT, url=URL, key="k")
    parts = channel.parts(message)
    assert all(platform.width(platform.counted(part)) <= platform.most for part in parts)
    assert "".join(part.text for part in parts) == plain(message.text)
    assert [part.number for part in parts] == list(range(1, len(parts) + 1))
    assert len({part.key for part in parts}) == len(parts)
    for part in parts:
        content = platform.request(channel.robot, part, AT).content
        assert URL in content.decode("utf-8", "strict")
        if len(parts) > 1:
            assert part.title.endswith(f"({part.number}/{len(parts)})")


def test_five_thousand_letters_are_four_messages_of_wecom() -> None:
    channel = RobotChannel("wecom", PLATFORMS["wecom"], Robot("https://example.com"))
    parts = channel.parts(Message("日报", "字" * 5000, "report", "c", AT, url=URL))
    assert [part.title for part in parts] == [f"日报 ({number}/4)" for number in range(1, 5)]
    assert all(f"[{READ_MORE}]({URL})" in PLATFORMS["wecom"].counted(part) for part in parts)


def test_a_webhook_of_ones_own_gets_the_whole_text_unchanged() -> None:
    assert PLATFORMS["webhook"].most == UNLIMITED
    channel = RobotChannel("own", PLATFORMS["webhook"], Robot("https://example.com"))
    [part] = channel.parts(Message("t", "<b>\n" * 5000, "report", "c", AT))
    assert part.message.text == "<b>\n" * 5000
