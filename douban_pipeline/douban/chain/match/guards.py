"""The rules that no confirmed verdict may break, asked of the database over all shards.

The write path asks the same predicate again: the check shows a breach, the write path refuses it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select, union_all

from douban_pipeline.cms.values import readable
from douban_pipeline.core.database import chunks
from douban_pipeline.douban.match_inputs import profile_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store import brakes
from douban_pipeline.douban.store.decisions import chosen_subjects
from douban_pipeline.douban.store.states import ReviewStatus, VerdictState
from douban_pipeline.douban.store.videos import Breach
from douban_pipeline.matching.guard import VIOLATION_SENTENCES, violations
from douban_pipeline.matching.profiles import Profile

_MOST_LINKED = 50
"""Videos of one subject that are looked at: some converters write one id into every record, and a few of these are as
good as all."""

_SUBJECTS = 100
"""Subjects whose videos are looked up in one statement."""


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


def linked_titles(
    services: Services, connection: Connection, douban_ids: Collection[int]
) -> dict[int, list[tuple[int, str]]]:
    """Return the ids and titles of the videos that are linked to these subjects, by subject."""
    states = services.tables.video
    links = select(states.c.vod_id, states.c.vod_douban_id).order_by(states.c.vod_id).limit(_MOST_LINKED)
    found: list[tuple[int, int]] = []
    for some in chunks(sorted(douban_ids), _SUBJECTS):
        # Each subject apart: one that many videos are linked to must not hide those of the others.
        of_each = [select(links.where(states.c.vod_douban_id == each).subquery()) for each in some]
        found += [(row.vod_id, row.vod_douban_id) for row in connection.execute(union_all(*of_each))]
    titles = services.cms.rows(connection, [vod_id for vod_id, _ in found])
    linked: dict[int, list[tuple[int, str]]] = {}
    for vod_id, douban_id in found:
        if vod_id in titles:
            linked.setdefault(douban_id, []).append((vod_id, readable(titles[vod_id]["vod_name"])))
    return linked
