"""Splitting texts by each platform's measure of length: bytes of UTF-8, bytes of JSON, or UTF-16 units."""

from __future__ import annotations

import json
from collections.abc import Callable

Width = Callable[[str], int]
"""Length of a text in a platform's measure; the width of a text is the sum of the widths of its characters."""

ELLIPSIS = "…"
# Characters that chats interpret as a link, a mention or other markup; the full-width form is plain text.
_MARKUP = str.maketrans("<>[]`", "＜＞［］｀")
_LEAST_FILLED = 2
"""A piece ends at a line break only if that fills at least this share (1/2) of it."""


def plain(text: str) -> str:
    """Return a text without markup and without characters that UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "").translate(_MARKUP)


def utf8_width(text: str) -> int:
    """Return the number of bytes of a text in UTF-8."""
    return len(text.encode())


def json_width(text: str) -> int:
    """Return the number of bytes of a text inside JSON, where quotes, backslashes and control characters are
    escaped."""
    return len(json.dumps(text, ensure_ascii=False).encode()) - 2


def utf16_width(text: str) -> int:
    """Return the number of UTF-16 units of a text: an emoji takes two."""
    return len(text.encode("utf-16-le")) // 2


def split(text: str, most: int, width: Width = utf8_width) -> list[str]:
    """Return ``text`` in pieces none of which is wider than ``most``; joined, they give the text again.

    Pieces end at a line break if that fills at least half of them. An empty text is one empty piece.

    Raises:
        ValueError: A single character is wider than ``most``.
    """
    pieces: list[str] = []
    rest = text
    while rest:
        end = _fitting(rest, most, width)
        if not end:
            raise ValueError(f"{most} is less than one character takes")
        if end < len(rest):
            line_end = rest.rfind("\n", 0, end) + 1
            end = line_end if line_end * _LEAST_FILLED >= end else end
        pieces.append(rest[:end])
        rest = rest[end:]
    return pieces or [""]


def cut(text: str, most: int, width: Width = utf8_width) -> str:
    """Return ``text``, or as much of its beginning as fits into ``most`` followed by an ellipsis."""
    if width(text) <= most:
        return text
    return text[: _fitting(text, most - width(ELLIPSIS), width)] + ELLIPSIS


def _fitting(text: str, most: int, width: Width) -> int:
    """Return how many characters from the beginning fit."""
    if width(text[: most + 1]) <= most:  # no character is narrower than 1
        return min(len(text), most)
    low, high = 0, min(len(text), most)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if width(text[:middle]) <= most else (low, middle - 1)
    return low
