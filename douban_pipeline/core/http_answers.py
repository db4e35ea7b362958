"""HTTP requests and their results as values; `core.http` sends and receives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Generic, TypeVar

import httpx

from douban_pipeline.core.errors import SourceThrottled, SourceUnavailable, SourceWall
from douban_pipeline.core.payload import AnswerRules

T = TypeVar("T")
Refuse = Callable[[int, httpx.Headers, bytes], None]
"""Raises the `SourceError` for the status, headers and body of an answer; returns if the general rules apply."""
Admit = Callable[[httpx.URL, str | None], None]
"""Raises the `SourceError` that refuses an address; called before each hop with None, and once connected with the
peer's IP address (the proxy's, where one is set)."""


@dataclass(frozen=True, slots=True)
class FetchedAnswer(Generic[T]):
    """The result of a call.

    Attributes:
        value: The parsed answer.
        snapshot_id: The archived raw answer from which it was parsed.
        fetched_at: When the source sent it (UTC).
        from_cache: Whether it came from the archive without a call.
    """

    value: T
    snapshot_id: int
    fetched_at: datetime
    from_cache: bool


@dataclass(frozen=True, slots=True, repr=False)
class HttpExchange:
    """A raw answer, for callers that need more than its body.

    Attributes:
        status: HTTP status.
        headers: Its headers.
        body: Its body, decompressed.
        moved_to: The target of the leading permanent redirects (301 and 308, without others between); empty if none.
    """

    status: int
    headers: httpx.Headers
    body: bytes
    moved_to: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class HttpRequest:
    """What is sent."""

    method: str
    url: httpx.URL
    content: bytes | None = None
    headers: Mapping[str, str] | None = None
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Call(Generic[T]):
    """What a call is for, how its answer is read, and what the gate is told of it.

    Attributes:
        key: The request, as the archive's key. Must hold no secret.
        parser_version: Version of ``parse``, stored with the answer.
        parse: Turns the raw answer into the value; raises a `SourceError` if it cannot.
        hints: Text added, for people, to the error of an HTTP status.
        refuse: Called with the archived answer before the general rules about statuses are applied.
        tokens: Estimate of the tokens that an attempt uses, reserved at the gate.
        tokens_of: Returns the tokens used, as reported by the answer. Without it the estimate counts.
        found: Returns whether the answer found something, for the gate (see `core.gate_evidence`). Without it the
            answer is not counted there.
        known: Whether the request is for something that the source is known to have, see `Gate.slot`.
        urgent: Whether a person waits for the answer, see `Gate.slot`.
        follows: Whether it ends what earlier calls began, see `Gate.slot`.
        archived: Whether the answer is stored in the archive.
    """

    key: str
    parser_version: str
    parse: Callable[[bytes], T]
    hints: Mapping[int, str] = field(default_factory=dict)
    refuse: Refuse | None = None
    tokens: int = 0
    tokens_of: Callable[[T], int] | None = None
    found: Callable[[T], bool] | None = None
    known: bool = False
    urgent: bool = False
    follows: bool = False
    archived: bool = True


def retry_after(value: str, now: datetime) -> float | None:
    """Return the seconds to wait of a ``Retry-After`` header, given as seconds or an HTTP date (RFC 9110, 10.2.3)."""
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
    """Return if the answer's status allows its body to be read.

    Args:
        answer: The answer.
        source: Name of the source.
        rules: What statuses and pages of that source mean.
        hints: What to do about certain statuses, for the error's message.
        now: The current time (UTC).

    Raises:
        SourceWall: The source takes us for a robot, or requires a login.
        SourceThrottled: The source asks to wait.
        SourceUnavailable: Any other status whose body is not read.
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
