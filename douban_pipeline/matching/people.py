"""Names of people: the same person under two spellings, and how far two lists overlap.

A Chinese name is compared letter by letter after folding. A transliterated one (阿尔伯特·芬尼 / 艾伯特·芬尼)
varies with the translator and gets a similarity test. Names in different scripts cannot be compared at all:
they say nothing, neither for nor against; unless one asks whether they sound alike.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz import fuzz

from douban_pipeline.matching.phonetics import SAME_SOUND, sounds_alike
from douban_pipeline.matching.text import HAN, is_settled, narrow, normalise, script

SAME = 0.8
"""Two transliterations at least this alike are one person."""

_LONG = 5  # letters from which a name without dots is a transliterated one too
_UNLIKE = 50.0  # under this ratio, of 100, two spellings cannot be one name

MAYBE = 0.6
"""Between this and :data:`SAME` it is undecided."""

_MOST_HEARD = 12  # pairs of names; of more, some sound alike by chance

_DOTS = re.compile(r"[·・•‧∙.\s]+")
_HAN_THEN_LATIN = re.compile(rf"^(?P<han>[{HAN}·・•‧∙\-\s]{{2,}}?)\s+(?P<latin>[A-Za-z\u00c0-\u024f][^{HAN}]*)$")
_ROLE = re.compile(r"\s*[(（\[【].*$|\s*饰\s.*$|\s+as\s.*$")
_MAYBE_ROLE = re.compile(r"\(|\[|【|饰 | as ")


class Overlap(NamedTuple):
    """How two lists of people agree.

    Attributes:
        matched: People on both lists.
        doubtful: Pairs whose spelling is too close for a disagreement and too far for an agreement.
        left: People of the first list that could be compared with anyone of the second.
        right: The same the other way round.
        transliterated: Whether nobody on either list bears a plain Chinese, Japanese or Korean name.
    """

    matched: int
    doubtful: int
    left: int
    right: int
    transliterated: bool = False

    @property
    def agree(self) -> bool | None:
        """True with a common person, False when comparable lists share nobody, None when nothing can be said."""
        if self.matched:
            return True
        return None if self.doubtful or not (self.left and self.right) else False


class _Name(NamedTuple):
    """One spelling of one person.

    Attributes:
        folded: The whole name, normalised.
        script: What it is written in.
        parts: What dots and spaces separate, normalised.
        key: What two spellings of one name have in common at once: Latin names may be turned round.
        transliterated: Whether it was turned into this script from another, so that spellings vary.
    """

    folded: str
    script: str
    parts: tuple[str, ...]
    key: str
    transliterated: bool


@lru_cache(maxsize=65536)
def _spellings(name: str) -> tuple[_Name, ...]:
    """The ways one entry writes a person: 白井悠介 Yusuke Shirai is two."""
    if is_settled(name):
        return (_Name(name, "han", (name,), name, len(name) >= _LONG),)
    text = narrow(name)
    if _MAYBE_ROLE.search(text):
        text = _ROLE.sub("", text).strip() or text
    mixed = None if text.isascii() or " " not in text else _HAN_THEN_LATIN.match(text)
    found = []
    for piece in (mixed["han"], mixed["latin"]) if mixed else (text,):
        writing = script(piece)
        # Two Chinese characters with a space between (王 菲) are one name, not two parts.
        parts = tuple(part for part in map(normalise, _DOTS.split(piece)) if part)
        if writing == "han" and all(len(part) == 1 for part in parts):
            parts = ("".join(parts),)
        if parts:
            folded = "".join(parts)
            latin = writing == "latin"
            key = "".join(sorted(parts)) if latin else folded
            found.append(_Name(folded, writing, parts, key, latin or len(parts) > 1 or len(folded) >= _LONG))
    return tuple(found)


def _alike(a: _Name, b: _Name, ratio: float) -> float:
    """Return how alike two transliterations are, 0 to 1, given how alike their letters are."""
    if len(a.parts) == 1 or len(b.parts) == 1:
        return ratio
    # Translators differ within a name (阿尔伯特/艾伯特), families share the last one: both ends must be alike.
    ends = [fuzz.ratio(a.parts[end], b.parts[end]) / 100 for end in (0, -1)]
    if min(ends) < 0.5:
        return min(ratio, SAME - 0.01)
    return SAME if sum(ends) / 2 >= 0.78 and ratio < SAME else ratio


class _People(NamedTuple):
    """A list of people, each once.

    Attributes:
        names: The entries as they came.
        keys: The keys of each entry's spellings.
        by_key: Entries by the key of each spelling.
        by_end: Entries of several parts by their first and last part.
        varying: Transliterated spellings with their entries: those that may be spelt otherwise elsewhere.
        scripts: What the names are written in.
        transliterated: Whether all are.
    """

    names: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    by_key: dict[str, str]
    by_end: dict[str, str]
    varying: tuple[tuple[_Name, str], ...]
    scripts: frozenset[str]
    transliterated: bool


@lru_cache(maxsize=16384)
def _people(names: tuple[str, ...]) -> _People:
    unique = tuple(dict.fromkeys(names))
    spellings = [_spellings(name) for name in unique]
    spelt = [(each, name) for name, some in zip(unique, spellings, strict=True) for each in some]
    varying = tuple(pair for pair in spelt if pair[0].transliterated)
    return _People(
        names=unique,
        keys=tuple(tuple(each.key for each in some) for some in spellings),
        by_key={spelling.key: name for spelling, name in reversed(spelt)},
        by_end={spelling.parts[end]: name for spelling, name in varying for end in (0, -1) if len(spelling.parts) > 1},
        varying=varying,
        scripts=frozenset(spelling.script for spelling, _ in spelt),
        transliterated=len(varying) == len(spelt),
    )


_NOBODY = Overlap(0, 0, 0, 0, True)


def overlap(a: tuple[str, ...], b: tuple[str, ...]) -> Overlap:
    """Compare two lists of people. Each person is counted once."""
    if not a or not b:
        return _NOBODY
    mine, theirs = _people(a), _people(b)
    free = dict.fromkeys(theirs.names)
    strangers = mine.by_key.keys().isdisjoint(theirs.by_key)
    pending = list(mine.names) if strangers else []
    matched = doubtful = 0
    for name, keys in () if strangers else zip(mine.names, mine.keys, strict=True):
        hit = next((found for key in keys if (found := theirs.by_key.get(key)) in free), None)
        if hit is None:
            pending.append(name)
        else:
            del free[hit]
            matched += 1
    # Who bears a plain name on either list is there under it or not at all.
    for name in pending if theirs.varying or mine.varying else ():
        value, other = _closest(name, theirs, free)
        if value >= SAME:
            del free[other]
            matched += 1
        elif value >= MAYBE:
            doubtful += 1
    transliterated = mine.transliterated and theirs.transliterated
    return Overlap(matched, doubtful, _comparable(mine, theirs), _comparable(theirs, mine), transliterated)


@lru_cache(maxsize=16384)
def heard(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Say whether somebody on one short list has a Latin name that sounds like a Chinese one on the other."""
    if not a or not b or len(a) * len(b) > _MOST_HEARD:
        return False
    mine, theirs = ([each for name in names for each in _spellings(name)] for names in (a, b))
    for one in mine:
        for other in theirs:
            latin, han = (one, other) if one.script == "latin" else (other, one)
            if latin.script == "latin" and han.script == "han" and sounds_alike(latin.parts, han.parts) >= SAME_SOUND:
                return True
    return False


def _closest(name: str, people: _People, free: Container[str]) -> tuple[float, str]:
    """Return how alike the likest of the others is to a name that none of them bears, and who that is."""
    best = (0.0, "")
    for mine in _spellings(name):
        # 科波拉 may be 弗朗西斯·福特·科波拉, and the other way round.
        ends = mine.parts[:: len(mine.parts) - 1] if len(mine.parts) > 1 else ()
        likely = [people.by_end.get(mine.folded), *(people.by_key.get(end) for end in ends)]
        if best[0] < MAYBE:
            best = next(((MAYBE, other) for other in likely if other is not None and other in free), best)
        if not mine.transliterated:
            continue
        for theirs, other in people.varying:
            if theirs.script != mine.script:
                continue
            ratio = fuzz.ratio(mine.folded, theirs.folded, score_cutoff=_UNLIKE)
            if ratio and other in free and (value := _alike(mine, theirs, ratio / 100)) > best[0]:
                best = (value, other)
    return best


def _comparable(people: _People, others: _People) -> int:
    """Count those who share a script with anybody of the others."""
    if people.scripts <= others.scripts:
        return len(people.names)
    return sum(any(each.script in others.scripts for each in _spellings(name)) for name in people.names)


def names(values: Sequence[str]) -> tuple[str, ...]:
    """Return the names that hold a letter, in order."""
    return tuple(value for value in values if normalise(value))
