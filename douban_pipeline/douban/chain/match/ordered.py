"""Rechecks that a person orders: which links, and putting them into the queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from douban_pipeline.cms.values import readable
from douban_pipeline.core.database import chunks, reading, run_transaction
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.douban.chain.match.rechecks import search_refusal
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import IdSource, ReviewStatus, TaskStage, TaskType
from douban_pipeline.douban.store.tasks import NOTE, ORDERED_PRIORITY, REVIEWER, NewTask
from douban_pipeline.douban.store.videos import state_rows

MOST_RECHECKS = 2000
"""Links in one launch: each takes a search and some requests."""

_QUEUED = "已有未完成的复查"
_NO_CATEGORY = "分类不在处理范围内"


@dataclass(frozen=True, slots=True)
class RecheckOrder:
    """Which links are judged again, by whose order and why.

    Attributes:
        vod_ids: These videos; none for all that the others fit.
        sources: Only links of these sources; none for any.
        type_ids: Only videos of these categories; none for any.
        most: At most so many, those whose next visit is nearest first.
    """

    reviewer: str
    note: str
    vod_ids: Sequence[int] = ()
    sources: Sequence[str] = ()
    type_ids: Sequence[int] = ()
    most: int = 100

    def problems(self) -> list[str]:
        """Return why it cannot be queued at all, in Chinese."""
        found = [] if self.reviewer.strip() else ["reviewer: 请填写你的名字"]
        if not (self.vod_ids or self.sources or self.type_ids):
            found.append("vod_ids、sources、type_ids: 至少填写一项")
        unknown = sorted(set(self.sources) - set(IdSource))
        if unknown:
            found.append(f"sources: 没有 {'、'.join(unknown)}，可用 {'、'.join(IdSource)}")
        if not 1 <= self.most <= MOST_RECHECKS:
            found.append(f"max_rows: 须在 1 至 {MOST_RECHECKS} 之间，现为 {self.most}")
        return found


@dataclass(frozen=True, slots=True)
class OrderedRecheck:
    """A link that was chosen, and why it is not queued; an empty reason where it is."""

    vod_id: int
    title: str
    douban_id: int
    source: str
    refusal: str = ""


def order_rechecks(services: Services, order: RecheckOrder, *, run_id: str, dry_run: bool) -> list[OrderedRecheck]:
    """Queue the rechecks of an order, and return them; the next runs of their shards do them.

    Raises:
        ProblemsError: The order cannot be queued; all that is wrong with it.
    """
    problems = order.problems()
    if problems:
        raise ProblemsError(problems)
    with reading(services.engine) as connection:
        vod_ids = list(dict.fromkeys(order.vod_ids))[: order.most] or _chosen(services, connection, order)
        found = _examined(services, connection, vod_ids, order)
    payload = {REVIEWER: order.reviewer.strip(), NOTE: order.note.strip()}
    tasks = [
        NewTask(item.vod_id, TaskType.RECHECK, TaskStage.SEARCH, ORDERED_PRIORITY, payload)
        for item in found
        if not item.refusal
    ]
    if not dry_run:
        queue = services.queue(run_id)
        run_transaction(services.engine, lambda connection: queue.enqueue(connection, tasks, run_id=run_id))
    return found


def _chosen(services: Services, connection: Connection, order: RecheckOrder) -> list[int]:
    video = services.tables.video
    query = select(video.c.vod_id).where(
        video.c.douban_review_status == ReviewStatus.CONFIRMED,
        video.c.douban_next_sync_at.is_not(None),
        video.c.vod_douban_id > 0,
    )
    if order.sources:
        query = query.where(video.c.douban_id_source.in_(order.sources))
    if order.type_ids:
        query = query.where(video.c.type_id.in_(order.type_ids))
    return list(connection.execute(query.order_by(video.c.douban_next_sync_at).limit(order.most)).scalars())


def _examined(
    services: Services, connection: Connection, vod_ids: Sequence[int], order: RecheckOrder
) -> list[OrderedRecheck]:
    task = services.tables.task
    found: list[OrderedRecheck] = []
    for chunk in chunks(vod_ids):
        rows, states = services.cms.rows(connection, chunk), state_rows(connection, services.tables, chunk)
        keys = [f"{vod_id}:{TaskType.RECHECK}" for vod_id in chunk]
        queued = set(connection.execute(select(task.c.vod_id).where(task.c.open_key.in_(keys))).scalars())
        for vod_id in chunk:
            row, state = rows.get(vod_id), states.get(vod_id)
            refusal = _refusal(services, row, state) or (_QUEUED if vod_id in queued else "")
            found.append(
                OrderedRecheck(
                    vod_id,
                    readable(row["vod_name"]) if row is not None else "",
                    state["vod_douban_id"] if state is not None else 0,
                    state["douban_id_source"] if state is not None else "",
                    refusal,
                )
            )
    return found


def _refusal(services: Services, row: RowMapping | None, state: Mapping[Any, Any] | None) -> str:
    refusal = search_refusal(TaskType.RECHECK, row, state)
    if refusal is not None:
        return refusal.sentence
    assert state is not None
    return "" if services.settings.works_on(state["type_id"]) else _NO_CATEGORY
