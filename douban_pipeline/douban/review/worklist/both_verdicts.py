"""Links in doubt: the verdict that confirmed a link compared with the newest one, item by item, for reviewers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, func, select

from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.douban.store.tables import OwnTables


@dataclass(frozen=True, slots=True)
class VerdictOnLink:
    """One verdict on the linked subject.

    Attributes:
        verdict_id: The verdict.
        status: Its status.
        judged_at: When it was reached (UTC).
        rules: Rule version and profile.
        score: Score of the linked subject; None if it was not among the candidates.
        lead: Lead of the best candidate, whichever that was.
        items: The linked subject's score items, as stored.
        conflicts: Its conflicts, as sentences.
        facts: Its known facts.
    """

    verdict_id: int
    status: str
    judged_at: datetime
    rules: str
    score: float | None
    lead: float | None
    items: tuple[Mapping[str, Any], ...]
    conflicts: tuple[str, ...]
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BothVerdicts:
    """The verdict that confirmed a link, and the newest one, which does not."""

    then: VerdictOnLink
    now: VerdictOnLink


def both_verdicts(tables: OwnTables, connection: Connection, linked: Mapping[int, int]) -> dict[int, BothVerdicts]:
    """Return both verdicts of the videos whose link was confirmed before and is not confirmed any more.

    Args:
        tables: Our tables.
        connection: A connection for reading.
        linked: The subject in the CMS of each video, at most some hundred.
    """
    verdict = tables.verdict
    newest = _last(tables, connection, linked)
    confirmed = _last(tables, connection, linked, verdict.c.verdict == ReviewStatus.CONFIRMED)
    pairs = {
        vod_id: (confirmed[vod_id], newest[vod_id])
        for vod_id in linked
        if vod_id in confirmed and confirmed[vod_id] < newest[vod_id]
    }
    wanted = [verdict_id for pair in pairs.values() for verdict_id in pair]
    columns = "verdict_id vod_id verdict douban_id lead rule_version profile created_at"
    query = select(*(verdict.c[name] for name in columns.split())).where(verdict.c.verdict_id.in_(wanted))
    verdicts = {row["verdict_id"]: row for row in connection.execute(query).mappings()} if wanted else {}
    candidates = _candidates(tables, connection, wanted) if wanted else {}
    found: dict[int, BothVerdicts] = {}
    for vod_id, (then, now) in pairs.items():
        # The last confirmed verdict may be about another subject, which a person has replaced since.
        if verdicts[then]["douban_id"] == linked[vod_id]:
            keys = ((then, linked[vod_id]), (now, linked[vod_id]))
            first, second = (_verdict(verdicts[key[0]], candidates.get(key)) for key in keys)
            found[vod_id] = BothVerdicts(first, second)
    return found


def _last(tables: OwnTables, connection: Connection, vod_ids: Collection[int], *conditions: Any) -> dict[int, int]:
    verdict = tables.verdict
    query = select(verdict.c.vod_id, func.max(verdict.c.verdict_id)).where(verdict.c.vod_id.in_(vod_ids), *conditions)
    return dict(connection.execute(query.group_by(verdict.c.vod_id)).tuples().all())


def _candidates(
    tables: OwnTables, connection: Connection, verdict_ids: Collection[int]
) -> dict[tuple[int, int], RowMapping]:
    candidate = tables.candidate
    columns = "verdict_id douban_id score points conflicts facts"
    query = select(*(candidate.c[name] for name in columns.split())).where(candidate.c.verdict_id.in_(verdict_ids))
    return {(row["verdict_id"], row["douban_id"]): row for row in connection.execute(query).mappings()}


def _verdict(row: RowMapping, candidate: RowMapping | None) -> VerdictOnLink:
    return VerdictOnLink(
        row["verdict_id"],
        row["verdict"],
        row["created_at"],
        f"{row['rule_version']}，{row['profile']}",
        candidate["score"] if candidate is not None else None,
        row["lead"],
        tuple(candidate["points"] or ()) if candidate is not None else (),
        tuple((candidate["conflicts"] or {}).values()) if candidate is not None else (),
        (candidate["facts"] or {}) if candidate is not None else {},
    )
