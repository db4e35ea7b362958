"""Compares names of people: one person under two spellings, and the overlap of two lists.

A Chinese name is compared letter by letter after folding. A transliterated name (阿尔伯特·芬尼 / 艾伯特·芬尼) varies
with the translator and is compared by similarity. Names in different scripts cannot be compared by spelling and are no
evidence for or against; `heard` compares them by sound.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz import fuzz

from douban_pipeline.cms.values import person_name
from douban_pipeline.matching.phonetics import SAME_SOUND, sounds_alike
from douban_pipeline.matching.text import HAN, is_settled, narrow, normalise, ratios, script

SAME = 0.8
"""Similarity from which two transliterations are one person."""

_LONG = 5  # letters from which a name without dots also counts as transliterated
_UNLIKE = 50.0  # under this ratio, of 100, two spellings cannot be one name

MAYBE = 0.6
"""Similarity between this and :data:`SAME` is undecided."""

_MOST_HEARD = 12  # most pairs of names; among more, some sound alike by chance

_DOTS = re.compile(r"[·・•‧∙.\s]+")
_HAN_THEN_LATIN = re.compile(rf"^(?P<han>[{HAN}·・•‧∙\-\s]{{2,}}?)\s+(?P<latin>[A-Za-z\u00c0-\u024f][^{HAN}]*)$")
_BRACKET = re.compile(r"\s*[(\[【].*$")
_INITIALS = re.compile(r"[A-Za-z]+")


class Overlap(NamedTuple):
    """Overlap of two lists of people.

    Attributes:
        matched: People on both lists.
        doubtful: Pairs whose spelling is too close for a disagreement and too far for an agreement.
        left: People of the first list that could be compared with anyone of the second.
        right: People of the second list that could be compared with anyone of the first.
        transliterated: Whether nobody on either list has a plain Chinese, Japanese or Korean name.
    """

    matched: int
    doubtful: int
    left: int
    right: int
    transliterated: bool = False

    @property
    def agree(self) -> bool | None:
        """True with a common person, False when comparable lists share nobody, None when undecided."""
        if self.matched:
            return True
        return None if self.doubtful or not (self.left and self.right) else False


class _PersonName(NamedTuple):
    """One spelling of one person.

    Attributes:
        folded: The whole name, normalised.
        script: Its script.
        parts: Its parts between dots and spaces, normalised.
        key: Key equal for equivalent spellings: the parts of Latin names may be in another order.
        transliterated: Whether it was converted into this script from another, so that spellings vary.
    """

    folded: str
    script: str
    parts: tuple[str, ...]
    key: str
    transliterated: bool


@lru_cache(maxsize=65536)
def _spellings(name: str) -> tuple[_PersonName, ...]:
    """Return the spellings in one entry: 白井悠介 Yusuke Shirai has two."""
    letters = name.replace("·", "")
    if is_settled(letters) or is_settled(_INITIALS.sub("", letters)):
        # 杰克·万斯, 保罗·A·佩里
        letters, name = letters.lower(), name.lower()
        parts = tuple([part for part in name.split("·") if part])
        parts = (letters,) if len(parts) == len(letters) else parts
        return (_PersonName(letters, "han", parts, letters, len(parts) > 1 or len(letters) >= _LONG),)
    text = narrow(name)
    text = _BRACKET.sub("", person_name(text) or text) or text
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
            found.append(_PersonName(folded, writing, parts, key, latin or len(parts) > 1 or len(folded) >= _LONG))
    return tuple(found)


def _alike(a: _PersonName, b: _PersonName, ratio: float) -> float:
    """Return the similarity of two transliterations, 0 to 1, given the similarity of their letters."""
    if len(a.parts) == 1 or len(b.parts) == 1:
        return ratio
    # Translators differ within a name (阿尔伯特/艾伯特), and families share the last name: both ends must be similar.
    ends = [fuzz.ratio(a.parts[end], b.parts[end]) / 100 for end in (0, -1)]
    if min(ends) < 0.5:
        return min(ratio, SAME - 0.01)
    return SAME if sum(ends) / 2 >= 0.78 and ratio < SAME else ratio


class _Varying(NamedTuple):
    """Transliterated spellings in one script: they may be spelt differently elsewhere.

    Attributes:
        letters: The letters of each spelling.
        spelt: The spellings with their entries.
    """

    letters: list[str]
    spelt: list[tuple[_PersonName, str]]


class _People(NamedTuple):
    """A list of people, each once.

    Attributes:
        names: The unchanged entries.
        keys: The keys of each entry's spellings.
        by_key: Entries by the key of each spelling.
        by_end: Entries of several parts by their first and last part.
        varying: Transliterated spellings by script.
        scripts: The scripts of the names.
        transliterated: Whether all names are transliterated.
    """

    names: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    by_key: dict[str, str]
    by_end: dict[str, str]
    varying: dict[str, _Varying]
    scripts: frozenset[str]
    transliterated: bool


_CHINESE = frozenset({"han"})


@lru_cache(maxsize=16384)
def _people(names: tuple[str, ...]) -> _People:
    unique = tuple(dict.fromkeys(names))
    if is_settled("".join(unique)) and all(unique) and max(map(len, unique)) < _LONG:
        # Plain Chinese names, as on most lists: each has one spelling, which is its key.
        return _People(
            unique, tuple(zip(unique, strict=True)), dict(zip(unique, unique, strict=True)), {}, {}, _CHINESE, False
        )
    keys: list[tuple[str, ...]] = []
    by_key: dict[str, str] = {}
    by_end: dict[str, str] = {}
    varying: dict[str, _Varying] = {}
    scripts: set[str] = set()
    plain = False
    for name in unique:
        spellings = _spellings(name)
        keys.append(tuple([each.key for each in spellings]))
        for spelling in spellings:
            by_key.setdefault(spelling.key, name)
            scripts.add(spelling.script)
            if not spelling.transliterated:
                plain = True
                continue
            if len(spelling.parts) > 1:
                by_end[spelling.parts[0]] = by_end[spelling.parts[-1]] = name
            if (found := varying.get(spelling.script)) is None:
                found = varying[spelling.script] = _Varying([], [])
            found.letters.append(spelling.folded)
            found.spelt.append((spelling, name))
    return _People(unique, tuple(keys), by_key, by_end, varying, frozenset(scripts), not plain)


_NOBODY = Overlap(0, 0, 0, 0, True)


def overlap(a: tuple[str, ...], b: tuple[str, ...]) -> Overlap:
    """Return the overlap of two lists of people; each person is counted once."""
    if not a or not b:
        return _NOBODY
    mine, theirs = _people(_apart(a, b)), _people(_apart(b, a))
    # A person with a plain name on either list is listed under that name or not at all.
    vary = bool(theirs.varying or mine.varying)
    strangers = mine.by_key.keys().isdisjoint(theirs.by_key)
    matched, doubtful = _matches(mine, theirs, strangers, vary) if vary or not strangers else (0, 0)
    transliterated = mine.transliterated and theirs.transliterated
    return Overlap(matched, doubtful, _comparable(mine, theirs), _comparable(theirs, mine), transliterated)


def _apart(names: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    """Return a list with 周迅 陈坤 as two people, if both are on the other list; 新垣 结衣 stays one."""
    if not any(" " in name for name in names):
        return names
    known = frozenset(others)
    pieces = ((name, name.split()) for name in names)
    return tuple(
        person for name, apart in pieces for person in (apart if len(known.intersection(apart)) > 1 else [name])
    )


def _matches(mine: _People, theirs: _People, strangers: bool, vary: bool) -> tuple[int, int]:
    """Return how many people are on both lists, and how many may be.

    Args:
        mine: One list.
        theirs: The other.
        strangers: Whether they have no key in common.
        vary: Whether names may be spelt differently on them.
    """
    free = dict.fromkeys(theirs.names)
    pending = list(mine.names) if strangers else []
    matched = doubtful = 0
    for name, keys in () if strangers else zip(mine.names, mine.keys, strict=True):
        hit = next((found for key in keys if (found := theirs.by_key.get(key)) in free), None)
        if hit is None:
            pending.append(name)
        else:
            del free[hit]
            matched += 1
    for name in pending if vary else ():
        value, other = _closest(name, theirs, free)
        if value >= SAME:
            del free[other]
            matched += 1
        elif value >= MAYBE:
            doubtful += 1
    return matched, doubtful


@lru_cache(maxsize=16384)
def heard(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Return whether somebody on one short list has a Latin name that sounds like a Chinese one on the other."""
    return len(a) * len(b) <= _MOST_HEARD and _sound_alike(a, b)


def none_heard(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Return whether one list has Latin names and the other Chinese ones, and none of any length sounds alike."""
    scripts = sorted(["".join(_people(each).scripts) for each in (a, b)])
    return scripts == ["han", "latin"] and not _sound_alike(a, b)


def _sound_alike(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    mine, theirs = ([each for name in names for each in _spellings(name)] for names in (a, b))
    for one in mine:
        for other in theirs:
            latin, han = (one, other) if one.script == "latin" else (other, one)
            if latin.script == "latin" and han.script == "han" and sounds_alike(latin.parts, han.parts) >= SAME_SOUND:
                return True
    return False


def _closest(name: str, people: _People, free: Container[str]) -> tuple[float, str]:
    """Return the person of ``people`` who is not matched yet and has the most similar name, with the similarity."""
    best = (0.0, "")
    for mine in _spellings(name):
        # 科波拉 may be 弗朗西斯·福特·科波拉, and vice versa.
        if best[0] < MAYBE and (likely := _same_end(mine, people, free)):
            best = (MAYBE, likely)
        varying = people.varying.get(mine.script) if mine.transliterated else None
        if varying is None:
            continue
        for place, ratio in ratios(mine.folded, varying.letters, _UNLIKE):
            theirs, other = varying.spelt[place]
            if other in free and (value := _alike(mine, theirs, ratio / 100)) > best[0]:
                best = (value, other)
    return best


def _same_end(mine: _PersonName, people: _People, free: Container[str]) -> str:
    """Return the person of ``people`` who has only the first or last part of a name, or of whose name it is one."""
    other = people.by_end.get(mine.folded)
    if other is not None and other in free:
        return other
    if len(mine.parts) > 1:
        for end in (mine.parts[0], mine.parts[-1]):
            other = people.by_key.get(end)
            if other is not None and other in free:
                return other
    return ""


def _comparable(people: _People, others: _People) -> int:
    """Return how many people have a name in a script that any of the others uses."""
    if people.scripts <= others.scripts:
        return len(people.names)
    if people.scripts.isdisjoint(others.scripts):
        return 0
    return sum(any(each.script in others.scripts for each in _spellings(name)) for name in people.names)


def names(values: Sequence[str]) -> tuple[str, ...]:
    """Return the names that contain a letter, in order."""
    return tuple(value for value in values if normalise(value))
