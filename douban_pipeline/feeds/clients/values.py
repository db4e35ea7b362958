"""Parses values of sources: plain text, links and credible times. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from datetime import tzinfo
from typing import Any
from urllib.parse import urljoin, urlsplit

from douban_pipeline.feeds.cadence import DAY, as_seconds
from douban_pipeline.feeds.clients.moments import written_time

LONGEST_SUMMARY = 1000
LONGEST_CONTENT = 200_000
"""Characters of an article that are kept: more than any article has, and little beside `services.MAX_BODY_BYTES`."""
_EARLIEST = 946_684_800
"""2000-01-01: an earlier time comes from a clock that was never set."""
_HIDDEN = re.compile(r"<(script|style)\b", re.IGNORECASE)
_HIDDEN_END = {name: re.compile(rf"</{name}\s*>", re.IGNORECASE) for name in ("script", "style")}
_TAG = re.compile(r"<[^<>]*>")
_ADDRESS = re.compile(
    r"""(?<=[\s"'])((?:data-)?(?:src|original|href)\s*=\s*)(?:"([^"<>]*)"|'([^'<>]*)')""", re.IGNORECASE
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def plain(value: object, most: int = 500) -> str:
    """Return text without tags, entities and control characters, on one line, cut to ``most`` characters."""
    text = value if isinstance(value, str) else "" if value is None else str(value)
    text = html.unescape(_TAG.sub(" ", _shown(text[: most * 20])))
    return " ".join(_CONTROL.sub(" ", text).split())[:most]


def _shown(text: str) -> str:
    """Return text without scripts and style sheets, in time proportional to its length."""
    kept, at = [], 0
    endless: set[str] = set()
    for begin in _HIDDEN.finditer(text):
        name = begin[1].lower()
        if begin.start() < at or name in endless:
            continue
        end = _HIDDEN_END[name].search(text, begin.end())
        if end is None:
            endless.add(name)
            continue
        kept.append(text[at : begin.start()])
        at = end.end()
    return " ".join([*kept, text[at:]])


def article(parts: Iterable[tuple[object, bool]], summary: str) -> str:
    """Return the longest of texts as HTML, cut to `LONGEST_CONTENT`; empty if ``summary`` says as much.

    Args:
        parts: Texts, and whether each is HTML; one that is not is escaped, with its line breaks.
        summary: The entry's summary, as plain text.
    """
    found = max(
        (
            text if is_html else html.escape(text, quote=False).replace("\n", "<br>")
            for value, is_html in parts
            if isinstance(value, str) and (text := _CONTROL.sub("", value[:LONGEST_CONTENT]).strip())
        ),
        key=len,
        default="",
    )
    return found[:LONGEST_CONTENT] if "<" in found or len(found) > len(summary) else ""


def link_of(value: object, base: str) -> str:
    """Return a link as an absolute http or https address; empty for anything else."""
    if not isinstance(value, str) or not value.strip():
        return ""
    try:
        link = urljoin(base, _CONTROL.sub("", value).strip())
        parts = urlsplit(link)
    except ValueError:
        return ""
    return link[:4000] if parts.scheme in ("http", "https") and parts.netloc else ""


def based_on(text: object, base: str) -> object:
    """Return HTML with its relative addresses made absolute; anything but text as it is."""
    if not isinstance(text, str):
        return text

    def absolute(match: re.Match[str]) -> str:
        address = html.unescape(match[2] or match[3] or "")
        return match[1] + '"' + html.escape(link_of(address, base) or address) + '"'

    return _ADDRESS.sub(absolute, text[:LONGEST_CONTENT])


def credible(moment: int | None, now: float) -> int | None:
    """Return a time if it is credible as a publication time: not before 2000, and not after tomorrow; else None."""
    return moment if moment is not None and _EARLIEST <= moment <= now + DAY else None


def moment_of(value: object, zone: tzinfo) -> int | None:
    """Return a time in seconds, given as seconds, milliseconds or text; text without a zone is in ``zone``."""
    written = written_time(value)
    return as_seconds(value) if written is None else written.moment(zone)


def at_path(value: object, path: str) -> Any:
    """Return the value at a path of names and numbers, ``data.list`` or ``items.0.title``; None if there is none."""
    for step in [part for part in path.split(".") if part]:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value
