"""Heat of the roots that events touched, computed with the same factors, rules and experiments as in a sweep.

A like moves a comment when the worker applies it, a new comment gets its place at once, and one that a rule sinks is
not on top until the next sweep. Ages and windows are those of the section's last sweep: a comment is not older than its
neighbours for having been touched. Age itself moves comments at sweeps only.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import numpy as np
from sqlalchemy import Connection, Engine, select

from douban_pipeline.comments.event_handlers.state import BatchState, CommentState
from douban_pipeline.comments.heat.experiments import Policies
from douban_pipeline.comments.heat.graph import Column
from douban_pipeline.comments.heat.ranking import Policy, columns_to_read, rank
from douban_pipeline.comments.scoring.columns import WINDOWED, texts_of, windows_of
from douban_pipeline.comments.scoring.policies import policies
from douban_pipeline.comments.scoring.scores import score_rows, write_scores
from douban_pipeline.comments.store import tables
from douban_pipeline.comments.store.batches import load_comments
from douban_pipeline.comments.types import Attribute, CommentStatus
from douban_pipeline.core.database import chunks, reading, run_transaction
from douban_pipeline.core.errors import ProblemsError

_LOG = logging.getLogger(__name__)
_FRESH = timedelta(seconds=30)
"""How long rules and experiments are cached."""


class TouchedHeat:
    """Computes the heat of the roots that a batch publishes or touches."""

    def __init__(self, engine: Engine, weights: Mapping[str, Any]) -> None:
        self._engine, self._weights = engine, weights
        self._read_at: datetime | None = None
        self._policies: Policies | None = None

    def score(self, connection: Connection, batch: BatchState, touched: Collection[int]) -> None:
        """Add the score rows of new and touched roots to a batch, each root once however often it was touched.

        Without them the heat of new roots is 0, and that of others what it was, until a sweep.
        """
        roots = [
            root
            for number in sorted({*batch.new_comments, *batch.changed_comments, *touched})
            if (root := batch.comments.get(number)) is not None and root.is_root and root.section_id in batch.sections
        ]
        found = self._current(batch.now) if roots else None
        if found is None:
            return
        # Sections of one policy that were swept together are computed together.
        together: dict[tuple[str, datetime, tuple[Any, ...]], tuple[Policy, list[CommentState]]] = {}
        for root in roots:
            section = batch.sections[root.section_id]
            policy = found.of(root.section_id, section.type)
            key = (policy.variant, section.heat_at, tuple(policy.rules.rules))
            together.setdefault(key, (policy, []))[1].append(root)
        for (_, at, _), (policy, members) in together.items():
            for row in _score(connection, members, policy, at, batch.now, batch.new_comments, batch.liked):
                batch.scores[row["comment_id"]] = row

    def _current(self, now: datetime) -> Policies | None:
        if self._read_at is None or now - self._read_at >= _FRESH:
            self._read_at = now
            try:
                with reading(self._engine) as connection:
                    self._policies = policies(connection, self._weights)
            except ProblemsError as error:
                _LOG.warning("votes and new comments move no heat before the next sweep: %s", error)
                self._policies = None
        return self._policies


def rescore(
    engine: Engine, section_id: int, roots: Collection[int], policy: Policy, at: datetime, now: datetime
) -> dict[int, int | None]:
    """Compute and store the heat of some roots of a section; return it by id, None for roots that are not shown."""
    found: dict[int, int | None] = {}
    for part in chunks(sorted(roots)):
        found |= run_transaction(engine, partial(_rescore, part, section_id, policy, at, now))
    return found


def _rescore(
    part: Sequence[int], section_id: int, policy: Policy, at: datetime, now: datetime, connection: Connection
) -> dict[int, int | None]:
    # The rows to be written are locked before the comments are read: a worker that changes one of these writes later.
    lock = select(tables.score.c.comment_id).where(tables.score.c.comment_id.in_(part)).with_for_update()
    connection.execute(lock).all()
    roots = [root for root in load_comments(connection, part).values() if root.section_id == section_id]
    if not roots:
        return {}
    rows = _score(connection, roots, policy, at, now)
    write_scores(connection, rows)
    shown = {root.comment_id: root.status == CommentStatus.NORMAL for root in roots}
    return {row["comment_id"]: row["heat"] if shown[row["comment_id"]] else None for row in rows}


def _score(
    connection: Connection,
    roots: Sequence[CommentState],
    policy: Policy,
    at: datetime,
    now: datetime,
    new: Collection[int] = (),
    liked: Mapping[int, int] | None = None,
) -> list[dict[str, Any]]:
    """Return the score rows of roots; those in ``new`` are in no table yet, and ``liked`` is not written yet."""
    ids = np.array([root.comment_id for root in roots], dtype=np.int64)
    wanted = columns_to_read(policy)
    columns = _columns(roots, wanted, at)
    stored = [root.comment_id for root in roots if root.comment_id not in new]
    if WINDOWED & wanted:
        columns |= windows_of(connection, ids, stored, at, liked or {})
    if "content" in wanted:
        texts = texts_of(connection, stored)
        columns["content"] = np.array([texts.get(root.comment_id, root.text or "") for root in roots], dtype=object)
    ranking = rank(ids, {name: columns[name] for name in wanted}, policy)
    sections = np.array([root.section_id for root in roots], dtype=np.int64)
    return list(score_rows(np.arange(len(ids)), sections, ranking, policy.variant, now))


def _columns(roots: Sequence[CommentState], wanted: Collection[str], at: datetime) -> dict[str, Column]:
    """Return the columns that rows of comments hold; windows and texts are read apart."""
    columns = {
        "likes": [root.like_count for root in roots],
        "dislikes": [root.dislike_count for root in roots],
        "reports": [root.report_count for root in roots],
        "replies": [root.child_visible for root in roots],
        "length": [root.length for root in roots],
        "level": [root.level for root in roots],
        "age_hours": [max((at - root.created_at).total_seconds(), 0.0) / 3600 for root in roots],
        "owner_liked": [bool(root.attributes & Attribute.OWNER_LIKED) for root in roots],
        "owner_replied": [bool(root.attributes & Attribute.OWNER_REPLIED) for root in roots],
        "featured": [bool(root.attributes & Attribute.FEATURED) for root in roots],
        "promoted": [bool(root.attributes & Attribute.PROMOTED) for root in roots],
        "guest": [not root.publisher_id for root in roots],
    }
    return {name: np.array(values) for name, values in columns.items() if name in wanted}
