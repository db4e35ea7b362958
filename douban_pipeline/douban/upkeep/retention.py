"""Deletes archived answers that nothing refers to any more.

Why no answer is deleted to which a row is about to refer: the candidates for deletion are chosen at the start, at T:
answers last seen before T minus `ARCHIVE_AGE` minus `MARGIN`. A new reference to an answer comes

- from the source: storing the answer updated its last-seen time. One that is seen again after T is checked again,
  under a lock, in the transaction that would delete it;
- from the cache, which returns nothing last seen more than 30 days ago (`Archive.recent`): a candidate was not read
  from it for longer than `MARGIN` before T, and any reader has stored its reference by T, since a run ends, or loses
  its tasks, within hours;
- from another row. Search answers and subjects pass from an open task to its verdict, the moment the task is closed or
  before, and from a verdict's candidate to the log; verdicts, candidates and the log keep their rows. Therefore open
  tasks are read first: a reference that has left them by then is found in its new place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import Column, ColumnElement, Engine, select

from douban_pipeline.core.database import reading
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.tables import OwnTables

ARCHIVE_AGE = timedelta(days=170)
"""Age from which answers that nothing refers to are deleted, weekly: within the six months that TMDB's terms allow."""
MARGIN = timedelta(days=1)
"""Longer than anybody takes from reading a cached answer to storing a row that names it."""

_DROPPED_AT_ONCE = 500
_ROWS_AT_ONCE = 10_000
_ROWS_PER_REPORT = 1_000_000
_DROPPED_PER_REPORT = 50_000

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PrunedAnswers:
    """Result of pruning the old answers.

    Attributes:
        before: Answers last seen before this time were checked.
        looked_at: Their number.
        kept: Number of those that something refers to.
        reasons: The same by what refers to them, in Chinese; one answer may have several.
        dropped: Number of those deleted, or in a dry run to be deleted.
        dropped_bytes: Their stored size.
    """

    before: datetime
    looked_at: int
    kept: int
    reasons: Mapping[str, int]
    dropped: int
    dropped_bytes: int

    @property
    def seen_again(self) -> int:
        """How many were seen again, or dropped by another run, while this one was under way."""
        return self.looked_at - self.kept - self.dropped


@dataclass(frozen=True, slots=True)
class _Reference:
    """A kind of row that refers to answers.

    Attributes:
        what: The kind, for people.
        key: Its primary key.
        held: The column that names the answers.
        ids: Reads the column's value.
        where: Which rows count.
    """

    what: str
    key: Column[Any]
    held: Column[Any]
    ids: Callable[[Any], Collection[int]]
    where: tuple[ColumnElement[bool], ...] = ()


def prune(services: Services, *, dry_run: bool, progress: Callable[[str], None]) -> PrunedAnswers:
    """Delete answers last seen more than `ARCHIVE_AGE` ago that nothing refers to.

    Takes 9 bytes of memory per old answer, regardless of the number of references. Every deletion is a short
    transaction, so that a run may be interrupted at any time and the next one continues.

    Args:
        services: Of this process.
        dry_run: Only count what would be deleted.
        progress: Called regularly with the progress.
    """
    before = services.clock.now() - ARCHIVE_AGE - MARGIN
    old = _sorted(services.archive.unseen_since(before))
    progress(f"{old.size} answers were last seen before {before:%Y-%m-%d %H:%M} UTC")
    holders = _holders(services.tables) if old.size else []
    # A bit for each kind of row that refers to the answer.
    held = np.zeros(old.size, dtype=np.uint8)
    for bit, holder in enumerate(holders):
        rows = 0
        for ids, read in _named(services.engine, holder):
            held[_places(old, ids)] |= 1 << bit
            rows += read
            if rows % _ROWS_PER_REPORT < read:
                progress(f"{rows} rows of {holder.key.table.name} read so far")
        progress(f"{rows} rows of {holder.key.table.name} read")
    loose = old[held == 0]
    act = services.archive.size_of if dry_run else services.archive.drop
    dropped, dropped_bytes, reported = 0, 0, 0
    for start in range(0, loose.size, _DROPPED_AT_ONCE):
        weight = act(loose[start : start + _DROPPED_AT_ONCE].tolist(), before)
        dropped += weight.answers
        dropped_bytes += weight.bytes
        if dropped - reported >= _DROPPED_PER_REPORT:
            reported = dropped
            progress(f"{dropped} of {loose.size} answers {'looked at' if dry_run else 'deleted'}")
    reasons = {holder.what: int(np.count_nonzero(held & (1 << bit))) for bit, holder in enumerate(holders)}
    return PrunedAnswers(before, int(old.size), int(old.size - loose.size), reasons, dropped, dropped_bytes)


def _holders(tables: OwnTables) -> list[_Reference]:
    """Return everything that refers to answers; open tasks first, see the module's text."""
    task, verdict, candidate, log, intro = tables.task, tables.verdict, tables.candidate, tables.log, tables.intro
    return [
        _Reference("未完成的任务", task.c.task_id, task.c.payload, _of_payload, (task.c.open_key.is_not(None),)),
        _Reference("判定", verdict.c.verdict_id, verdict.c.snapshots, _of_list),
        _Reference("候选条目", candidate.c.candidate_id, candidate.c.snapshot_id, _of_one),
        _Reference("变更记录", log.c.change_id, log.c.snapshot_id, _of_one),
        _Reference("简介", intro.c.intro_id, intro.c.snapshot_id, _of_one),
        _Reference("简介的复核", intro.c.intro_id, intro.c.reading_snapshot_id, _of_one),
    ]


def _of_payload(payload: Mapping[str, Any]) -> list[int]:
    """Read what `match.found_candidates.FoundCandidates.to_payload` wrote; other tasks carry no answers."""
    return [*payload.get("snapshots", ()), *(subject[1] for subject in payload.get("subjects", ()))]


def _of_list(snapshots: list[int]) -> list[int]:
    return snapshots


def _of_one(snapshot_id: int) -> tuple[int]:
    return (snapshot_id,)


def _named(engine: Engine, holder: _Reference) -> Iterator[tuple[Ids, int]]:
    """Yield the answers that rows name, in batches of rows, and how many rows these were."""
    last = 0
    while True:
        query = (
            select(holder.key, holder.held)
            .where(holder.key > last, holder.held.is_not(None), *holder.where)
            .order_by(holder.key)
            .limit(_ROWS_AT_ONCE)
        )
        with reading(engine) as connection:
            rows = connection.execute(query).all()
        if not rows:
            return
        last = rows[-1][0]
        ids = [snapshot_id for _, held in rows for snapshot_id in holder.ids(held)]
        yield np.array(ids, dtype=np.int64), len(rows)


def _sorted(batches: Iterator[list[int]]) -> Ids:
    arrays = [np.array(batch, dtype=np.int64) for batch in batches]
    ids = np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)
    ids.sort()
    return ids


def _places(old: Ids, ids: Ids) -> npt.NDArray[np.intp]:
    """Return the positions in the sorted ``old`` of those of ``ids`` that are in it."""
    places = np.minimum(np.searchsorted(old, ids), old.size - 1)
    return places[old[places] == ids]
