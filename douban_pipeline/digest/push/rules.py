"""Decides the state of a message after an attempt, and when it may be sent. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

_SEPARATOR = "\x1f"
"""A separator that occurs in no field, so that different fields never give the same text."""
FIRST_WAIT = timedelta(seconds=30)
LONGEST_WAIT = timedelta(minutes=30)
LEASE = timedelta(minutes=3)
"""Lease of a message; one part takes seconds, and each renews the lease."""
MINUTE = timedelta(minutes=1)


class PushType(StrEnum):
    """Why a message is sent. UNDELIVERED alerts the operators of a report that no channel accepted."""

    FINDING = "finding"
    REPORT = "report"
    ALERT = "alert"
    UNDELIVERED = "undelivered"


class PushState(StrEnum):
    """State of a message.

    PENDING was never tried; SENDING is leased to a sender; SENT was accepted; FAILED was refused and is retried at its
    time; UNKNOWN may have arrived and is not retried automatically; DEAD was given up.
    """

    PENDING = "pending"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    UNKNOWN = "unknown"
    DEAD = "dead"


WAITING = (PushState.PENDING, PushState.FAILED)
"""States in which a message is due."""
AT_MOST_ONCE = frozenset({PushType.FINDING})
"""Types not resent if they may have arrived, except where a key makes a second one harmless. The report and alerts are
resent: twice is better than never."""
MOST_ATTEMPTS = {PushType.FINDING: 8, PushType.REPORT: 100, PushType.ALERT: 30, PushType.UNDELIVERED: 30}
"""Maximum number of attempts: about an hour for a finding, two days for a report."""


@dataclass(frozen=True, slots=True)
class PushOutcome:
    """Result of an attempt.

    Attributes:
        state: The message's new state.
        next_attempt_at: When it is retried; None for never.
        error: Why it was not accepted; empty if it was.
    """

    state: PushState
    next_attempt_at: datetime | None
    error: str


def message_id(report_date: date, slot: str, push_type: str, channel: str, target_url: str) -> str:
    """Return the id of a message: equal for the same push, different for each channel."""
    fields = (report_date.isoformat(), slot, push_type, channel, target_url)
    return hashlib.sha1(_SEPARATOR.join(fields).encode(), usedforsecurity=False).hexdigest()


def payload_hash(title: str, body: str, target_url: str) -> str:
    """Return a hash that is equal for messages of the same content."""
    return hashlib.sha256(_SEPARATOR.join((title, body, target_url)).encode()).hexdigest()


def after_failure(
    push_type: PushType, attempts: int, error: str, *, uncertain: bool, retry_after: float | None, now: datetime
) -> PushOutcome:
    """Return the outcome of an attempt that was not reported as accepted.

    Args:
        push_type: Type of the message.
        attempts: Number of attempts, including this one.
        error: The reason, as a sentence.
        uncertain: Whether it may have arrived nevertheless, so that a second one may be shown, too.
        retry_after: Seconds the platform asks to wait.
        now: Time of the attempt.
    """
    if uncertain and push_type in AT_MOST_ONCE:
        return PushOutcome(PushState.UNKNOWN, None, f"{error}；可能已送达，不再自动重发")
    if attempts >= MOST_ATTEMPTS[push_type]:
        return PushOutcome(PushState.DEAD, None, f"{error}；已尝试 {attempts} 次，放弃")
    wait = min(FIRST_WAIT * 2 ** min(attempts - 1, 16), LONGEST_WAIT)
    return PushOutcome(PushState.FAILED, now + max(wait, timedelta(seconds=retry_after or 0)), error)


def after_death(push_type: PushType, attempts: int, now: datetime, *, keyed: bool) -> PushOutcome:
    """Return the outcome for a message whose sender died, or stopped responding, in its ``attempts``-th attempt.

    Args:
        push_type: Type of the message.
        attempts: Number of attempts, including this one.
        now: The current time.
        keyed: Whether its channel shows a message that is sent again once.
    """
    if push_type in AT_MOST_ONCE and not keyed:
        return PushOutcome(PushState.UNKNOWN, None, "发送中断，不知是否送达；不再自动重发")
    if attempts >= MOST_ATTEMPTS[push_type]:
        return PushOutcome(PushState.DEAD, None, f"发送中断，不知是否送达；已尝试 {attempts} 次，放弃")
    return PushOutcome(PushState.FAILED, now, "发送中断，不知是否送达；重新发送")


def quiet_until(now: datetime, quiet: Sequence[time], zone: ZoneInfo) -> datetime | None:
    """Return the end of the quiet hours that contain ``now``; None outside of them.

    Args:
        now: The current time, aware.
        quiet: Their start and end in ``zone``, possibly across midnight; empty for none.
        zone: Time zone of the quiet hours.
    """
    if not quiet:
        return None
    begin, end = quiet
    local = now.astimezone(zone)
    clock = local.time()
    inside = begin <= clock < end if begin < end else clock >= begin or clock < end
    if not inside:
        return None
    day = local.date() + timedelta(days=1) if clock >= end else local.date()
    return datetime.combine(day, end, zone)


def may_go_out(push_type: PushType, now: datetime, quiet: Sequence[time], zone: ZoneInfo) -> bool:
    """Return whether a message of this type may be sent now: quiet hours delay findings only."""
    return push_type is not PushType.FINDING or quiet_until(now, quiet, zone) is None
