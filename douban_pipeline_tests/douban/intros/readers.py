"""Simulated readers of the second reading. None of them ever objects: what they let through is up to our code."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any

from douban_pipeline.douban.intros.factguard import sentences_of

Reader = Callable[[str, str, Random], list[list[str]]]
"""Returns what is quoted for each sentence of a text, from its text and source."""

_CLAUSE = re.compile(r"[^，。、：；！？\s“”「」《》]{4,}")
_SIGNS = re.compile(r"\W")


def one(text: str, source: str, random: Random) -> list[list[str]]:
    """The lazy one: a passage that exists, the same for every sentence."""
    quote = random.choice(_CLAUSE.findall(source))
    return [[quote] for _ in sentences_of(text)]


def at_random(text: str, source: str, random: Random) -> list[list[str]]:
    """The sloppy one: one or two passages that exist, whichever."""
    clauses = _CLAUSE.findall(source)
    return [random.sample(clauses, min(len(clauses), random.choice([1, 1, 2]))) for _ in sentences_of(text)]


def nearest(text: str, source: str, random: Random) -> list[list[str]]:
    """The honest one that cannot judge: the passages most like the sentence, at most four."""
    clauses, quoted = _CLAUSE.findall(source), []
    for sentence in sentences_of(text):
        left, quotes = _pieces(sentence), list[str]()
        while len(quotes) < 4:
            best = max(clauses, key=lambda clause: (len(_pieces(clause) & left), -len(clause)))
            if len(_pieces(best) & left) < (2 if quotes else 1):
                break
            quotes.append(best)
            left = left - _pieces(best)
        quoted.append(quotes or clauses[:1])
    return quoted


def everything(text: str, source: str, random: Random) -> list[list[str]]:
    """The one that quotes the whole source for every sentence."""
    return [[source] for _ in sentences_of(text)]


READERS: dict[str, Reader] = {"one": one, "random": at_random, "nearest": nearest, "everything": everything}


def answer(quoted: list[list[str]]) -> dict[str, Any]:
    """Return the answer of a reader that finds a basis for everything."""
    return {
        "sentences": [
            {"number": number, "basis": "synopsis", "quotes": quotes, "problem": ""}
            for number, quotes in enumerate(quoted, start=1)
        ]
    }


def _pieces(text: str) -> set[str]:
    bare = _SIGNS.sub("", text)
    return {*bare, *(bare[at : at + 2] for at in range(len(bare) - 1))}
