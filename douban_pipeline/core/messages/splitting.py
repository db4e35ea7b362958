"""Cutting texts into pieces as each platform counts them: bytes of UTF-8, bytes of JSON, or UTF-16 units."""

from __future__ import annotations

import json
from collections.abc import Callable

Width = Callable[[str], int]
"""How much of a limit a text takes; the width of a text is the sum of the widths of its letters."""

ELLIPSIS = "…"
# What chats take for a link, a mention or other markup; its full-width double is only text.
_MARKUP = str.maketrans("<>[]`", "＜＞［］｀")
_LEAST_FILLED = 2
"""A line break is taken for the end of a piece only after a half (1/2) of what fits."""


def plain(text: str) -> str:
    """Return a text without markup, and without letters that UTF-8 does not have."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "").translate(_MARKUP)


def utf8_width(text: str) -> int:
    """Return the bytes of a text in UTF-8."""
    return len(text.encode())


def json_width(text: str) -> int:
    """Return the bytes of a text inside JSON: quotes, backslashes and control letters take more than one."""
    return len(json.dumps(text, ensure_ascii=False).encode()) - 2


def utf16_width(text: str) -> int:
    """Return the units of a text in UTF-16: an emoji takes two."""
    return len(text.encode("utf-16-le")) // 2


def split(text: str, most: int, width: Width = utf8_width) -> list[str]:
    """Return ``text`` in pieces of which none is wider than ``most``; put together they are the text again.

    Pieces end at line breaks where that fills at least half of them. An empty text is one empty piece.

    Raises:
        ValueError: One letter alone is wider than ``most``.
    """
    pieces: list[str] = []
    rest = text
    while rest:
        end = _fitting(rest, most, width)
        if not end:
            raise ValueError(f"{most} is less than one letter takes")
        if end < len(rest):
            line_end = rest.rfind("\n", 0, end) + 1
            end = line_end if line_end * _LEAST_FILLED >= end else end
        pieces.append(rest[:end])
        rest = rest[end:]
    return pieces or [""]


def cut(text: str, most: int, width: Width = utf8_width) -> str:
    """Return ``text``, or as much of its beginning as fits into ``most`` with an ellipsis behind it."""
    if width(text) <= most:
        return text
    return text[: _fitting(text, most - width(ELLIPSIS), width)] + ELLIPSIS


def _fitting(text: str, most: int, width: Width) -> int:
    """Return how many letters from the beginning fit."""
    if width(text[: most + 1]) <= most:  # no letter is narrower than 1
        return min(len(text), most)
    low, high = 0, min(len(text), most)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if width(text[:middle]) <= most else (low, middle - 1)
    return low
