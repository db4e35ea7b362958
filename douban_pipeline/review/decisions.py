"""Recording what reviewers decide. Later runs carry it out; nothing is written to the CMS here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from douban_pipeline.catalog.database import reading, transactions
from douban_pipeline.catalog.states import DecisionAction, DecisionState
from douban_pipeline.catalog.tasks import shard_of
from douban_pipeline.catalog.videos import state_rows
from douban_pipeline.problems import ProblemsError
from douban_pipeline.review.candidates import newest_candidates
from douban_pipeline.services import Services
from douban_pipeline.upstream.subject_urls import SMALLEST_ID


@dataclass(frozen=True, slots=True)
class Wish:
    """One decision as a reviewer wrote it; ``douban_id`` is for ``set_id`` only."""

    vod_id: int
    action: DecisionAction
    douban_id: int = 0
    lock: bool = False


@dataclass(frozen=True, slots=True)
class Recorded:
    """A decision as it was recorded, or would be: with its subject, and whether it stood already."""

    wish: Wish
    douban_id: int
    known: bool


class DecisionError(ProblemsError):
    """Some decisions cannot be recorded, so none is; ``problems`` holds a sentence for each."""


def record(
    services: Services, wishes: Sequence[Wish], *, reviewer: str, note: str, run_id: str, dry_run: bool
) -> list[Recorded]:
    """Record ``wishes`` for the next runs; the same decision twice is harmless, a newer one replaces an older.

    Args:
        services: Database and settings.
        wishes: What was decided.
        reviewer: Who decided; noted with every write that follows.
        note: Why, for the log.
        run_id: The Dagster run that records them.
        dry_run: Check everything, record nothing.

    Raises:
        DecisionError: Anything is wrong with any of them; all problems are told at once.
    """
    with reading(services.engine) as connection:
        problems = [] if reviewer.strip() else ["reviewer: 请填写审核员的名字"]
        problems += [] if wishes else ["decisions: 至少填写一条决定"]
        subjects, wrong = _resolve(services, connection, wishes)
        problems += wrong
    if problems:
        raise DecisionError(problems)
    table = services.tables.decision
    keys = {wish.vod_id: f"{wish.vod_id}:{wish.action}:{subjects[wish.vod_id]}:{int(wish.lock)}" for wish in wishes}
    with reading(services.engine) as connection:
        query = select(table.c.pending_key).where(table.c.pending_key.in_(list(keys.values())))
        known = set(connection.execute(query).scalars())
    recorded = [Recorded(wish, subjects[wish.vod_id], keys[wish.vod_id] in known) for wish in wishes]
    if dry_run:
        return recorded
    now = services.clock.now()
    new = [item.wish for item in recorded if not item.known]
    for transaction in transactions(services.engine):
        with transaction as connection:
            for wish in new:
                connection.execute(
                    update(table)
                    .where(table.c.vod_id == wish.vod_id, table.c.state == DecisionState.PENDING)
                    .values(
                        state=DecisionState.REFUSED,
                        state_reason="被更新的决定取代",
                        pending_key=None,
                        settled_at=now,
                    )
                )
                connection.execute(
                    insert(table).values(
                        vod_id=wish.vod_id,
                        shard=shard_of(wish.vod_id),
                        action=wish.action,
                        douban_id=subjects[wish.vod_id],
                        lock=wish.lock,
                        reviewer=reviewer.strip()[:64],
                        note=note.strip()[:500],
                        state=DecisionState.PENDING,
                        pending_key=keys[wish.vod_id],
                        run_id=run_id,
                        created_at=now,
                    )
                )
            video = services.tables.video
            # Due at once, so that the sensor launches the run that carries it out.
            connection.execute(
                update(video).where(video.c.vod_id.in_([wish.vod_id for wish in new])).values(douban_next_sync_at=now)
            )
    return recorded


def _resolve(services: Services, connection: Connection, wishes: Sequence[Wish]) -> tuple[dict[int, int], list[str]]:
    """Return the subject of each wish by video, and what is wrong."""
    states = state_rows(connection, services.tables, [wish.vod_id for wish in wishes])
    subjects: dict[int, int] = {}
    problems: list[str] = []
    for number, wish in enumerate(wishes, start=1):
        where = f"decisions 第 {number} 条（影片 {wish.vod_id}）"
        if wish.vod_id not in states:
            problems.append(f"{where}：没有这部影片，请把示例换成真实的 vod_id")
        elif wish.vod_id in subjects:
            problems.append(f"{where}：同一部影片有不止一条决定")
        elif wish.action is DecisionAction.set_id and wish.douban_id < SMALLEST_ID:
            problems.append(f"{where}：set_id 需要 douban_id（不小于 {SMALLEST_ID}），现为 {wish.douban_id}")
        elif wish.action is not DecisionAction.set_id and wish.douban_id:
            problems.append(f"{where}：{wish.action} 不使用 douban_id，请改为 0，或改用 set_id")
        elif wish.action is DecisionAction.confirm_top1:
            best = newest_candidates(services, connection, [wish.vod_id], most=1).get(wish.vod_id)
            if best is None:
                problems.append(f"{where}：没有候选条目，请改用 set_id")
            else:
                subjects[wish.vod_id] = best[0].douban_id
        else:
            subjects[wish.vod_id] = wish.douban_id
    return subjects, problems
