"""What becomes of a message, and when it may go out. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

_SEPARATOR = "\x1f"
"""In no field, so that no two different sets of fields are one text."""
FIRST_WAIT = timedelta(seconds=30)
LONGEST_WAIT = timedelta(minutes=30)
LEASE = timedelta(minutes=3)
"""How long a message stays a silent sender's; one part takes seconds, and each renews it."""
MINUTE = timedelta(minutes=1)


class PushType(StrEnum):
    """Why a message is sent."""

    FINDING = "finding"
    REPORT = "report"
    ALERT = "alert"


class PushState(StrEnum):
    """Where a message stands.

    PENDING was never tried; SENDING is a sender's; SENT was taken; FAILED was refused, and is tried again at its time;
    UNKNOWN may have arrived, and is not tried again by itself; DEAD was given up.
    """

    PENDING = "pending"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    UNKNOWN = "unknown"
    DEAD = "dead"


WAITING = (PushState.PENDING, PushState.FAILED)
"""States from which a message is sent."""
AT_MOST_ONCE = frozenset({PushType.FINDING})
"""What is not sent again where it may have arrived. The report and alerts are: rather twice than never."""
MOST_ATTEMPTS = {PushType.FINDING: 8, PushType.REPORT: 100, PushType.ALERT: 30}
"""Attempts after which a message is given up: about an hour for a finding, two days for a report."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an attempt ends with.

    Attributes:
        state: The message's new state.
        next_attempt_at: When it is tried again; None for never.
        error: Why it was not taken; empty where it was.
    """

    state: PushState
    next_attempt_at: datetime | None
    error: str


def message_id(report_date: date, slot: str, push_type: str, channel: str, target_url: str) -> str:
    """Return the id of a message: the same for the same push, of which each channel has its own."""
    fields = (report_date.isoformat(), slot, push_type, channel, target_url)
    return hashlib.sha1(_SEPARATOR.join(fields).encode(), usedforsecurity=False).hexdigest()


def payload_hash(title: str, body: str, target_url: str) -> str:
    """Return what two messages of the same content have in common."""
    return hashlib.sha256(_SEPARATOR.join((title, body, target_url)).encode()).hexdigest()


def after_failure(
    push_type: PushType, attempts: int, error: str, *, uncertain: bool, retry_after: float | None, now: datetime
) -> Outcome:
    """Return what becomes of a message that was not taken, as far as is known.

    Args:
        push_type: What it is.
        attempts: How often it was tried, this time included.
        error: Why, in a sentence.
        uncertain: Whether it may have arrived nevertheless.
        retry_after: Seconds the platform asks to wait.
        now: When that was.
    """
    if uncertain and push_type in AT_MOST_ONCE:
        return Outcome(PushState.UNKNOWN, None, f"{error}；可能已送达，不再自动重发")
    if attempts >= MOST_ATTEMPTS[push_type]:
        return Outcome(PushState.DEAD, None, f"{error}；已尝试 {attempts} 次，放弃")
    wait = min(FIRST_WAIT * 2 ** min(attempts - 1, 16), LONGEST_WAIT)
    return Outcome(PushState.FAILED, now + max(wait, timedelta(seconds=retry_after or 0)), error)


def after_death(push_type: PushType, now: datetime) -> Outcome:
    """Return what becomes of a message whose sender died, or fell silent, while it was sending."""
    if push_type in AT_MOST_ONCE:
        return Outcome(PushState.UNKNOWN, None, "发送中断，不知是否送达；不再自动重发")
    return Outcome(PushState.FAILED, now, "发送中断，不知是否送达；重新发送")


def quiet_until(now: datetime, quiet: Sequence[time], zone: ZoneInfo) -> datetime | None:
    """Return when the quiet hours end that ``now`` is in; None outside of them.

    Args:
        now: The moment, aware.
        quiet: Their beginning and end on the clock of ``zone``, which may go over midnight; empty for none.
        zone: Whose clock.
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
    """Return whether a message of this type is sent now: quiet hours hold back findings, and nothing else."""
    return push_type is not PushType.FINDING or quiet_until(now, quiet, zone) is None
