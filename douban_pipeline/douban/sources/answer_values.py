"""Reading the loose values of the ``vod_*`` shape: texts, lists, numbers, durations. Pure."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache, wraps
from typing import TypeVar

from douban_pipeline.cms.numbers import minutes_of, year_of
from douban_pipeline.cms.values import is_placeholder, person_name

_BREAK = re.compile(r"<br\s*/?>|</p\s*>", re.IGNORECASE)
_TAG = re.compile(r"<[a-zA-Z/!][^<>]*>")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060\ufeff]")
_NOT_AVAILABLE = re.compile(r"(?<![a-z])n/a(?![a-z])", re.IGNORECASE)
# What a plain text may lack entirely, so that one look spares all the cleaning; a whole library is parsed in a minute.
_UNCLEAN = re.compile(r"[&<\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060\ufeff]")
_BRACKET = re.compile(r"[(（\[【《)）\]】》]")
_OPENING, _CLOSING = "(（[【《", ")）]】》"
_MOST_VOTES = 100_000_000
_NAMES_APART = ",，、|;；"
_OWN_COMMA = re.compile(r"(?<=[A-Za-zÀ-ɏ]),(?= [A-Za-zÀ-ɏ])")
_HIDDEN_COMMA = "\ue000"


def clean(value: object, *, keep_lines: bool = False) -> str:
    """Return `text`, or "" where it is a placeholder."""
    found = text(value, keep_lines=keep_lines)
    return "" if is_placeholder(found) else found


def text(value: object, *, keep_lines: bool = False) -> str:
    """Return plain text: entities unescaped (even twice), markup and control characters gone, blanks single.

    Numbers become text; values that are no text become "".

    Args:
        value: What the source sent.
        keep_lines: Keep line breaks (for synopses).
    """
    if isinstance(value, str) and not _UNCLEAN.search(value):
        return " ".join(value.split())
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    plain = _stable(str(value)).replace("\r\n", "\n").replace("\r", "\n")
    lines = [" ".join(line.split()) for line in _CONTROL.sub("", plain).split("\n")]
    return ("\n" if keep_lines else " ").join(line for line in lines if line)


def names(value: object) -> tuple[str, ...]:
    """Split a list of names, genres, regions or languages; order kept, duplicates and placeholders dropped.

    Separators are ``,`` ``，`` ``、`` ``/`` ``|`` outside brackets, never spaces: names contain them. Where a list
    uses a slash between spaces, a bare slash belongs to an item.
    """
    return _names_in(value) if isinstance(value, str) else _items(value, _NAMES_APART, bare_slash=True)


def people(value: object) -> tuple[str, ...]:
    """Split a list of people like `names`, and leave out what roles they have."""
    return tuple(dict.fromkeys(name for each in names(value) if (name := person_name(each))))


@lru_cache(maxsize=8192)
def _names_in(listed: str) -> tuple[str, ...]:
    """Split a list as `names` does, but once: most are genres, regions and languages, which come again and again."""
    return _items(listed, _NAMES_APART, bare_slash=True)


def titles(value: object) -> tuple[str, ...]:
    """Split a list of titles, like `names`, but a title's own punctuation is not taken for a separator.

    A bare slash between two Latin letters belongs to the title (``Fate/Zero``), and so does a comma with a space
    behind it (``Goodbye, My Friend``). Where a slash between spaces separates, as Douban writes it, no comma does.
    ``，`` and ``、`` separate only where nothing stronger does.
    """
    if isinstance(value, list):
        return _items(value, "", bare_slash=False)
    listed = clean(value)
    if " / " in listed:
        return _items(listed, "|", bare_slash=False)
    hidden = _OWN_COMMA.sub(_HIDDEN_COMMA, listed)
    strong = _items(hidden, ",|", bare_slash=False)
    found = strong if len(strong) != 1 else _items(hidden, ",|，、", bare_slash=False)
    return found if hidden == listed else tuple(title.replace(_HIDDEN_COMMA, ",") for title in found)


_Value = TypeVar("_Value")


def _once_a_text(read: Callable[[object], _Value]) -> Callable[[object], _Value]:
    """Let a function remember what it read in a text: years, lengths and ratings come again and again."""
    read_text = lru_cache(maxsize=4096)(read)

    @wraps(read)
    def found(value: object) -> _Value:
        return read_text(value) if isinstance(value, str) else read(value)

    return found


@_once_a_text
def year(value: object) -> int | None:
    """Return the first plausible year, see `cms.numbers.year_of`."""
    return year_of(clean(value))


@_once_a_text
def rating(value: object) -> float | None:
    """Return a rating above 0 and at most 10; None for a missing one."""
    match = re.fullmatch(r"(\d{1,2}(?:\.\d{1,3})?)\s*分?", _ascii(value))
    number = float(match[1]) if match else 0.0
    return number if 0 < number <= 10 else None


def votes(value: object) -> int | None:
    """Return how many people rated, from ``1234``, ``"1,234"``, ``"12.3万人评价"``; None for 0 and anything else."""
    match = re.fullmatch(r"[(约]*(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)\s*(万)?\s*人?(?:评价|评分)?\)*", _ascii(value))
    if match is None:
        return None
    number = float(match[1].replace(",", "")) * (10_000 if match[2] else 1)
    return round(number) if 1 <= number <= _MOST_VOTES and (match[2] or number.is_integer()) else None


def count(value: object, most: int = 20_000) -> int | None:
    """Return a count of episodes from ``24``, ``"24"``, ``"全24集"``; None for 0 and for several numbers."""
    found = re.findall(r"\d+", _ascii(value))
    number = int(found[0]) if len(found) == 1 and len(found[0]) < 9 else 0
    return number if 0 < number <= most else None


@_once_a_text
def minutes(value: object) -> int | None:
    """Return a running time in minutes, of several versions the first; see `cms.numbers.minutes_of`."""
    return minutes_of(clean(value))


def _ascii(value: object) -> str:
    return unicodedata.normalize("NFKC", clean(value))


def _stable(text: str) -> str:
    for _ in range(4):  # double escaping is common; markup may hide behind it
        plain = _TAG.sub("", _BREAK.sub("\n", html.unescape(text)))
        if plain == text:
            break
        text = plain
    return text


def _items(value: object, separators: str, *, bare_slash: bool) -> tuple[str, ...]:
    if isinstance(value, list):
        parts = [item.get("name") if isinstance(item, dict) else item for item in value]
        cleaned = [clean(part) for part in parts]
    else:
        listed = _NOT_AVAILABLE.sub("", clean(value))
        found = _split(listed, separators, bare_slash=bare_slash)
        if _UNCLEAN.search(listed):
            cleaned = [clean(part) for part in found]
        else:
            # One look at the whole spares one at each piece.
            pieces = (" ".join(part.split()) for part in found)
            cleaned = ["" if is_placeholder(piece) else piece for piece in pieces]
    return tuple(dict.fromkeys(item for item in cleaned if item))


def _split(text: str, separators: str, *, bare_slash: bool) -> list[str]:
    spaced = " / " in text
    if not _BRACKET.search(text) and (spaced or bare_slash or "/" not in text):
        return _splitter(separators, "spaced" if spaced else "bare").split(text)
    balanced = all(text.count(a) == text.count(b) for a, b in zip(_OPENING, _CLOSING, strict=True))
    parts = [""]
    depth = 0
    for position, character in enumerate(text):
        if balanced and character in _OPENING:
            depth += 1
        elif balanced and character in _CLOSING:
            depth -= 1
        elif depth <= 0 and (
            character in separators
            or (character == "/" and _slash_separates(text, position, spaced=spaced, bare=bare_slash))
        ):
            parts.append("")
            continue
        parts[-1] += character
    return parts


@cache
def _splitter(separators: str, slash: str) -> re.Pattern[str]:
    """Return what splits a list without brackets as `_split` does, at C's speed."""
    return re.compile(f"[{re.escape(separators)}]|{'(?<= )/|/(?= )' if slash == 'spaced' else '/'}")


def _slash_separates(text: str, position: int, *, spaced: bool, bare: bool) -> bool:
    before, after = text[position - 1 : position], text[position + 1 : position + 2]
    if spaced:
        return before == " " or after == " "
    return bare or not (before.isascii() and before.isalpha() and after.isascii() and after.isalpha())
