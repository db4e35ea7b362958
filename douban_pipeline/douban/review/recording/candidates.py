"""The candidates that a reviewer chooses from: those of a video's newest verdict."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, func, select

from douban_pipeline.douban.services import Services


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate as a reviewer sees it.

    Attributes:
        verdict_id: The verdict it belongs to.
        rank: Its place, from 1.
        points: Points an item, as far as it could be compared.
        items: The items as they were stored, each with ``name``, ``points`` and what was compared.
        conflicts: What speaks against it, as sentences, by code.
        rejects: Codes that take it out of the running.
        facts: What is known of the subject, as the matcher saw it.
        fetched: False: known from a search hit only.
    """

    verdict_id: int
    rank: int
    douban_id: int
    title: str
    year: int | None
    score: float
    points: Mapping[str, float]
    items: tuple[Mapping[str, Any], ...]
    conflicts: Mapping[str, str]
    rejects: tuple[str, ...]
    facts: Mapping[str, Any]
    fetched: bool


def newest_verdicts(services: Services, connection: Connection, vod_ids: Collection[int]) -> dict[int, RowMapping]:
    """Return the newest verdict of each of ``vod_ids`` that has one."""
    verdict = services.tables.verdict
    newest = select(func.max(verdict.c.verdict_id)).where(verdict.c.vod_id.in_(vod_ids)).group_by(verdict.c.vod_id)
    found = connection.execute(select(verdict).where(verdict.c.verdict_id.in_(newest.scalar_subquery()))).mappings()
    return {row["vod_id"]: row for row in found}


def newest_candidates(
    services: Services, connection: Connection, vod_ids: Collection[int], most: int
) -> dict[int, list[Candidate]]:
    """Return up to ``most`` candidates of each video's newest verdict, the best first; none for no candidates."""
    table, verdict = services.tables.candidate, services.tables.verdict
    newest = (
        select(func.max(verdict.c.verdict_id).label("verdict_id"))
        .where(verdict.c.vod_id.in_(vod_ids))
        .group_by(verdict.c.vod_id)
        .subquery()
    )
    query = (
        select(table)
        .join(newest, newest.c.verdict_id == table.c.verdict_id)
        .where(table.c.rank <= most)
        .order_by(table.c.vod_id, table.c.rank)
    )
    found: dict[int, list[Candidate]] = {}
    for row in connection.execute(query).mappings():
        candidate = Candidate(
            row["verdict_id"],
            row["rank"],
            row["douban_id"],
            row["title"],
            row["year"],
            row["score"],
            {item["name"]: item["points"] for item in row["points"]},
            tuple(row["points"]),
            row["conflicts"],
            tuple(row["rejects"] or ()),
            row["facts"] or {},
            row["fetched"],
        )
        found.setdefault(row["vod_id"], []).append(candidate)
    return found
