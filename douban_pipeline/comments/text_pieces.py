"""Splits a comment's text into pieces for display: text, emoji, mentions, links. Pure; returns no HTML."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from douban_pipeline.comments.answers import Piece
from douban_pipeline.comments.types import BIGGEST_ID

_PIECE = re.compile(
    r"\[em:(?P<emoji>\d{1,3})\]|\|\|(?P<spoiler>[^|\n]{1,500})\|\||(?P<link>https?://[^\s<>\"'，。！？、；：）】]+)|@(?P<name>[\w\-]{1,30})(?::(?P<id>\d{1,19}))?"
    r"|(?<![\d:.：])(?P<time>(?:\d{1,2}:[0-5]\d|\d{1,3}):[0-5]\d)(?![\d:：])"
)
_AUTHORITY = re.compile(r"[\w.\-]+(?::\d{1,5})?|\[[0-9a-fA-F:.]+\](?::\d{1,5})?")
_TRAILING = ".,!?;:)]"


def pieces(text: str) -> list[Piece]:
    """Return a text as pieces: ``{"text"}``, ``{"emoji"}``, ``{"link", "host"}``, ``{"at", "user"}``.

    ``||…||`` is a spoiler (``{"text", "spoiler"}``), 1:02:03 a moment of the video (``{"text", "seconds"}``).

    ``[em:N]`` is an emoji of the CMS. ``@name:12`` mentions user 12; without an id nobody is notified.
    """
    found: list[Piece] = []

    def words(part: str) -> None:
        if part and found and found[-1].keys() == {"text"}:
            found[-1]["text"] += part
        elif part:
            found.append({"text": part})

    end = 0
    for match in _PIECE.finditer(text):
        words(text[end : match.start()])
        end = match.end()
        if match["emoji"]:
            found.append({"emoji": int(match["emoji"])})
        elif match["spoiler"]:
            found.append({"text": match["spoiler"], "spoiler": True})
        elif match["time"]:
            found.append({"text": match["time"], "seconds": _seconds(match["time"])})
        elif match["link"]:
            link = match["link"].rstrip(_TRAILING)
            host = _host(link)
            if host:
                found.append({"link": link, "host": host})
            else:
                words(link)
            words(match["link"][len(link) :])
        else:
            found.append({"at": match["name"], "user": match["id"]})
    words(text[end:])
    return found


def _seconds(time: str) -> int:
    """Return the seconds of ``12:34`` or ``1:02:03``."""
    seconds = 0
    for part in time.split(":"):
        seconds = seconds * 60 + int(part)
    return seconds


def _host(link: str) -> str:
    """Return the host that a browser opens; empty where it may be another than the one that people read.

    Browsers take ``\\`` for ``/``, so that what stands before it is the host, and what stands before ``@`` is none.
    """
    try:
        parts = urlsplit(link)
        plain = _AUTHORITY.fullmatch(parts.netloc) is not None and "\\" not in link
        return parts.hostname or "" if plain else ""
    except ValueError:
        return ""


def mentions(text: str) -> list[int]:
    """Return the ids of the users that a text mentions, without duplicates, at most ten."""
    ids = [int(match["id"]) for match in _PIECE.finditer(text) if match["id"]]
    return list(dict.fromkeys(each for each in ids if 0 < each <= BIGGEST_ID))[:10]
