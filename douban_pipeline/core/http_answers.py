"""What is asked over HTTP, and what came of it, as values; `core.http` sends and receives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Generic, TypeVar

import httpx

from douban_pipeline.core.errors import SourceThrottled, SourceUnavailable, SourceWall
from douban_pipeline.core.payload import AnswerRules

T = TypeVar("T")
Refuse = Callable[[int, httpx.Headers, bytes], None]
"""Raises the `SourceError` that status, headers and body of an answer mean; returns if the general rules apply."""
Admit = Callable[[httpx.URL, str | None], None]
"""Raises the `SourceError` that forbids an address; called before each hop with None, and once connected with the
peer's IP address (which is the proxy's where one is set)."""


@dataclass(frozen=True, slots=True)
class FetchedAnswer(Generic[T]):
    """What a call gave.

    Attributes:
        value: The parsed answer.
        snapshot_id: The archived raw answer it was parsed from.
        fetched_at: When the source gave it (UTC).
        from_cache: Whether it was taken from the archive without a call.
    """

    value: T
    snapshot_id: int
    fetched_at: datetime
    from_cache: bool


@dataclass(frozen=True, slots=True, repr=False)
class HttpExchange:
    """An answer as it came, for who needs more of it than the body.

    Attributes:
        status: HTTP status.
        headers: Its headers.
        body: Its body, decompressed.
        moved_to: The address that the first hops named for good (301 and 308, in an unbroken row); empty if none did.
    """

    status: int
    headers: httpx.Headers
    body: bytes
    moved_to: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class HttpRequest(Generic[T]):
    """What is sent to the source, and how its answer is read; see `Fetcher.get` and `Fetcher.post`."""

    method: str
    url: httpx.URL
    content: bytes | None
    key: str
    parser_version: str
    parse: Callable[[bytes], T]
    hints: Mapping[int, str]
    tokens: int = 0
    refuse: Refuse | None = None
    tokens_of: Callable[[T], int] | None = None
    found: Callable[[T], bool] | None = None
    known: bool = False
    headers: Mapping[str, str] | None = None
    content_type: str = "application/json"
    archived: bool = True
    read: Callable[[HttpExchange], T] | None = None
    urgent: bool = False


def retry_after(value: str, now: datetime) -> float | None:
    """Return the seconds that a header ``Retry-After`` asks to wait: seconds or an HTTP date (RFC 9110, 10.2.3)."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    with suppress(ValueError, OverflowError):
        moment = parsedate_to_datetime(value)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max((moment - now).total_seconds(), 0.0)
    return None


def refuse_status(
    answer: HttpExchange, source: str, rules: AnswerRules, hints: Mapping[int, str], now: datetime
) -> None:
    """Return if the status of an answer lets its body be read.

    Args:
        answer: What came.
        source: Who answered.
        rules: What statuses and pages of that source mean.
        hints: What to do about single statuses, for the error's message.
        now: The present moment (UTC).

    Raises:
        SourceWall: The source takes us for a robot, or wants a login.
        SourceThrottled: It asks to wait.
        SourceUnavailable: Any other status that is not read.
    """
    status = answer.status
    hint = f"; {hints[status]}" if status in hints else ""
    if status in rules.wall_statuses:
        raise SourceWall(source, f"HTTP {status}{hint}")
    wait = retry_after(answer.headers.get("retry-after", ""), now)
    if status == 429:
        raise SourceThrottled(source, f"HTTP 429{hint}", wait, retryable=wait is not None)
    if 200 <= status < 300:
        return
    rules.refuse_wall(source, answer.body[:200_000].decode("utf-8", "replace"))
    if status >= 500 and wait:
        raise SourceThrottled(source, f"HTTP {status}{hint}", wait, retryable=True)
    if not rules.is_read(status):
        raise SourceUnavailable(source, f"HTTP {status}{hint}", retryable=status >= 500)
