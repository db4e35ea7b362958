"""Words of lists are found however they are disguised, and plain comments stay as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from douban_pipeline.comments.review import CommentDraft, SafetyReview, WordLists
from douban_pipeline.comments.types import Actor, CommentStatus
from douban_pipeline.comments.word_forms import WordFinder, clean
from douban_pipeline_tests.comments.stage import stage, user

CASES = json.loads((Path(__file__).parent / "data" / "words.json").read_text(encoding="utf-8"))


def test_disguised_words_are_found_and_plain_comments_are_not_changed():
    review = SafetyReview(WordLists(reviewed=tuple(CASES["words"])))
    masking = SafetyReview(WordLists(masked=tuple(CASES["words"])))
    assert len(CASES["hostile"]) == len(CASES["plain"]) == 500
    missed = [
        each
        for each in CASES["hostile"]
        if review.judge(CommentDraft(each["text"], "u:2")).status != CommentStatus.REVIEW
    ]
    broken = []
    for text in CASES["plain"]:
        judged, masked = review.judge(CommentDraft(text, "u:2")), masking.judge(CommentDraft(text, "u:2"))
        if judged.refusal or judged.reasons or judged.text != text or masked.text != text:
            broken.append((text, judged, masked.text))
    assert broken == []
    assert len(missed) <= 10, missed


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\u200b",
        "\u3164\u115f\uffa0",
        "\u2066\u2069",
        "\U000e0061\U000e0062",
        "\u034f\u034f",
        "\ufe0f",
        "\u2800 \u2800",
        "\u0301",
    ],
)
def test_a_comment_that_nobody_can_see_is_empty(text):
    assert clean(text) == ""
    assert SafetyReview().judge(CommentDraft(text, "u:2")).refusal == "内容为空"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "👨\u200d👩\u200d👧 ❤\ufe0f 1\ufe0f\u20e3 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
            None,
        ),
        ("赌\u200d博", "赌博"),
        ("好\ufe0f看", "好看"),
        ("👍\u200d", "👍"),
        ("a\u2067b\u2069", "ab"),
        ("🎬\U000e0061看", "🎬看"),
    ],
)
def test_emoji_stay_whole_and_other_invisible_characters_go(text, kept):
    assert clean(text) == (text if kept is None else kept)


@pytest.mark.parametrize(
    ("words", "text", "spans"),
    [
        (["坏词"], "一个坏.词！", [(2, 5)]),
        (["t.me"], "see T.me/x, not time", [(4, 8)]),
        (["賭博"], "赌博", [(0, 2)]),
        (["casino"], "ⓒⓐⓢⓘⓝⓞ", [(0, 6)]),
        (["vip1"], "VIP1", [(0, 4)]),
    ],
)
def test_words_are_found_where_they_stand(words, text, spans):
    assert WordFinder(words).spans(text) == spans


def test_guests_of_one_address_do_not_publish_the_same_text_twice(sqlite_url):
    guests = [Actor(f"g:{number}") for number in range(3)]
    with stage(sqlite_url) as place:
        first = place.publish(guests[0], "加油", ip="192.0.2.1")
        again = place.publish(guests[1], "加\u2066油", ip="192.0.2.1")
        place.work()
        later = place.publish(guests[1], " 加油 ", ip="192.0.2.1")
        elsewhere = place.publish(guests[2], "加油", ip="192.0.2.2")
        known = place.publish(user(2), "加油", ip="192.0.2.1")
        place.work()
        assert [place.exists(number) for number in (first, again, later, elsewhere, known)] == [
            True,
            False,
            False,
            True,
            True,
        ]
        place.clock.advance(hours=2)
        place.publish(guests[0], "加油", ip="192.0.2.1")
        place.work()
        assert len(place.roots()) == 4
