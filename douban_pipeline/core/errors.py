"""Errors of outside sources, classified by what they mean for the work, and errors in what a person requested.

Reasons are shown to people and stored: they never contain a URL's query (it may hold a key) or a whole answer.
"""

# ruff: noqa: N818 (the names say what happened; nearly all of them are a SourceError)

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

LONGEST_RETRY_AFTER = 86_400.0
"""The longest ``Retry-After`` that is honoured, in seconds: a source must not be able to delay work for years."""


class SourceError(Exception):
    """A call to an outside source gave no usable answer; nothing may be concluded about what was asked.

    Attributes:
        source: Name of the source, as in the gate's table.
        reason: One sentence for people.
        healthy: What the error means for the source's health: False (it failed, which counts towards the breaker),
            True (it answered normally) or None (unknown: the call never reached it).
        retryable: Whether the same call may be tried again at once.
    """

    healthy: ClassVar[bool | None] = False

    def __init__(self, source: str, reason: str, *, retryable: bool = False) -> None:
        super().__init__(source, reason)
        self.source = source
        self.reason = reason
        self.retryable = retryable

    def __str__(self) -> str:
        """Name the source before the reason."""
        return f"{self.source}: {self.reason}"


class SourceUnavailable(SourceError):
    """No connection, a timeout, a 5xx, an error page, an error body, or an answer that cannot be read."""


class SourceSilent(SourceUnavailable):
    """No connection, or no complete answer in time: nothing was said of what was asked."""


class PrivateAddress(SourceError):
    """The address is on this machine or in a private network, which is not allowed; no request was sent."""

    healthy: ClassVar[bool | None] = None


class SourceThrottled(SourceError):
    """The source asks to slow down or to come back later: HTTP 429, a 5xx with Retry-After, or the same in a body.

    Attributes:
        retry_after: Seconds the source asks to wait, `LONGEST_RETRY_AFTER` at most; None when it does not say.
    """

    def __init__(self, source: str, reason: str, retry_after: float | None = None, *, retryable: bool = False) -> None:
        super().__init__(source, reason, retryable=retryable)
        self.retry_after = None if retry_after is None else min(retry_after, LONGEST_RETRY_AFTER)


class SourceWall(SourceError):
    """A clear sign of being blocked: login page, captcha, 403, redirect to the accounts host."""


class NotFound(SourceError):
    """The source says explicitly that what was requested does not exist. The source itself is healthy."""

    healthy = True


class GateClosed(SourceError):
    """The source's breaker is open, or another process is probing it; no call was made.

    Attributes:
        until: When a call may succeed again (aware, UTC).
    """

    healthy = None

    def __init__(self, source: str, reason: str, until: datetime) -> None:
        super().__init__(source, reason)
        self.args = (source, reason, until)  # so that the error survives pickling
        self.until = until


class OthersFirst(GateClosed):
    """The breaker is open, and whether it may close is tried with something else than what failed; no call was made."""


class QuotaSpent(GateClosed):
    """The source's daily quota is used up; no call was made. ``until`` is when the next day begins."""


class SourceDoubted(GateClosed):
    """The source's empty answers are not trusted at present; only calls for something it is known to have may pass."""


class SourceUnpaid(SourceError):
    """The source requires payment: credits, or the key's spending limit, are used up. Retrying today is useless."""


class GateUnreadable(SourceError):
    """The gate's row cannot be read or written. The gate fails closed: no call was made."""

    healthy = None


class OperatingError(Exception):
    """An operator's command failed; the message gives the reason and the remedy."""


class ProblemsError(Exception):
    """A person's request cannot be applied; ``problems`` holds one sentence for each reason."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)
