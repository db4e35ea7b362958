"""Names of people: the same person under two spellings, and how far two lists overlap.

A Chinese name is compared letter by letter after folding. A transliterated one (阿尔伯特·芬尼 / 艾伯特·芬尼)
varies with the translator and gets a similarity test. Names in different scripts cannot be compared at all:
they say nothing, neither for nor against.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from rapidfuzz import fuzz

from douban_pipeline.matching.text import HAN, narrow, normalise, script

SAME = 0.8
"""Two transliterations at least this alike are one person."""

MAYBE = 0.6
"""Between this and :data:`SAME` nobody can tell."""

_DOTS = re.compile(r"[·・•‧∙.\s]+")
_HAN_THEN_LATIN = re.compile(rf"^(?P<han>[{HAN}·・•‧∙\-\s]{{2,}}?)\s+(?P<latin>[A-Za-z\u00c0-\u024f][^{HAN}]*)$")
_ROLE = re.compile(r"\s*[(（\[【].*$|\s*(?:饰|as)\s.*$")


@dataclass(frozen=True, slots=True)
class Overlap:
    """How two lists of people agree.

    Attributes:
        matched: People on both lists.
        doubtful: Pairs whose spelling is too close for a disagreement and too far for an agreement.
        left: People of the first list that could be compared with anyone of the second.
        right: The same the other way round.
    """

    matched: int
    doubtful: int
    left: int
    right: int

    @property
    def agree(self) -> bool | None:
        """True with a common person, False when comparable lists share nobody, None when nothing can be said."""
        if self.matched:
            return True
        return None if self.doubtful or not (self.left and self.right) else False


@dataclass(frozen=True, slots=True)
class _Name:
    folded: str
    script: str
    parts: tuple[str, ...]

    @property
    def transliterated(self) -> bool:
        return self.script == "latin" or len(self.parts) > 1 or len(self.folded) >= 5


@lru_cache(maxsize=65536)
def _spellings(name: str) -> tuple[_Name, ...]:
    """The ways one entry writes a person: 白井悠介 Yusuke Shirai is two."""
    text = _ROLE.sub("", narrow(name)).strip() or narrow(name)
    mixed = _HAN_THEN_LATIN.match(text)
    found = []
    for piece in (mixed["han"], mixed["latin"]) if mixed else (text,):
        kind = script(piece)
        # Two Chinese characters with a space between (王 菲) are one name, not two parts.
        parts = tuple(part for part in map(normalise, _DOTS.split(piece)) if part)
        if kind == "han" and all(len(part) == 1 for part in parts):
            parts = ("".join(parts),)
        if parts:
            found.append(_Name("".join(parts), kind, parts))
    return tuple(found)


def _pair(a: _Name, b: _Name) -> float | None:
    if a.script != b.script:
        return None
    if a.folded == b.folded:
        return 1.0
    if not (a.transliterated and b.transliterated):
        # One letter of a short Chinese name is another person; kana and hangul are as exact.
        return 0.0
    if a.script == "latin" and sorted(a.parts) == sorted(b.parts):
        return 1.0
    ratio = fuzz.ratio(a.folded, b.folded) / 100
    if len(a.parts) > 1 and len(b.parts) > 1:
        # Translators differ within a name (阿尔伯特/艾伯特), families share the last one: both ends must be alike.
        ends = [fuzz.ratio(a.parts[end], b.parts[end]) / 100 for end in (0, -1)]
        if min(ends) < 0.5:
            return min(ratio, SAME - 0.01)
        return SAME if sum(ends) / 2 >= 0.78 and ratio < SAME else ratio
    short, long = sorted((a, b), key=lambda name: len(name.parts))
    if len(short.parts) == 1 < len(long.parts) and short.folded in (long.parts[0], long.parts[-1]):
        return max(ratio, MAYBE)
    return ratio


@lru_cache(maxsize=131072)
def likeness(a: str, b: str) -> float | None:
    """Return how alike two names are, 0 to 1; None when their scripts differ."""
    known = [value for x in _spellings(a) for y in _spellings(b) if (value := _pair(x, y)) is not None]
    return max(known, default=None)


@lru_cache(maxsize=16384)
def _folded_set(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(spelling.folded for name in names for spelling in _spellings(name))


@lru_cache(maxsize=16384)
def overlap(a: tuple[str, ...], b: tuple[str, ...]) -> Overlap:
    """Compare two lists of people. Each person is counted once."""
    free = list(dict.fromkeys(b))
    matched = doubtful = left = 0
    reached: set[str] = set()
    known = _folded_set(b)
    pending: list[str] = []
    for name in dict.fromkeys(a):
        exact = next((s.folded for s in _spellings(name) if s.folded in known), None)
        hit = next((other for other in free if exact in {s.folded for s in _spellings(other)}), None) if exact else None
        if hit is None:
            pending.append(name)
            continue
        free.remove(hit)
        reached.add(hit)
        matched += 1
        left += 1
    for name in pending:
        scored = [(value, other) for other in free if (value := likeness(name, other)) is not None]
        reached.update(other for _, other in scored)
        if not scored:
            continue
        left += 1
        value, other = max(scored, key=lambda pair: pair[0])
        if value >= SAME:
            free.remove(other)
            matched += 1
        elif value >= MAYBE:
            doubtful += 1
    return Overlap(matched, doubtful, left, len(reached))


def names(values: Sequence[str]) -> tuple[str, ...]:
    """Return the names that hold a letter, in order."""
    return tuple(value for value in values if normalise(value))
