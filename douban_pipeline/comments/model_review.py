"""Comments that are shown are read once more by a model, behind their publication: nobody waits for it.

What the model rejects is deleted with the rank of the audit, so that no operator and no automation brings it back;
what it doubts waits for a person. It is weak: while it does not answer, the list of words alone judges. What was not
judged is judged later, within some minutes of its publication; what was judged is marked, and what is judged twice,
after a crash, is decided of once.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Event
from typing import Protocol

from sqlalchemy import Connection, Engine, RowMapping, select, update
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.comments.ids import first_of
from douban_pipeline.comments.plugs import Judgement, PlugError, Verdict
from douban_pipeline.comments.store import tables
from douban_pipeline.comments.store.events import EventInput, append
from douban_pipeline.comments.types import SHARDS, Actor, CommentStatus, EventKind, Rank
from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import reading, run_transaction

_LOG = logging.getLogger(__name__)
MODEL = Actor("model", name="模型", rank=Rank.AUDIT)
"""Rejects with the rank of the audit."""
DOUBTS = Actor("model", name="模型", rank=Rank.AUTOMATION)
"""Sends to a person, who decides."""
AT_ONCE, BATCH = 4, 40
"""Texts that are under way at once, and that one turn takes."""
_FAILURES, _PAUSE = 5, timedelta(seconds=30)


class TextModel(Protocol):
    """Whatever judges texts, such as `plugs.SitePlugs`."""

    def judge(self, comment_id: int, text: str) -> Judgement:
        """Return what becomes of a text.

        Raises:
            PlugError: There is no usable answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class ReviewReport:
    """What a turn came to: how many texts were judged, and how many of them rejected, doubted, or left for later."""

    judged: int = 0
    rejected: int = 0
    doubted: int = 0
    failed: int = 0


class ModelReviewer:
    """Has a model judge what was published lately.

    Args:
        engine: The database of the tables.
        clock: The time.
        owner: The worker whose shards' comments are judged, as it holds them.
        model: Judges.
        minutes: Comments that are older are left alone.
    """

    def __init__(self, engine: Engine, clock: Clock, owner: str, model: TextModel, minutes: int = 60) -> None:
        self._engine, self._clock, self._owner, self._model = engine, clock, owner, model
        self._minutes = timedelta(minutes=minutes)
        self._failed = 0
        self._paused_until: datetime | None = None

    def run(self, stopped: Event, pause: float) -> None:
        """Judge until ``stopped`` is set; wait ``pause`` seconds where there is nothing to judge."""
        with ThreadPoolExecutor(AT_ONCE, "comments-model") as pool:
            while not stopped.is_set():
                try:
                    judged = self.turn(pool).judged
                except SQLAlchemyError:
                    _LOG.exception("the database failed the model's review; it goes on")
                    judged = 0
                if not judged:
                    stopped.wait(pause)

    def turn(self, pool: ThreadPoolExecutor | None = None) -> ReviewReport:
        """Judge some comments, the oldest first; return what came of it. After failures in a row it pauses."""
        now = self._clock.now()
        if self._paused_until is not None and now < self._paused_until:
            return ReviewReport()
        with reading(self._engine) as connection:
            rows = _unjudged(connection, self._owner, first_of(now - self._minutes), now)
        judged = list(pool.map(self._judge, rows) if pool is not None else map(self._judge, rows))
        given = [(row, found) for row, found in zip(rows, judged, strict=True) if found is not None]
        if given:
            run_transaction(self._engine, lambda connection: _record(connection, given, now))
        self._count_failures(len(rows), len(rows) - len(given), now)
        verdicts = [found.verdict for _, found in given]
        return ReviewReport(
            len(given), verdicts.count(Verdict.REJECT), verdicts.count(Verdict.REVIEW), len(rows) - len(given)
        )

    def _judge(self, row: RowMapping) -> Judgement | None:
        try:
            return self._model.judge(row["comment_id"], row["content"])
        except PlugError as error:
            _LOG.warning("the model does not answer: %s", error)
            return None

    def _count_failures(self, asked: int, failed: int, now: datetime) -> None:
        self._failed = self._failed + failed if failed == asked else 0
        self._paused_until = now + _PAUSE if self._failed >= _FAILURES else None


def _unjudged(connection: Connection, owner: str, since: int, now: datetime) -> Sequence[RowMapping]:
    """Return comments that are shown, by people, of the shards of a worker, and were not judged yet."""
    c, shard = tables.comment.c, tables.shard.c
    held = select(shard.shard).where(shard.owner == owner, shard.lease_until > now)
    query = (
        select(c.comment_id, c.section_id, tables.content.c.content)
        .join(tables.content, tables.content.c.comment_id == c.comment_id)
        .where(
            c.comment_id >= since,
            c.status == CommentStatus.NORMAL,
            c.status_rank < Rank.OPERATOR,
            c.source_key.is_(None),
            ~tables.content.c.judged,
            (c.section_id % SHARDS).in_(held),
        )
        .order_by(c.comment_id)
        .limit(BATCH)
    )
    return connection.execute(query).mappings().all()


def _record(connection: Connection, given: Collection[tuple[RowMapping, Judgement]], now: datetime) -> None:
    """Write the events of what is not fine, and mark all as judged, in one transaction."""
    outcomes = {Verdict.REJECT: (MODEL, CommentStatus.DELETED), Verdict.REVIEW: (DOUBTS, CommentStatus.REVIEW)}
    events = []
    for row, found in given:
        if found.verdict in outcomes:
            actor, status = outcomes[found.verdict]
            payload = {"status": int(status), "reason": found.reason or "模型审核"}
            request = f"model:{row['comment_id']}"
            events.append(
                EventInput(row["section_id"], EventKind.SET_STATUS, actor, request, row["comment_id"], payload)
            )
    append(connection, events, now)
    # Not in the comment's own row, which workers write.
    ids = sorted(row["comment_id"] for row, _ in given)
    connection.execute(update(tables.content).where(tables.content.c.comment_id.in_(ids)), {"judged": True})
