"""Writing decisions down: a chunk in one transaction, one launch at a time."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select, update

from douban_pipeline.core.database import insert_missing, transactions
from douban_pipeline.douban.review.recording.elsewhere import CONFIRM_ANYWAY, given_sentence
from douban_pipeline.douban.review.recording.pending import Pending, known_sentence, read_pending
from douban_pipeline.douban.review.recording.rows import Row
from douban_pipeline.douban.review.recording.wishes import MOST_NOTE, Result
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import DecisionState
from douban_pipeline.douban.store.tasks import shard_of

REPLACED = "被更新的决定取代"
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Signature:
    """Who decided and why, the Dagster run, and the batch that holds all of a launch."""

    reviewer: str
    note: str
    run_id: str
    batch_id: str = field(default_factory=lambda: uuid.uuid4().hex[:16])


def store(services: Services, signature: Signature, rows: Sequence[Row]) -> None:
    """Write down ``rows`` that are open, or refused, and settle the open ones.

    What somebody else recorded since they were examined counts: the same decision is known, one that is contradicted
    is replaced, and a subject that was given to another video meanwhile is refused.
    """
    settled: list[tuple[Row, Result, str]] = []
    for transaction in transactions(services.engine):
        with transaction as connection:
            settled = _store(services, connection, signature, rows)
    for row, outcome, reason in settled:
        if outcome == "refused":
            row.refuse(reason)
        else:
            row.settle(outcome, reason)


def _store(
    services: Services, connection: Connection, signature: Signature, rows: Sequence[Row]
) -> list[tuple[Row, Result, str]]:
    now = services.clock.now()
    table, video = services.tables.decision, services.tables.video
    _wait_for_turn(services, connection)
    coming = [row for row in rows if row.open]
    subjects = {row.douban_id for row in coming if row.linking}
    pending = read_pending(services, connection, {row.vod_id for row in coming}, subjects)
    settled = [(row, *_meet(row, pending)) for row in coming]
    recorded = [row for row, outcome, _ in settled if outcome == "recorded"]
    replaced = sorted({decision_id for row in recorded for decision_id in pending.replaced_by(row.wish)})
    if replaced:
        connection.execute(
            update(table)
            .where(table.c.decision_id.in_(replaced), table.c.state == DecisionState.PENDING)
            .values(state=DecisionState.REFUSED, state_reason=REPLACED, pending_key=None, settled_at=now)
        )
    new = [
        {**_values(row, signature), "state": DecisionState.PENDING, "pending_key": row.identity, "created_at": now}
        for row in recorded
    ]
    refused = [(row, row.reason) for row in rows if row.outcome == "refused"]
    refused += [(row, reason) for row, outcome, reason in settled if outcome == "refused"]
    new += [
        {
            **_values(row, signature),
            "state": DecisionState.REFUSED,
            "state_reason": reason[:500],
            "pending_key": None,
            "created_at": now,
            "settled_at": now,
        }
        for row, reason in refused
    ]
    if new:
        insert_missing(connection, table, new, key="pending_key")
    if recorded:
        # Due at once, so that the sensor launches the run that carries it out.
        due = update(video).where(video.c.vod_id.in_([row.vod_id for row in recorded]))
        connection.execute(due.values(douban_next_sync_at=now))
    return settled


def _wait_for_turn(services: Services, connection: Connection) -> None:
    """Let one launch at a time write down a chunk: two that look and then write would not see each other.

    Whoever holds the row of the first video has the turn. It is held for as long as a chunk takes to be written.
    """
    video = services.tables.video
    connection.execute(select(video.c.vod_id).order_by(video.c.vod_id).limit(1).with_for_update())


def _meet(row: Row, pending: Pending) -> tuple[Result, str]:
    """Return what becomes of a row, given what waits now."""
    same = pending.same(row.wish, row.identity, row.fingerprint)
    if same is not None:
        return "known", known_sentence(same)
    others = pending.given_to_others(row.douban_id, row.vod_id) if row.linking else []
    if others and not row.wish.accept_conflicts:
        return "refused", f"{given_sentence(row.douban_id, others, {})}；{CONFIRM_ANYWAY}"
    return "recorded", row.reason


def _values(row: Row, signature: Signature) -> dict[str, Any]:
    wish = row.wish
    return {
        "vod_id": _fitting(wish.vod_id),
        "shard": shard_of(wish.vod_id),
        "action": wish.action,
        "douban_id": _fitting(row.douban_id),
        "lock": wish.lock,
        "days": wish.days if abs(wish.days) < 2**31 else 0,
        "accept_conflicts": wish.accept_conflicts,
        "verdict_id": None if row.verdict_id is None else _fitting(row.verdict_id),
        "fingerprint": row.fingerprint,
        "checked_at": row.checked_at,
        "reviewer": signature.reviewer,
        "note": (wish.note.strip() or signature.note)[:MOST_NOTE],
        "state_reason": "",
        "run_id": signature.run_id,
        "batch_id": signature.batch_id,
        "settled_at": None,
    }


def _fitting(number: int) -> int:
    """Return a number that a refused row names as far as the column holds it."""
    return number if abs(number) <= _LARGEST else 0
