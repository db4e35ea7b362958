"""The outbox, table ``notification_log``: one row per message and channel.

A slot writes its rows in the transaction that ends the slot; senders claim them one by one (`core.leases`). The owner
of a claim is a token, unique to it, so that a sender considered dead cannot change the row any more.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from douban_pipeline.core.leases import Leases
from douban_pipeline.core.messages.types import Message
from douban_pipeline.core.owner import is_dead, owner_name
from douban_pipeline.digest.push.rules import (
    LEASE,
    MINUTE,
    WAITING,
    PushOutcome,
    PushState,
    PushType,
    after_death,
    message_id,
    payload_hash,
)
from douban_pipeline.digest.store.tables import notification_log as log

_LEASES = Leases(log.c.id, log.c.lease_owner, log.c.lease_until)
_MOST_TITLE, _MOST_BODY, _MOST_URL, _MOST_ERROR = 300, 15_000, 500, 2000
"""Characters that fit the columns; MySQL's TEXT has 65,535 bytes, and a character takes up to four."""


@dataclass(frozen=True, slots=True)
class Notification:
    """One row of the outbox.

    Attributes:
        parts_sent: Number of parts accepted by the platform.
        parts: Number of parts; 0 before the first was sent.
    """

    id: int
    msg_uuid: str
    report_date: date
    slot: str
    push_type: PushType
    channel: str
    target_url: str
    title: str
    body: str
    state: PushState
    attempts: int
    next_attempt_at: datetime | None
    error: str
    created_at: datetime
    sent_at: datetime | None
    parts_sent: int
    parts: int

    @property
    def message(self) -> Message:
        """The message to send."""
        cause = f"{self.push_type}:{self.report_date}:{self.slot}"
        kind = self.push_type.value
        return Message(self.title, self.body, kind, cause, self.created_at, self.target_url, self.msg_uuid)


@dataclass(frozen=True, slots=True)
class NotificationClaim:
    """A message leased to this sender: the row as claimed, and the token."""

    row: Notification
    token: str


# --- writing --------------------------------------------------------------------------------------------------------


def enqueue(
    connection: Connection,
    *,
    report_date: date,
    slot: str,
    push_type: str,
    target_url: str,
    title: str,
    body: str,
    channels: Sequence[str],
    now: datetime,
) -> int:
    """Put a message into the outbox for each of ``channels``, within the caller's transaction.

    There is one message per date, slot, type and channel; an existing one is kept. Its text is replaced if no attempt
    to send it was made yet, so that a slot that is run again sends its latest result.

    Returns:
        The number of new messages.

    Raises:
        ValueError: The type is not in `PushType`, or the address is too long.
    """
    push_type = PushType(push_type)
    if len(target_url) > _MOST_URL:
        raise ValueError(f"an address of {len(target_url)} characters; the maximum is {_MOST_URL}")
    words = {
        "target_url": target_url,
        "title": " ".join(title.split())[:_MOST_TITLE],
        "body": body[:_MOST_BODY],
        "payload_hash": payload_hash(title, body, target_url),
        "updated_at": now,
    }
    new = 0
    for channel in dict.fromkeys(channels):
        place = (
            (log.c.report_date == report_date)
            & (log.c.slot == slot)
            & (log.c.push_type == push_type.value)
            & (log.c.channel == channel)
        )
        given = {
            **words,
            "msg_uuid": message_id(report_date, slot, push_type, channel, target_url),
        }
        untried = place & (log.c.state == PushState.PENDING.value) & (log.c.attempts == 0)
        if connection.execute(update(log).where(untried).values(**given)).rowcount:
            continue
        if connection.execute(select(log.c.id).where(place)).first() is None:
            row = {
                **given,
                "report_date": report_date,
                "slot": slot,
                "push_type": push_type.value,
                "channel": channel,
                "state": PushState.PENDING.value,
                "next_attempt_at": now,
                "created_at": now,
            }
            try:
                with connection.begin_nested():
                    connection.execute(insert(log), row)
            except IntegrityError:
                continue  # another run of the slot inserted it first
            new += 1
    return new


def claim(connection: Connection, notification_id: int, run_id: str, now: datetime) -> NotificationClaim | None:
    """Lease a message to this sender and count the attempt; return None if it is no longer due, or leased to
    another."""
    token = owner_name(f"{run_id[:40]}#{uuid.uuid4().hex[:12]}")
    tried = {"state": PushState.SENDING.value, "attempts": log.c.attempts + 1, "updated_at": now}
    rows = _LEASES.take(
        connection, token, [notification_id], now=now, until=now + LEASE, where=(_due(now),), values=tried
    )
    return NotificationClaim(_read(rows[0]), token) if rows else None


def renew(connection: Connection, held: NotificationClaim, sent: int, count: int, said: str, now: datetime) -> bool:
    """Store how many parts were accepted and extend the lease; return whether this sender still holds the message."""
    response = json.dumps({"sent": sent, "count": count, "said": said}, ensure_ascii=False)
    values = {"response": response, "updated_at": now}
    return not _LEASES.renew(connection, held.token, [held.row.id], now + LEASE, values)


def finish(connection: Connection, held: NotificationClaim, outcome: PushOutcome, now: datetime) -> bool:
    """Store how an attempt ended; return False, changing nothing, if this sender no longer holds the message."""
    values = {
        "state": outcome.state.value,
        "next_attempt_at": outcome.next_attempt_at,
        "error": outcome.error[:_MOST_ERROR] or None,
        "updated_at": now,
        **({"sent_at": now} if outcome.state is PushState.SENT else {}),
    }
    return _LEASES.finish(connection, held.row.id, held.token, values)


def release_abandoned(connection: Connection, now: datetime, keyed: Collection[str] = ()) -> list[Notification]:
    """Release messages whose sender died or whose lease expired; return them with their new state.

    A completely accepted message becomes SENT; otherwise a finding becomes UNKNOWN, and a report, or a finding on one
    of the channels ``keyed``, is sent again unless it was tried as often as it may be.
    """
    found: list[Notification] = []
    for row in connection.execute(select(log).where(log.c.state == PushState.SENDING.value)).all():
        if not _is_abandoned(row, now):
            continue
        held = NotificationClaim(_read(row), row.lease_owner)
        taken = held.row.parts and held.row.parts_sent == held.row.parts
        outcome = PushOutcome(PushState.SENT, None, "")
        if not taken:
            outcome = after_death(held.row.push_type, row.attempts, now, keyed=held.row.channel in keyed)
        if finish(connection, held, outcome, now):
            found.append(held.row)
    ids = [each.id for each in found]
    return [_read(row) for row in connection.execute(select(log).where(log.c.id.in_(ids)))] if ids else []


def _is_abandoned(row: Row[Any], now: datetime) -> bool:
    return row.lease_until is None or row.lease_until <= now or is_dead(row.lease_owner)


def requeue(connection: Connection, ids: Sequence[int], now: datetime) -> list[int]:
    """Make messages due again like new ones, except those a sender holds; return the ids of the others."""
    changed: list[int] = []
    for notification_id in ids:
        where = (log.c.id == notification_id) & (log.c.state != PushState.SENDING.value)
        values = {
            "state": PushState.PENDING.value,
            "attempts": 0,
            "next_attempt_at": now,
            "response": None,
            "error": None,
            "sent_at": None,
            "updated_at": now,
        }
        if connection.execute(update(log).where(where).values(**values)).rowcount:
            changed.append(notification_id)
    return changed


# --- reading --------------------------------------------------------------------------------------------------------


def _due(now: datetime) -> ColumnElement[bool]:
    at_its_time = or_(log.c.next_attempt_at.is_(None), log.c.next_attempt_at <= now)
    return and_(log.c.state.in_([state.value for state in WAITING]), at_its_time)


def due(connection: Connection, now: datetime, most: int) -> list[Notification]:
    """Return messages that are due: reports first, then alerts, then findings, the oldest first."""
    query = select(log).where(_due(now)).order_by(log.c.push_type.desc(), log.c.id).limit(most)
    rows = [_read(row) for row in connection.execute(query)]
    order = (PushType.REPORT, PushType.UNDELIVERED, PushType.ALERT, PushType.FINDING)
    return sorted(rows, key=lambda row: (order.index(row.push_type), row.id))


def waiting(
    connection: Connection, now: datetime, push_types: Collection[PushType] = tuple(PushType)
) -> tuple[int, int, datetime | None]:
    """Return the number of due messages of given types, of abandoned ones, and the time of the next retry."""
    of_type = log.c.push_type.in_([each.value for each in push_types])
    counts = connection.execute(select(func.count()).where(_due(now), of_type)).scalar_one()
    sending = select(log.c.lease_until, log.c.lease_owner).where(log.c.state == PushState.SENDING.value)
    left = sum(_is_abandoned(row, now) for row in connection.execute(sending))
    later = select(func.min(log.c.next_attempt_at)).where(log.c.state == PushState.FAILED.value)
    return int(counts), left, connection.execute(later.where(log.c.next_attempt_at > now)).scalar()


def attempts_since(connection: Connection, channel: str, moment: datetime) -> int:
    """Return how many attempts were made on a channel since a moment."""
    tried = (log.c.channel == channel) & (log.c.attempts > 0) & (log.c.updated_at > moment)
    return int(connection.execute(select(func.count()).where(tried)).scalar_one())


def attempts_of_minute(connection: Connection, channel: str, now: datetime) -> int:
    """Return how many attempts were made on a channel within the last minute."""
    return attempts_since(connection, channel, now - MINUTE)


def select_notifications(
    connection: Connection,
    *,
    ids: Sequence[int] = (),
    report_date: date | None = None,
    slot: str = "",
    push_type: str = "",
    channels: Sequence[str] = (),
    states: Sequence[str] = (),
    most: int = 1000,
) -> list[Notification]:
    """Return messages, newest first; an argument that is not given does not filter."""
    query = select(log).order_by(log.c.report_date.desc(), log.c.id.desc()).limit(most)
    query = query.where(log.c.id.in_(ids)) if ids else query
    query = query.where(log.c.report_date == report_date) if report_date else query
    query = query.where(log.c.slot == slot) if slot else query
    query = query.where(log.c.push_type == push_type) if push_type else query
    query = query.where(log.c.channel.in_(channels)) if channels else query
    query = query.where(log.c.state.in_(states)) if states else query
    return [_read(row) for row in connection.execute(query)]


def _read(row: Row[Any]) -> Notification:
    said = json.loads(row.response) if row.response else {}
    return Notification(
        id=row.id,
        msg_uuid=row.msg_uuid,
        report_date=row.report_date,
        slot=row.slot,
        push_type=PushType(row.push_type),
        channel=row.channel,
        target_url=row.target_url,
        title=row.title,
        body=row.body,
        state=PushState(row.state),
        attempts=row.attempts,
        next_attempt_at=row.next_attempt_at,
        error=row.error or "",
        created_at=row.created_at,
        sent_at=row.sent_at,
        parts_sent=int(said.get("sent", 0)),
        parts=int(said.get("count", 0)),
    )
