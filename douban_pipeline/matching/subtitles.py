"""Reads what follows a work's name in a title: subtitles, and the names of its parts."""

from __future__ import annotations

import re

from anyascii import anyascii
from rapidfuzz.distance import Levenshtein

from douban_pipeline.matching.forms import OWN_SCRIPTS, Form
from douban_pipeline.matching.text import normalise, script
from douban_pipeline.matching.titles import ParsedTitle

_LONG_ORIGINAL = 5


def is_original(form: Form) -> bool:
    """Return whether a name is in a script of its own, and long enough to identify one work."""
    return len(form.parsed.base) >= _LONG_ORIGINAL and script(form.parsed.raw) in OWN_SCRIPTS


_TAIL_MARK = re.compile(r"(?:[^\w]|之)+")
_TAIL_LETTERS, _TAIL_LATIN = 3, 9


def is_tail(one: Form, other: Form) -> bool:
    """Return whether the shorter of two names is all that follows a mark in the longer one."""
    short, long = sorted((one.parsed, other.parsed), key=lambda parsed: len(parsed.base))
    least = _TAIL_LATIN if short.base.isascii() else _TAIL_LETTERS
    if not least <= len(short.base) < len(long.base) or not long.base.endswith(short.base):
        return False
    return any(normalise(long.name[mark.end() :]) == short.base for mark in _TAIL_MARK.finditer(long.name))


_SUBTITLE_MARK = re.compile(r"[\s:~〜～「」『』\-‐–—]+")
_SUBTITLED = 8


def has_subtitle(form: Form) -> bool:
    """Return whether a name in a script of its own is more than a franchise: 名探偵コナン ロンドンからの秘指令."""
    parts = [part for part in _SUBTITLE_MARK.split(form.parsed.name) if len(part) > 1]
    return len(form.parsed.base) >= _SUBTITLED and len(parts) > 1 and is_original(form)


_FIRM_MARK = re.compile(r"[:~〜～「『]|\s[\-‐–—]")
_SUBTITLED_LATIN = 16


def is_subtitled(form: Form) -> bool:
    """Return whether a name in any script is more than a franchise: 宝可梦:皮卡丘和可可的冒险.

    In Chinese a space suffices; in an alphabet a subtitle needs a punctuation mark.
    """
    latin = script(form.parsed.name) == "latin"
    if len(form.parsed.base) < (_SUBTITLED_LATIN if latin else _SUBTITLED):
        return False
    parts = (_FIRM_MARK if latin else _SUBTITLE_MARK).split(form.parsed.name)
    return sum(len(part.strip()) > 1 for part in parts) > 1


_TELLING = frozenset("零〇一二三四五六七八九十百两双他她它上中下前后新续外正别番小大")
"""Letters that count, point out or continue, so that one more or another one tells works apart."""


def is_misspelt(one: ParsedTitle, other: ParsedTitle) -> bool:
    """Return whether two names differ in one letter that was mistyped: another of its sound, or one more inside a word.

    Anything else that is left of both after their common part is a name of its own: 上之句 and 下之句. So is a word of
    one letter: 他和她的孤独情事：他 and ：她 sound the same.
    """
    mine, theirs = _pieces(one), _pieces(other)
    if len(mine) != len(theirs) or not mine:
        mine, theirs = [one.base], [other.base]
    edits = [(a, b, edit) for a, b in zip(mine, theirs, strict=True) for edit in Levenshtein.editops(a, b)]
    if len(edits) != 1:
        return False
    a, b, edit = edits[0]
    if edit.tag == "replace":
        letters = a[edit.src_pos], b[edit.dest_pos]
        return len(a) > 1 and _TELLING.isdisjoint(letters) and len({anyascii(each).lower() for each in letters}) == 1
    longer, place = (b, edit.dest_pos) if edit.tag == "insert" else (a, edit.src_pos)
    return 0 < place < len(longer) - 1 and longer[place] not in _TELLING and not longer[place].isdigit()


_PART_WORDS = ("篇", "编", "章", "卷")
_LEAST_NAME = 2
"""Least letters of a name that two parts have in common."""


def parts_differ(one: ParsedTitle, other: ParsedTitle, whole: str) -> bool:
    """Return whether two titles begin with the same name and go on with the names of different parts.

    A part's name follows a mark or the name of the ``whole``, or ends in a word for a part: 浪客剑心 最终章 追忆篇,
    浪客剑心追忆篇.
    """
    if one.base == other.base or is_misspelt(one, other):
        return False
    if whole and all(title.base.startswith(whole) and title.base != whole for title in (one, other)):
        return True
    mine, theirs = _pieces(one), _pieces(other)
    if min(len(mine), len(theirs)) > 1 and mine[0] == theirs[0]:
        return "".join(mine) != "".join(theirs)
    pairs = enumerate(zip(one.base, other.base, strict=False))
    begin = next((place for place, (a, b) in pairs if a != b), min(len(one.base), len(other.base)))
    ends = one.base[begin:], other.base[begin:]
    return begin >= _LEAST_NAME and all(len(end) > 1 and end.endswith(_PART_WORDS) for end in ends)


def _pieces(title: ParsedTitle) -> list[str]:
    return [piece for piece in map(normalise, _TAIL_MARK.split(title.name)) if piece]
