"""The table of slots: their leases, results, and the totals of days."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update
from sqlalchemy.exc import IntegrityError

from douban_pipeline.core.leases import Leases
from douban_pipeline.core.owner import is_dead
from douban_pipeline.digest.store.tables import slot_run
from douban_pipeline.digest.types import SlotRow, SlotStatus

_LONGEST_ERROR = 4000
_LEASES = Leases(slot_run.c.run_id, slot_run.c.lease_owner, slot_run.c.lease_until)


class SlotClaim(enum.StrEnum):
    """Result of claiming a slot."""

    TAKEN = "taken"
    """It is leased to this run."""
    DONE = "done"
    """It has succeeded already; there is nothing to do."""
    BUSY = "busy"
    """Another run is working on it."""


@dataclass(frozen=True, slots=True)
class ClaimedSlot:
    """Result of claiming a slot, with its id; ``died`` is the dead owner it was taken over from, if any."""

    claim: SlotClaim
    run_id: int
    pushes: bool
    died: str = ""


class SlotLost(Exception):  # noqa: N818 (it says what happened)
    """The lease of a slot expired and another run took it over, so this run may not change it any more."""


def claim(
    connection: Connection,
    run_date: date,
    slot: str,
    *,
    scheduled_at: datetime,
    owner: str,
    now: datetime,
    lease: timedelta,
    pushes: bool,
    dagster_run_id: str = "",
) -> ClaimedSlot:
    """Claim a slot, creating its row if needed.

    A slot that failed, whose run died, or that this owner already holds can be claimed.
    """
    here = (slot_run.c.run_date == run_date) & (slot_run.c.slot == slot)
    query = select(slot_run).where(here).with_for_update()
    taken = {
        "status": SlotStatus.RUNNING.value,
        "pushes": pushes,
        "dagster_run_id": dagster_run_id,
        "updated_at": now,
    }
    row = connection.execute(query).one_or_none()
    if row is None:
        first = {"run_date": run_date, "slot": slot, "scheduled_at": scheduled_at, "error": "", "counters": {}}
        held = {"lease_owner": owner, "lease_until": now + lease}
        try:
            with connection.begin_nested():
                inserted = connection.execute(
                    insert(slot_run).values(**first, **held, **taken, attempts=1, started_at=now)
                )
            assert inserted.inserted_primary_key is not None
            return ClaimedSlot(SlotClaim.TAKEN, int(inserted.inserted_primary_key[0]), pushes)
        except IntegrityError:
            row = connection.execute(query).one()
    if row.status == SlotStatus.SUCCESS.value:
        return ClaimedSlot(SlotClaim.DONE, row.run_id, row.pushes)
    running = row.status == SlotStatus.RUNNING.value
    # A step of the same run may be another process.
    same_run = running and _run_of(row.lease_owner) == _run_of(owner)
    again = {"attempts": row.attempts + 1, "error": "", "stage": "", "finished_at": None}
    mine = _LEASES.take(
        connection,
        owner,
        [row.run_id],
        now=now,
        until=now + lease,
        values={"updated_at": now} if same_run else {**taken, **again},
        instead_of=[row.lease_owner] if same_run or is_dead(row.lease_owner) else [],
    )
    if not mine:
        return ClaimedSlot(SlotClaim.BUSY, row.run_id, row.pushes)
    died = row.lease_owner if running and not same_run else ""
    return ClaimedSlot(SlotClaim.TAKEN, row.run_id, mine[0].pushes, died)


def renew(connection: Connection, run_id: int, owner: str, now: datetime, lease: timedelta, **changes: Any) -> None:
    """Extend the lease of a slot, and store ``changes`` of its row.

    Raises:
        SlotLost: It belongs to another run, or has ended.
    """
    if _LEASES.renew(connection, owner, [run_id], now + lease, {"updated_at": now, **changes}):
        raise SlotLost(f"slot run {run_id} is no longer this run's")


def add_counters(connection: Connection, run_id: int, owner: str, counters: Mapping[str, Any]) -> None:
    """Add counters to the stored ones; those of the same name are replaced.

    Raises:
        SlotLost: It belongs to another run.
    """
    query = select(slot_run.c.counters).where(slot_run.c.run_id == run_id, slot_run.c.lease_owner == owner)
    known = connection.execute(query.with_for_update()).scalar_one_or_none()
    if known is None:
        raise SlotLost(f"slot run {run_id} is no longer this run's")
    changed = update(slot_run).where(slot_run.c.run_id == run_id).values(counters={**known, **counters})
    connection.execute(changed)


def finish(connection: Connection, run_id: int, owner: str, status: SlotStatus, error: str, now: datetime) -> None:
    """End a slot held by this owner.

    Raises:
        SlotLost: It belongs to another run.
    """
    if not _LEASES.finish(connection, run_id, owner, {**_ended(status, error, now), "stage": ""}):
        raise SlotLost(f"slot run {run_id} is no longer this run's")


def fail_abandoned(connection: Connection, run_date: date, slot: str, error: str, now: datetime) -> bool:
    """Mark a slot without a live run as failed; return whether it was one."""
    query = select(slot_run).where(slot_run.c.run_date == run_date, slot_run.c.slot == slot).with_for_update()
    row = connection.execute(query).one_or_none()
    if row is None or row.status != SlotStatus.RUNNING.value:
        return False
    if row.lease_until > now and not is_dead(row.lease_owner):
        return False
    return _LEASES.finish(connection, row.run_id, row.lease_owner, _ended(SlotStatus.FAILED, error, now))


def _ended(status: SlotStatus, error: str, now: datetime) -> dict[str, Any]:
    return {"status": status.value, "error": error[:_LONGEST_ERROR], "finished_at": now, "updated_at": now}


def of_day(connection: Connection, run_date: date) -> list[SlotRow]:
    """Return the slots of a day, in order."""
    query = select(slot_run).where(slot_run.c.run_date == run_date).order_by(slot_run.c.slot)
    return [_slot(row) for row in connection.execute(query)]


def between(connection: Connection, first: date, last: date) -> list[SlotRow]:
    """Return the slots of the days ``first`` to ``last``, both included, the newest first."""
    query = (
        select(slot_run)
        .where(slot_run.c.run_date.between(first, last))
        .order_by(slot_run.c.run_date.desc(), slot_run.c.slot.desc())
    )
    return [_slot(row) for row in connection.execute(query)]


def find(connection: Connection, run_date: date, slot: str) -> SlotRow | None:
    """Return one slot, None if it was never started."""
    query = select(slot_run).where(slot_run.c.run_date == run_date, slot_run.c.slot == slot)
    row = connection.execute(query).one_or_none()
    return None if row is None else _slot(row)


def first_moment(connection: Connection) -> datetime | None:
    """Return when the first slot of all was due, None if none was ever run; the digest is in use since then."""
    query = select(slot_run.c.scheduled_at).order_by(slot_run.c.run_date, slot_run.c.slot).limit(1)
    return connection.execute(query).scalar()


def last_ended(connection: Connection, most: int) -> Sequence[SlotRow]:
    """Return the last slots that ended, newest first."""
    ended = [SlotStatus.SUCCESS.value, SlotStatus.FAILED.value]
    query = select(slot_run).where(slot_run.c.status.in_(ended))
    query = query.order_by(slot_run.c.run_date.desc(), slot_run.c.slot.desc()).limit(most)
    return [_slot(row) for row in connection.execute(query)]


def _run_of(owner: str) -> str:
    """Return the run of an owner, without the process: steps may be processes of their own."""
    return owner.rpartition("@")[0]


def _slot(row: Row[Any]) -> SlotRow:
    return SlotRow(
        row.run_id,
        row.run_date,
        row.slot,
        SlotStatus(row.status),
        row.pushes,
        row.error,
        row.scheduled_at,
        row.started_at,
        row.finished_at,
        row.counters or {},
    )
