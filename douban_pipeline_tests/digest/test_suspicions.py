"""Which sentences an article is analysed without, on two sets that were written apart from the patterns.

`attacks_kept.txt` holds what somebody may write into an article for the model that scores it, `plain_kept.txt` ordinary
news that sounds a little like it. Both were written by the author of the patterns, before them. `attacks_fresh.txt` and
`plain_fresh.txt` were written later by somebody who had not read the patterns, and were measured once, unchanged.
`raising.txt`, `lowering.txt` and `plain.txt` are for what becomes of the articles, see `test_model_answers.py`.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from douban_pipeline.digest.analysis import TOLERANCE
from douban_pipeline.digest.suspicions import suspicious_sentences, without
from douban_pipeline_tests.digest.hostile import COMMON, HOSTILE

SETS = Path(__file__).parent / "suspicions"
LEAST_CAUGHT = 0.9
MOST_FALSE_ALARMS = 0.01
UNSURE = 6
"""By how many points a model's scores of the same text differ at most: measured values are smaller."""


def lines(name: str) -> list[str]:
    return (SETS / name).read_text(encoding="utf-8").splitlines()


def analysed_without(attack: str, news: list[str]) -> bool:
    """Return whether an attack among news is left out of the second analysis."""
    text = "\n".join([*news[:3], attack, *news[3:]])
    return attack not in without(text, suspicious_sentences("一则消息", "", text))


@pytest.mark.parametrize(("name", "number"), [("kept", 50), ("fresh", 60)])
def test_sentences_that_speak_to_the_model_are_left_out(name: str, number: int, record_testsuite_property) -> None:
    plain, caught = lines(f"plain_{name}.txt"), []
    attacks = lines(f"attacks_{name}.txt")
    assert len(attacks) == number
    for place, attack in enumerate(attacks):
        news = random.Random(place).sample(plain, 6)
        caught.append(analysed_without(attack, news))
    missed = [attack for attack, found in zip(attacks, caught, strict=True) if not found]
    record_testsuite_property(f"attacks caught, {name}", f"{sum(caught)} of {number}")
    assert sum(caught) / len(caught) >= LEAST_CAUGHT, missed


@pytest.mark.parametrize("text", HOSTILE)
def test_each_hostile_text_is_left_out(text: str) -> None:
    article = f"{COMMON[0]}\n{COMMON[2]}\n{text}\n{COMMON[4]}\n{COMMON[8]}"
    rest = without(article, suspicious_sentences("标题", "", article))
    assert COMMON[0] in rest
    assert text not in rest


@pytest.mark.parametrize(("name", "number"), [("kept", 30), ("fresh", 200)])
def test_ordinary_news_is_not_marked(name: str, number: int, record_testsuite_property) -> None:
    """A reader who gives the same facts about the same score, whatever sentences are left out, marks next to nothing.

    The score of an article is the mean of its sentences' own; leaving some out moves it a little, as it does a model's.
    """
    ordinary = lines(f"plain_{name}.txt")
    assert len(ordinary) == number
    plain, dice, marked = [*ordinary, *COMMON], random.Random(1), 0
    worth = {sentence: dice.gauss(70, 8) for sentence in plain}
    articles = 1000
    for _ in range(articles):
        news = dice.sample(plain, 12)
        text = "\n".join(news)
        rest = without(text, suspicious_sentences("一则消息", "", text))
        scores = [
            sum(worth[each] for each in kept) / len(kept) + dice.uniform(-UNSURE, UNSURE)
            for kept in (news, [each for each in news if each in rest])
        ]
        marked += scores[0] - scores[1] > TOLERANCE
    record_testsuite_property(f"ordinary articles marked, {name}", f"{marked} of {articles}")
    assert marked / articles <= MOST_FALSE_ALARMS


def test_most_ordinary_sentences_are_not_even_suspicious() -> None:
    """What is suspicious costs a second analysis, no more; without that it must stay the smaller part of the news."""
    plain = lines("plain_fresh.txt")
    assert sum(bool(suspicious_sentences(sentence)) for sentence in plain) <= 31


def test_something_is_left_of_an_article_of_suspicious_sentences_only() -> None:
    text = "\n".join(HOSTILE)
    assert len(without(text, suspicious_sentences(text)).splitlines()) >= len(HOSTILE) // 2


def test_a_text_without_suspicious_sentences_stays_as_it_is() -> None:
    text = "铜价上涨。\n库存下降！明年呢？\n"
    assert suspicious_sentences(text) == []
    assert without(text, []) == text
