"""TMDB's facts that were stored with verdicts are removed before TMDB's terms end, in every column that holds some.

Ids, scores, outcomes and which kinds of facts TMDB added stay: they are ours, and explain the link. Verdicts hold the
facts themselves in one column, and search answers may have been asked for with them. Before texts stopped repeating
them, rows got them too, which this removes by value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, RowMapping, String, func, or_, select, type_coerce, update

from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.ui.tmdb_attribution import MENTION
from douban_pipeline.douban.evidence.added_facts import EVIDENCE, Added, posters_of, stored_facts, without_added
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.verdict_facts import video_of
from douban_pipeline.matching import parse_title

TERM = timedelta(days=180)
"""TMDB's terms allow a cache of six months."""
EARLY = timedelta(days=2)
"""How long before its end facts are removed, so that a night without the job breaks no terms."""

_BATCH = 200
_KINDS = "别名|年份|导演|主演"
_LISTED = re.compile(rf"{MENTION}(\S+?)(?:，IMDb [^：]*)?：(?:{_KINDS}) .*）", re.DOTALL)
"""What explanations ended with before they stopped listing the facts. Names may hold brackets: it ends the text."""


@dataclass(frozen=True, slots=True)
class Overdue:
    """A column that holds facts of TMDB for longer than its terms allow.

    Attributes:
        column: Table and column, with a point between.
        rows: How many rows do.
    """

    column: str
    rows: int


@dataclass(frozen=True, slots=True)
class _Text:
    """A column of texts that may list TMDB's facts: the row's key, its video, and when it was written."""

    column: Column[Any]
    key: Column[Any]
    vod_id: Column[Any]
    written_at: Column[Any]


def _texts(tables: OwnTables) -> Sequence[_Text]:
    verdict, video, log, task = tables.verdict, tables.video, tables.log, tables.task
    return (
        _Text(verdict.c.explanation, verdict.c.verdict_id, verdict.c.vod_id, verdict.c.created_at),
        _Text(video.c.douban_review_reason, video.c.vod_id, video.c.vod_id, video.c.douban_last_sync_at),
        *(
            _Text(column, log.c.change_id, log.c.vod_id, log.c.prepared_at)
            for column in (log.c.reason, log.c.state_old, log.c.state_new)
        ),
        _Text(task.c.last_error, task.c.task_id, task.c.vod_id, task.c.created_at),
    )


def expire(services: Services, *, dry_run: bool = False) -> int:
    """Remove TMDB's facts that are nearly as old as its terms allow; return from how many verdicts.

    May be interrupted at any time: each verdict is a transaction, and the next run goes on.

    Args:
        services: Database, archive and clock.
        dry_run: Only count.
    """
    before, removed = services.clock.now() - TERM + EARLY, 0
    for row in _holding(services, before):
        if not dry_run:
            dropped = _drop_answers(services, row, before)
            run_transaction(services.engine, partial(_empty, tables=services.tables, row=row, dropped=dropped))
        removed += 1
    return removed


def overdue(services: Services, connection: Connection) -> list[Overdue]:
    """Return the columns that hold facts of TMDB older than its terms allow, by what is in them."""
    before = services.clock.now() - TERM
    facts = services.tables.verdict.c.facts
    counts = {facts: sum(1 for _ in _holding(services, before))}
    for text in _texts(services.tables):
        query = select(func.count()).where(_lists_facts(text.column), text.written_at < before)
        counts[text.column] = int(connection.execute(query).scalar_one())
    return [Overdue(str(column), rows) for column, rows in counts.items() if rows]


def _holding(services: Services, before: datetime) -> Iterator[RowMapping]:
    """Yield the verdicts with facts that TMDB said before a moment, the oldest verdicts first."""
    verdict, last = services.tables.verdict, 0
    columns = (verdict.c.verdict_id, verdict.c.vod_id, verdict.c.facts, verdict.c.snapshots, verdict.c.created_at)
    # As JSON is stored; a quote within a text would have a backslash.
    held = type_coerce(verdict.c.facts, String).contains(f'"{EVIDENCE}": {{', autoescape=True)
    while True:
        query = select(*columns).where(verdict.c.verdict_id > last, held).order_by(verdict.c.verdict_id).limit(_BATCH)
        with reading(services.engine) as connection:
            rows = connection.execute(query).mappings().all()
        yield from (row for row in rows if _said_at(row) < before)
        if len(rows) < _BATCH:
            return
        last = rows[-1]["verdict_id"]


def _said_at(row: RowMapping) -> datetime:
    """Return when TMDB said what a verdict holds; where that was not stored, it was not after the verdict."""
    added = Added.of_facts(row["facts"])
    created: datetime = row["created_at"]
    return min(created, datetime.fromisoformat(added.said_at)) if added is not None and added.said_at else created


def _empty(connection: Connection, tables: OwnTables, row: RowMapping, dropped: Sequence[int]) -> None:
    """Take the facts out of a verdict, its candidates, and what was written about its video."""
    added = Added.of_facts(row["facts"])
    assert added is not None
    verdict, candidate = tables.verdict, tables.candidate
    facts = stored_facts(without_added(video_of(row["facts"]), added), added.left(), posters_of(row["facts"]))
    snapshots = [each for each in row["snapshots"] or () if each not in dropped]
    connection.execute(
        update(verdict).where(verdict.c.verdict_id == row["verdict_id"]).values(facts=facts, snapshots=snapshots)
    )
    for column in (candidate.c.points, candidate.c.conflicts):
        of_verdict = (candidate.c.verdict_id == row["verdict_id"], column.is_not(None))
        _clean(connection, column, candidate.c.candidate_id, of_verdict, added)
    for text in _texts(tables):
        of_video = (text.vod_id == row["vod_id"], _names_tmdb(text.column))
        _clean(connection, text.column, text.key, of_video, added)


def _clean(
    connection: Connection,
    column: Column[Any],
    key: Column[Any],
    conditions: Sequence[ColumnElement[bool]],
    added: Added,
) -> None:
    rows = connection.execute(select(key, column).where(*conditions)).tuples().all()
    for number, value in rows:
        cleaned = _cleaned(value, added)
        if cleaned != value:
            connection.execute(update(column.table).where(key == number).values({column: cleaned}))


def _cleaned(value: Any, added: Added) -> Any:
    """Return a text, or a value with texts in it, without what TMDB says."""
    if isinstance(value, str):
        text = added.without_values(value)
        return _LISTED.sub(lambda found: added.sentence if found[1] == added.key else found[0], text)
    if isinstance(value, list):
        return [_cleaned(each, added) for each in value]
    if isinstance(value, dict):
        return {name: _cleaned(each, added) for name, each in value.items()}
    return value


def _names_tmdb(column: Column[Any]) -> ColumnElement[bool]:
    return type_coerce(column, String).contains(MENTION)


def _lists_facts(column: Column[Any]) -> ColumnElement[bool]:
    return or_(*(type_coerce(column, String).like(f"%{MENTION}%：{kind} %") for kind in _KINDS.split("|")))


def _drop_answers(services: Services, row: RowMapping, before: datetime) -> list[int]:
    """Delete the search answers of a verdict that were asked for in TMDB's words and not since; return their ids."""
    added = Added.of_facts(row["facts"])
    assert added is not None
    names = {parse_title(alias).display for alias in added.aliases}.union(added.aliases, added.directors, added.actors)
    snapshot = services.tables.snapshot
    query = select(snapshot.c.snapshot_id, snapshot.c.request_key).where(
        snapshot.c.snapshot_id.in_(row["snapshots"] or ()),
        snapshot.c.request_key.startswith("search:"),
        snapshot.c.seen_at < before,
    )
    with reading(services.engine) as connection:
        asked = connection.execute(query).tuples().all()
    year = f":{added.year}" if added.year is not None else "\n"
    found = [number for number, key in asked if key.endswith(year) or any(name in key for name in names if name)]
    if found:
        services.archive.drop(found, before)
    return found
