"""The tables of analyses and opportunities: one result per article, and the results of a slot or a day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, or_, select, update

from douban_pipeline.core.database import chunks
from douban_pipeline.digest.answers import AnalysisAnswer
from douban_pipeline.digest.store import items
from douban_pipeline.digest.store.tables import analysis_result, content_item, opportunity, slot_run
from douban_pipeline.digest.types import AnalysedStatus, Finding


@dataclass(frozen=True, slots=True)
class AnalysisRecord:
    """An analysis as it is stored; see the columns of the table."""

    content_item_id: int
    run_id: int
    answer: AnalysisAnswer
    suspicions: Sequence[str]
    truncated: bool
    model: str
    wire_model: str
    rubric_hash: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    duration_ms: int
    raw: dict[str, Any]
    snapshot_id: int | None


def store(connection: Connection, record: AnalysisRecord, now: datetime, *, replace: bool = False) -> int | None:
    """Store an analysis and mark its article as analysed; return its id, None if an existing one was kept.

    With ``replace`` it replaces an existing analysis and keeps its id and slot.
    """
    known = select(analysis_result.c.analysis_id, analysis_result.c.run_id).where(
        analysis_result.c.content_item_id == record.content_item_id
    )
    before = connection.execute(known).first()
    stored: int | None = None
    if before is None:
        inserted = connection.execute(
            insert(analysis_result).values(
                content_item_id=record.content_item_id, run_id=record.run_id, **_row(record, now)
            )
        )
        assert inserted.inserted_primary_key is not None
        stored = int(inserted.inserted_primary_key[0])
    elif replace:
        stored = before.analysis_id
        here = analysis_result.c.analysis_id == stored
        connection.execute(update(analysis_result).where(here).values(**_row(record, now)))
        connection.execute(delete(opportunity).where(opportunity.c.analysis_id == stored))
    if stored is not None:
        _store_opportunities(connection, stored, record.answer)
    done = {
        "analyzed_status": AnalysedStatus.DONE.value,
        "analysis_error": "",
        "analysed_at": now,
        "updated_at": now,
        **items.LEASES.freed,
    }
    item = content_item.c.content_item_id == record.content_item_id
    connection.execute(update(content_item).where(item).values(**done))
    return stored


def _row(record: AnalysisRecord, now: datetime) -> dict[str, Any]:
    answer = record.answer
    return {
        "score": answer.score,
        "has_opportunity": answer.has_opportunity,
        "summary": answer.summary,
        "suspicions": [*record.suspicions],
        "truncated": record.truncated,
        "model": record.model,
        "wire_model": record.wire_model[:100],
        "rubric_hash": record.rubric_hash,
        "calls": record.calls,
        "prompt_tokens": record.prompt_tokens,
        "completion_tokens": record.completion_tokens,
        "duration_ms": record.duration_ms,
        "raw": record.raw,
        "snapshot_id": record.snapshot_id,
        "created_at": now,
    }


def _store_opportunities(connection: Connection, analysis_id: int, answer: AnalysisAnswer) -> None:
    found = [
        {
            "analysis_id": analysis_id,
            "position": position,
            "type": each.type[:100],
            "title": each.title[:300],
            "targets": each.targets,
            "reason": each.reason,
            "risk": each.risk,
            "horizon": each.horizon[:100],
        }
        for position, each in enumerate(answer.opportunities)
    ]
    if found:
        connection.execute(insert(opportunity), found)


def _findings_query() -> Any:
    return select(
        analysis_result.c.analysis_id,
        analysis_result.c.content_item_id,
        analysis_result.c.score,
        analysis_result.c.has_opportunity,
        analysis_result.c.summary,
        analysis_result.c.suspicions,
        content_item.c.title,
        content_item.c.mp_name,
        content_item.c.url,
        content_item.c.published_at,
    ).join_from(analysis_result, content_item, analysis_result.c.content_item_id == content_item.c.content_item_id)


def of_run(connection: Connection, run_id: int) -> list[Finding]:
    """Return every analysis of a slot as findings, without applying a threshold."""
    rows = connection.execute(_findings_query().where(analysis_result.c.run_id == run_id))
    return [_finding(row) for row in rows]


def of_day(connection: Connection, day: date) -> list[Row[Any]]:
    """Return the analyses of a day (of the slots of that date), best first."""
    query = _findings_query().join(slot_run, slot_run.c.run_id == analysis_result.c.run_id)
    query = query.where(slot_run.c.run_date == day)
    return [*connection.execute(query.order_by(analysis_result.c.score.desc(), analysis_result.c.analysis_id))]


def as_findings(rows: Sequence[Row[Any]]) -> list[Finding]:
    """Return rows of `of_day` as findings."""
    return [_finding(row) for row in rows]


def opportunities_of(connection: Connection, analysis_ids: Sequence[int]) -> dict[int, list[Row[Any]]]:
    """Return the opportunities of analyses, in order."""
    found: dict[int, list[Row[Any]]] = {}
    for some in chunks(analysis_ids):
        query = select(opportunity).where(opportunity.c.analysis_id.in_(some))
        for row in connection.execute(query.order_by(opportunity.c.analysis_id, opportunity.c.position)):
            found.setdefault(row.analysis_id, []).append(row)
    return found


def failures_of_day(connection: Connection, begin: datetime, end: datetime, most: int = 200) -> list[Row[Any]]:
    """Return articles whose analysis failed between two moments and has not succeeded since."""
    failed = [AnalysedStatus.FAILED.value, AnalysedStatus.GIVEN_UP.value]
    query = (
        select(
            content_item.c.content_item_id,
            content_item.c.title,
            content_item.c.mp_name,
            content_item.c.url,
            content_item.c.analyzed_status,
            content_item.c.analysis_error,
            content_item.c.published_at,
        )
        .where(content_item.c.analyzed_status.in_(failed))
        .where(content_item.c.updated_at >= begin, content_item.c.updated_at < end)
        .order_by(content_item.c.content_item_id)
        .limit(most)
    )
    return [*connection.execute(query)]


def articles_of_day(connection: Connection, day: date) -> int:
    """Return how many articles the slots of a day ingested."""
    query = select(func.count()).select_from(content_item).join(slot_run, slot_run.c.run_id == content_item.c.run_id)
    return int(connection.execute(query.where(slot_run.c.run_date == day)).scalar_one())


def waiting_of_day(connection: Connection, day: date) -> int:
    """Return how many articles that the slots of a day ingested wait for their text or for their first analysis."""
    waits = or_(
        content_item.c.analyzed_status == AnalysedStatus.UNDER_WAY.value,
        content_item.c.analyzed_status == AnalysedStatus.WAITING.value,
    )
    query = select(func.count()).select_from(content_item).join(slot_run, slot_run.c.run_id == content_item.c.run_id)
    return int(connection.execute(query.where(slot_run.c.run_date == day, waits)).scalar_one())


def _finding(row: Row[Any]) -> Finding:
    return Finding(
        row.analysis_id,
        row.content_item_id,
        row.score,
        row.title,
        row.mp_name,
        row.summary,
        row.published_at,
        tuple(row.suspicions),
    )
