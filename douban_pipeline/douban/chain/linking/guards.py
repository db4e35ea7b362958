"""The rules that no confirmed verdict may break, asked of the database over all shards.

The write path asks the same predicate again: the check shows a breach, the write path refuses it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from douban_pipeline.douban.match_inputs import profile_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store import brakes
from douban_pipeline.douban.store.decisions import chosen_subjects
from douban_pipeline.douban.store.states import ReviewStatus, VerdictState
from douban_pipeline.douban.store.videos import Breach
from douban_pipeline.matching.guard import VIOLATION_SENTENCES, violations
from douban_pipeline.matching.profiles import Profile


@dataclass(frozen=True, slots=True)
class VerdictBreach(Breach):
    """A confirmed verdict that must not be written: its row and run, and the codes of the rules it breaks."""

    verdict_id: int
    task_id: int
    run_id: str
    codes: tuple[str, ...]


def sentences_of(codes: Sequence[str]) -> str:
    """Return broken rules as a sentence for people."""
    return "；".join(VIOLATION_SENTENCES[code] for code in codes)


def broken_rules(
    verdict: Mapping[Any, Any],
    state: Mapping[Any, Any] | None,
    profile: Profile,
    braked: Collection[str],
    chosen: int | None,
) -> tuple[str, ...]:
    """Return the codes of the rules that a stored verdict breaks.

    Args:
        verdict: The stored verdict.
        state: The video's state now.
        profile: The profile in force.
        braked: Strata whose brake is on, see `store.brakes`.
        chosen: The subject that a person chose for the video, see `store.decisions.chosen_subjects`.
    """
    return violations(
        verdict=verdict["verdict"],
        score=verdict["score"],
        lead=verdict["lead"],
        rejects=verdict["rejects"] or (),
        complete=verdict["complete"],
        source_healthy=verdict["source_healthy"],
        locked=bool(state and state["douban_id_locked"]),
        ignored=bool(state and state["douban_review_status"] == ReviewStatus.IGNORED),
        profile_in_force=verdict["profile"] == profile.name,
        braked=not set(verdict["strata"] or ()).isdisjoint(braked),
        chosen_otherwise=chosen not in (None, verdict["douban_id"]),
        thresholds=profile.thresholds,
    )


def breaches(services: Services, connection: Connection) -> list[VerdictBreach]:
    """Return every confirmed verdict that waits to be written and breaks a rule, over all shards."""
    verdict, video = services.tables.verdict, services.tables.video
    query = (
        select(verdict, video.c.douban_id_locked, video.c.douban_review_status)
        .outerjoin(video, video.c.vod_id == verdict.c.vod_id)
        .where(verdict.c.state == VerdictState.PENDING, verdict.c.verdict == ReviewStatus.CONFIRMED)
        .order_by(verdict.c.vod_id)
    )
    profile = profile_of(services.settings)
    braked = brakes.active(connection, services.tables)
    rows = connection.execute(query).mappings().all()
    chosen = chosen_subjects(connection, services.tables, {row["vod_id"] for row in rows})
    found = []
    for row in rows:
        codes = broken_rules(row, row, profile, braked, chosen.get(row["vod_id"]))
        if codes:
            found.append(
                VerdictBreach(
                    row["vod_id"], sentences_of(codes), row["verdict_id"], row["task_id"], row["run_id"], codes
                )
            )
    return found
