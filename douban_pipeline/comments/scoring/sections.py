"""Scores sections, one or all active ones: reads, ranks, publishes and stores."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Engine, case, select, update

from douban_pipeline.comments.heat import score as score_rules
from douban_pipeline.comments.heat.experiments import Policies
from douban_pipeline.comments.heat.ranking import Policy, columns_to_read, rank
from douban_pipeline.comments.heat.what_if import top_moves
from douban_pipeline.comments.scoring.columns import SectionColumns, read_columns
from douban_pipeline.comments.scoring.heat_lists import HeatLists
from douban_pipeline.comments.scoring.scores import settle, store_scores
from douban_pipeline.comments.scoring.touched import rescore
from douban_pipeline.comments.store.tables import comment, event, section
from douban_pipeline.core.database import reading, run_statement

ACTIVE_FOR = timedelta(days=7)
TOP = 10
_TRIES = 5


@dataclass(frozen=True, slots=True)
class ScoredSection:
    """Result of scoring one section.

    Attributes:
        moved: Number of places among the first ten that hold another comment than before.
        variant: Experiment and variant; empty outside of experiments.
    """

    section_id: int
    comments: int
    published: int
    written: int
    moved: int
    variant: str
    hits: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


def score_section(
    engine: Engine,
    lists: HeatLists | None,
    section_id: int,
    policy: Policy,
    now: datetime,
    clock: Callable[[], float] = time.perf_counter,
) -> ScoredSection:
    """Score a section, publish its list where there is Redis, and store the changed scores.

    The list is published before the scores are stored, so that readers get the new order first.
    """
    begun = clock()
    serial = _serial(engine, section_id)  # data read after this is of this serial or later
    with reading(engine) as connection:
        columns = read_columns(connection, section_id, columns_to_read(policy), now)
    before = _top(columns)
    read = clock()
    ranking = rank(columns.ids, columns.read, policy)
    heat = settle(ranking, columns)
    order = score_rules.ordered(columns.ids, heat)
    order = order[columns.shown[order]]
    ids, ordered = columns.ids[order], heat[order]
    columns.read.clear()
    ranked = clock()
    # From here on workers compute the heat of what they touch as of this moment.
    run_statement(engine, update(section).where(section.c.section_id == section_id), {"scored_at": now})
    if lists is not None:
        lists.publish(section_id, ids, ordered, now)
        _catch_up(engine, lists, section_id, serial, policy, now)
    published = clock()
    written = store_scores(engine, section_id, ranking, columns, heat, policy.variant, now)
    _catch_up(engine, lists, section_id, serial, policy, now)  # its scores may have replaced newer ones
    stored = clock()
    return ScoredSection(
        section_id,
        len(columns),
        len(ids),
        written,
        top_moves(before, ids[:TOP].tolist()) if before else 0,
        policy.variant,
        {name: int(hit.sum()) for name, hit in ranking.recalled.counted.items()},
        {
            "read": read - begun,
            "rank": ranked - read,
            "publish": published - ranked,
            "store": stored - published,
        },
    )


def _top(columns: SectionColumns) -> list[int]:
    """Return the first ids by stored heat; none before the first scoring."""
    if not columns.scored.any():
        return []
    order = score_rules.ordered(columns.ids, columns.stored)
    return columns.ids[order[columns.shown[order]][:TOP]].tolist()


def _serial(engine: Engine, section_id: int) -> int:
    """Return the serial of the last event applied in a section; 0 for a section that does not exist."""
    query = select(section.c.event_seq).where(section.c.section_id == section_id)
    with reading(engine) as connection:
        return connection.execute(query).scalar() or 0


def _catch_up(
    engine: Engine, lists: HeatLists | None, section_id: int, serial: int, policy: Policy, now: datetime
) -> None:
    """Score again the roots that events touched since a serial, and update the list with them.

    Workers do both too, but may have scored them before the sweep stored what it had read earlier, and may have updated
    the version of the list that was replaced.
    """
    query = (
        select(event.c.seq, case((comment.c.root_id == 0, comment.c.comment_id), else_=comment.c.root_id).label("root"))
        .join(comment, comment.c.comment_id == event.c.comment_id)
        .where(event.c.section_id == section_id, event.c.refusal == "")
    )
    for _ in range(_TRIES):
        with reading(engine) as connection:
            rows = connection.execute(query.where(event.c.seq > serial)).all()
        if not rows:
            return
        heats = rescore(engine, section_id, {row.root for row in rows}, policy, now, now)
        if lists is not None:
            lists.put(section_id, [(heat, number) for number, heat in heats.items() if heat is not None])
            lists.remove(section_id, [number for number, heat in heats.items() if heat is None])
        # Repeat: the rows may have changed before the list was updated.
        serial = max(row.seq for row in rows)


def active_sections(engine: Engine, now: datetime) -> list[tuple[int, int]]:
    """Return (id, type) of the sections with an event within `ACTIVE_FOR`, most recent first."""
    query = (
        select(section.c.section_id, section.c.type)
        .where(section.c.active_at > now - ACTIVE_FOR)
        .order_by(section.c.active_at.desc(), section.c.section_id)
    )
    with reading(engine) as connection:
        return [(row.section_id, row.type) for row in connection.execute(query)]


def score_active(
    engine: Engine,
    lists: HeatLists | None,
    chosen: Policies,
    now: datetime,
    *,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[ScoredSection]:
    """Score the active sections, most recent first; start no section after ``seconds``."""
    end = clock() + seconds
    for section_id, section_type in active_sections(engine, now):
        if clock() >= end:
            return
        yield score_section(engine, lists, section_id, chosen.of(section_id, section_type), now)
