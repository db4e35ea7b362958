"""Compares Chinese and Latin names by sound: 阿尔弗雷德·希区柯克 is Alfred Hitchcock, 张一白 is Yibai Zhang.

A transliteration mostly keeps the consonants: translators add vowels, drop an r before a consonant, and write one
sound in several ways. Consonants are therefore aligned: a pair that translators use for one another costs nothing, a
silent letter little. Similar sound is evidence that two names belong to one person; different sound is no evidence
against it: 今村昌平 is Shôhei Imamura, and sounds different.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import permutations

from anyascii import anyascii

SAME_SOUND = 0.8
"""Similarity from which two names belong to one person."""

_END_UNLIKE = 0.5  # least similarity of the first and of the last parts: brothers share the last one
_LEAST_SOUNDS = 4  # fewer consonants are shared by many names
_MOST_PARTS = 3  # of a Chinese name in Latin letters

# Sounds are single letters. Latin: C is ch (which may be k), G is g before e and i, r and h are often silent.
# Chinese: Q is what pinyin writes j and q, E is 尔, which may be an l or an r.
_LATIN = (
    *(("tsch", "S"), ("sch", "S"), ("tch", "S"), ("dge", "S")),
    *((each, "S") for each in ("sh", "cz", "sz", "zs", "dj")),
    *((each, "Z") for each in ("dz", "ts", "tz")),
    *(("ch", "C"), ("ph", "F"), ("th", "T"), ("gh", "h"), ("ck", "K"), ("qu", "K")),
    *((each, "N") for each in ("gn", "ng", "kn")),
    *(("wr", "r"), ("x", "KS")),
    *(("b", "P"), ("p", "P"), ("m", "M"), ("f", "F"), ("v", "F"), ("w", "W"), ("d", "T"), ("t", "T"), ("n", "N")),
    *(("l", "L"), ("r", "r"), ("g", "K"), ("k", "K"), ("c", "K"), ("q", "K"), ("h", "h"), ("j", "J"), ("s", "S")),
    ("z", "Z"),
)
_LATIN_SOUND = dict(_LATIN)
_LATIN_PIECE = re.compile(r"(?P<soft>[cg](?=[eiy]))|" + "|".join(letters for letters, _ in _LATIN))
_HAN = (
    *(("zh", "S"), ("ch", "S"), ("sh", "S"), ("b", "P"), ("p", "P"), ("m", "M"), ("f", "F"), ("d", "T"), ("t", "T")),
    *(("n", "N"), ("l", "L"), ("g", "K"), ("k", "K"), ("h", "H"), ("j", "Q"), ("q", "Q"), ("x", "X"), ("r", "R")),
    *(("z", "Z"), ("c", "Z"), ("s", "S"), ("y", ""), ("w", "W")),
)

_SAME = {
    "P": "P",
    "M": "M",
    "F": "FW",
    "T": "T",
    "N": "N",
    "L": "LER",
    "K": "KQX",
    "S": "SZXQR",
    "Z": "ZSQT",
    "W": "WF",
    "r": "LER",
    "h": "HX",
    "C": "SQXZK",
    "J": "QRSXH",
    "G": "QKRSX",
}
"""Chinese sounds that translators use for a Latin one."""

_NEAR = {
    "M": "N",
    "N": "M",
    "T": "ZSQX",
    "P": "F",
    "F": "P",
    "K": "HS",
    "h": "KFW",
    "C": "H",
    "H": "F",
    "S": "KT",
    "J": "K",
    "W": "H",
    "Z": "X",
    "G": "HZ",
}
"""Chinese sounds that translators use for it rarely, or for a similar sound."""

_NEAR_COSTS = 0.4
_SILENT = {"h": 0.15, "r": 0.3, "W": 0.4, "J": 0.5, "T": 0.6, "L": 0.6, "K": 0.7, "S": 0.6, "N": 0.6, "P": 0.8}
"""Cost of a Latin sound that the Chinese name omits; others cost 1."""

_ADDED = {"E": 0.2, "L": 0.5, "H": 0.4, "N": 0.6, "W": 0.4, "R": 0.6, "T": 0.6, "S": 0.6, "F": 0.6}
"""Cost of a Chinese sound that the Latin name does not have; others cost 1."""


@lru_cache(maxsize=65536)
def sounds_alike(latin: tuple[str, ...], han: tuple[str, ...]) -> float:
    """Return the similarity in sound of a Latin and a Chinese name, 0 to 1.

    Args:
        latin: Parts of the name in Latin letters, in order.
        han: Parts of the Chinese name between dots. A name of one part is Chinese: its pinyin must equal the Latin
            name's parts in any order.
    """
    latin = tuple(part for part in map(_letters, latin) if part)
    if len(han) == 1:
        return float(_is_pinyin(latin, han[0]))
    latin = tuple(part for part in latin if len(part) > 1)  # without initials
    if len(latin) < 2:
        return 0.0
    ends = [(_latin_sounds(latin[end]), _han_sounds(han[end])) for end in (0, -1)]
    if min(sum(map(len, side)) for side in zip(*ends, strict=True)) < _LEAST_SOUNDS:
        return 0.0
    if min(_likeness(*end) for end in ends) < _END_UNLIKE:
        return 0.0
    longer = max(sum(map(len, side)) for side in zip(*ends, strict=True))
    return max(0.0, 1 - sum(_distance(*end) for end in ends) / longer)


def _letters(part: str) -> str:
    return "".join(char for char in anyascii(part).lower() if "a" <= char <= "z")


def _is_pinyin(latin: Sequence[str], han: str) -> bool:
    if not 2 <= len(latin) <= _MOST_PARTS or len(han) < 2:
        return False
    pinyin = "".join(_syllables(han))
    return any("".join(order) == pinyin for order in permutations(latin))


def _syllables(han: str) -> Iterator[str]:
    return (anyascii(char).lower() for char in han)


@lru_cache(maxsize=16384)
def _latin_sounds(part: str) -> str:
    found = ("G" if each["soft"] == "g" else "S" if each["soft"] else _LATIN_SOUND[each[0]] for each in _pieces(part))
    return _once("".join(found))


def _pieces(part: str) -> Iterator[re.Match[str]]:
    return _LATIN_PIECE.finditer(part)


@lru_cache(maxsize=16384)
def _han_sounds(part: str) -> str:
    return _once("".join(map(_syllable_sounds, _syllables(part))))


def _syllable_sounds(syllable: str) -> str:
    if syllable == "er":
        return "E"
    first = next((sound for letters, sound in _HAN if syllable.startswith(letters)), "")
    return first + ("N" if syllable.endswith(("n", "ng")) else "")


def _once(sounds: str) -> str:
    """Return the sounds without repetitions: 安南德 has one n more than Anand."""
    return re.sub(r"(.)\1+", r"\1", sounds)


def _likeness(latin: str, han: str) -> float:
    if not latin and not han:
        return _END_UNLIKE  # vowels alone are no evidence
    return 1 - _distance(latin, han) / max(len(latin), len(han))


@lru_cache(maxsize=65536)
def _distance(latin: str, han: str) -> float:
    """Return the cost of the cheapest alignment."""
    costs = [0.0]
    for theirs in han:
        costs.append(costs[-1] + _ADDED.get(theirs, 1.0))
    for mine in latin:
        silent = _SILENT.get(mine, 1.0)
        row = [costs[0] + silent]
        for place, theirs in enumerate(han):
            changed = 0.0 if theirs in _SAME.get(mine, "") else _NEAR_COSTS if theirs in _NEAR.get(mine, "") else 1.0
            row.append(min(costs[place] + changed, costs[place + 1] + silent, row[-1] + _ADDED.get(theirs, 1.0)))
        costs = row
    return costs[-1]
