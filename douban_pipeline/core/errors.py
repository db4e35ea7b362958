"""What can go wrong with an outside source, by what it means for the work, and with what a person asked for.

Reasons are shown to people and stored: they never hold a URL's query (it may carry a key) nor a whole answer.
"""

# ruff: noqa: N818 (the names say what happened; nearly all of them are a SourceError)

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

LONGEST_RETRY_AFTER = 86_400.0
"""Seconds that a source is believed to want us to wait, at most: what it says must not put work off for years."""


class SourceError(Exception):
    """A call to an outside source gave no usable answer; nothing may be concluded about what was asked.

    Attributes:
        source: Name of the source, as in the gate's table.
        reason: One sentence for people.
        healthy: What the error says of the source: False (it failed, which counts against the breaker), True (it
            answered as it should) or None (nothing: the call never reached it).
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


class PrivateAddress(SourceError):
    """The address is on this machine or in a private network, where sources may not be; it was not asked."""

    healthy: ClassVar[bool | None] = None


class SourceThrottled(SourceError):
    """The source asks to slow down, or to come back later: HTTP 429, a 5xx with Retry-After, or their like in a body.

    Attributes:
        retry_after: Seconds the source asks to wait, `LONGEST_RETRY_AFTER` at most; None when it does not say.
    """

    def __init__(self, source: str, reason: str, retry_after: float | None = None, *, retryable: bool = False) -> None:
        super().__init__(source, reason, retryable=retryable)
        self.retry_after = None if retry_after is None else min(retry_after, LONGEST_RETRY_AFTER)


class SourceWall(SourceError):
    """A clear sign of a wall: login page, captcha, 403, redirect to the accounts host."""


class NotFound(SourceError):
    """The source says explicitly that what was asked for does not exist. The source itself is well."""

    healthy = True


class GateClosed(SourceError):
    """The breaker of the source is open, or another process is probing it; no call was made.

    Attributes:
        until: When it is worth asking again (aware, UTC).
    """

    healthy = None

    def __init__(self, source: str, reason: str, until: datetime) -> None:
        super().__init__(source, reason)
        self.args = (source, reason, until)  # so that the error survives pickling
        self.until = until


class QuotaSpent(GateClosed):
    """The source's quota of the day is used up; no call was made. ``until`` is when the next day begins."""


class SourceDoubted(GateClosed):
    """The source answers, but is in doubt to find anything; who knows what it found before may ask for that now."""


class SourceUnpaid(SourceError):
    """The source wants money: credits, or what the key may spend, are used up. Asking again today is useless."""


class GateUnreadable(SourceError):
    """The gate's row cannot be read or written. Fails closed: no call was made."""

    healthy = None


class ProblemsError(Exception):
    """What a person asked for cannot be done; ``problems`` holds a sentence for each reason."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)
