"""Restores titles that a source split at the first space of Douban's joined name.

Douban shows ``空之境界 俯瞰风景 劇場版 空の境界 第一章 俯瞰風景``: the Chinese title, then the original title. A source
that splits at the first space puts 俯瞰风景 into the original title, and six films get the same title.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rapidfuzz import fuzz

from douban_pipeline.matching.text import HAN, normalise, simplify

_CHINESE = re.compile(rf"[\W\d_A-Za-z]*[{HAN}][\W\d_{HAN}A-Za-z]*")
_ASIAN = re.compile(rf"[{HAN}\u3040-\u30ff\u31f0-\u31ff\uac00-\ud7af]")
_OTHER_LETTERS = re.compile(rf"[^\W\d_{HAN}]")
_FOREIGN = frozenset({"映画", "劇場版"})
"""Words that begin Japanese titles and are written like Chinese ones."""

_SAME = 60.0
"""Similarity, of 100, from which a word of the original repeats the title instead of continuing it."""


@lru_cache(maxsize=65536)
def rejoin(title: str, original: str) -> tuple[str, str]:
    """Return title and original title, with the title's words moved back from the beginning of the original.

    Nothing is moved unless the original continues in another script. Simplified Chinese words belong to the title if
    they do not repeat it; Latin words if Chinese ones follow, or if they occur again later in the original.
    """
    words = original.split()
    if len(words) < 2:
        return title, original
    taken = _chinese(title, words) or _repeated(title, words)
    rest = " ".join(words[taken:])
    if not taken or not _OTHER_LETTERS.search(rest):
        return title, original
    return f"{title} {' '.join(words[:taken])}", rest


def _chinese(title: str, words: list[str]) -> int:
    """Return the number of words up to the last simplified Chinese one that precedes any other Asian word."""
    name = normalise(title)
    taken = 0
    for place, word in enumerate(words, start=1):
        if not _ASIAN.search(word):
            continue
        folded = normalise(word)
        if word in _FOREIGN or not _CHINESE.fullmatch(word) or simplify(word) != word or (taken and folded == name):
            break
        if not taken and (folded in name or name in folded or fuzz.ratio(folded, name) >= _SAME):
            break
        taken = place
    return taken


def _repeated(title: str, words: list[str]) -> int:
    """Return how many leading Latin words recur after an Asian one: ``extra chorus 空の境界 extra chorus``."""
    first = next((place for place, word in enumerate(words) if _ASIAN.search(word)), 0)
    lead, rest = normalise("".join(words[:first])), normalise("".join(words[first:]))
    return first if len(lead) > 1 and lead in rest and lead not in normalise(title) else 0
