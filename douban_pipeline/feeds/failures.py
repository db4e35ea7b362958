"""Canonical failure messages: one message for all failures with the same meaning, by status or class of error.

The back-off searches for words anywhere in a message, and raw messages contain them by accident ("gene*rate*d",
"certificate has *expired*"). So its input is created here; the raw text is stored beside it for people.
"""

from __future__ import annotations

import re
from typing import ClassVar

from douban_pipeline.core.errors import NotFound, SourceError, SourceThrottled, SourceWall

_STATUS = re.compile(r"(?<!\d)([45]\d\d)(?!\d)")
_BY_STATUS = {
    401: "HTTP 401 unauthorised",
    403: "HTTP 403 forbidden",
    404: "HTTP 404 not found",
    410: "HTTP 410 gone",
    429: "HTTP 429 too many requests",
}
_BY_WORDS = (
    (re.compile(r"certificate|\bssl\b|\btls\b|证书", re.IGNORECASE), "no secure connection"),
    (re.compile(r"too many requests|\brate[ -]?limit|频繁", re.IGNORECASE), _BY_STATUS[429]),
    (re.compile(r"\bunauthori[sz]ed\b|\bexpired\b|过期", re.IGNORECASE), _BY_STATUS[401]),
    (re.compile(r"\bforbidden\b", re.IGNORECASE), _BY_STATUS[403]),
    (re.compile(r"private address", re.IGNORECASE), "private address refused"),
    (re.compile(r"larger than|too large", re.IGNORECASE), "answer too large"),
    (re.compile(r"time[d ]?out|in time|no (complete|whole) answer", re.IGNORECASE), "no answer in time"),
    (re.compile(r"no connection|unreachable|resolve", re.IGNORECASE), "no connection"),
    (
        re.compile(r"decompress|no feed|not a feed|no json|not json|html page|cannot be read", re.IGNORECASE),
        "answer unreadable",
    ),
)
OTHER = "other failure"
UNAUTHORISED = _BY_STATUS[401]
GONE = _BY_STATUS[410]
CANONICAL = frozenset({*_BY_STATUS.values(), *(name for _, name in _BY_WORDS), OTHER, "HTTP 5xx"})


def canonical_of_status(status: int) -> str:
    """Return the canonical message of an HTTP error status."""
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return "HTTP 5xx" if status >= 500 else OTHER


def canonical_message(raw: str) -> str:
    """Return the canonical message of a raw one; canonical and empty messages are returned unchanged."""
    if not raw or raw in CANONICAL:
        return raw
    for pattern, name in _BY_WORDS[:1]:
        if pattern.search(raw):
            return name
    status = _STATUS.search(raw)
    if status:
        return canonical_of_status(int(status[1]))
    return next((name for pattern, name in _BY_WORDS if pattern.search(raw)), OTHER)


class FeedRefused(SourceError):  # noqa: N818 (as the other kinds of `SourceError`)
    """The host answered normally, but the answer cannot be read as this source; it does not count against the host.

    Attributes:
        status: HTTP status, 0 if there was none.
        wait: Seconds that the answer asks to wait; None if it does not.
    """

    healthy: ClassVar[bool | None] = True

    def __init__(self, source: str, reason: str, status: int = 0, wait: float | None = None) -> None:
        super().__init__(source, reason)
        self.status = status
        self.wait = wait


def failure_of(error: SourceError) -> tuple[str, int, float | None]:
    """Return a failure's canonical message, HTTP status (0 for none) and the seconds the source asks to wait."""
    if isinstance(error, FeedRefused):
        kind = canonical_of_status(error.status) if error.status >= 400 else canonical_message(error.reason)
        return kind, error.status, error.wait
    if isinstance(error, SourceThrottled):
        # A 503 means that the host is in trouble, not that it is polled too often.
        kind = canonical_message(error.reason)
        return kind, 429 if "429" in error.reason else 503, error.retry_after
    if isinstance(error, NotFound):
        return canonical_of_status(404), 404, None
    if isinstance(error, SourceWall):
        return canonical_of_status(401), 401, None
    return canonical_message(error.reason), 0, None
