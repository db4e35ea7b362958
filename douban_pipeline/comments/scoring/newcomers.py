"""Initial heat of new comments, computed with the same factors, rules and experiments as in a sweep.

So a new comment gets its proper place at once, and one that a rule sinks is not on top until the next sweep.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from sqlalchemy import Engine

from douban_pipeline.comments.applying.state import BatchState, CommentState
from douban_pipeline.comments.heat.experiments import Policies
from douban_pipeline.comments.heat.graph import Column
from douban_pipeline.comments.heat.ranking import columns_to_read, rank
from douban_pipeline.comments.scoring.policies import policies
from douban_pipeline.comments.scoring.scores import score_rows
from douban_pipeline.comments.types import Attribute
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError

_LOG = logging.getLogger(__name__)
_FRESH = timedelta(seconds=30)
"""How long rules and experiments are cached."""


class NewcomerHeat:
    """Computes the heat of new roots.

    Args:
        engine: The database, for rules and experiments.
        weights: Weights that differ from the default ones.
    """

    def __init__(self, engine: Engine, weights: Mapping[str, Any]) -> None:
        self._engine, self._weights = engine, weights
        self._read_at: datetime | None = None
        self._policies: Policies | None = None

    def score(self, batch: BatchState) -> None:
        """Add score rows for the new roots to a batch; without them their heat is 0 until a sweep."""
        sections: dict[int, list[CommentState]] = {}
        for number in sorted(batch.new_comments):
            if batch.comments[number].is_root:
                sections.setdefault(batch.comments[number].section_id, []).append(batch.comments[number])
        found = self._current(batch.now) if sections else None
        if found is None:
            return
        for section_id, roots in sections.items():
            policy = found.of(section_id, batch.sections[section_id].type)
            ids = np.array([root.comment_id for root in roots], dtype=np.int64)
            ranking = rank(ids, _columns(roots, columns_to_read(policy), batch.now), policy)
            for row in score_rows(np.arange(len(ids)), section_id, ranking, policy.variant, batch.now):
                batch.scores[row["comment_id"]] = row

    def _current(self, now: datetime) -> Policies | None:
        if self._read_at is None or now - self._read_at >= _FRESH:
            self._read_at = now
            try:
                with reading(self._engine) as connection:
                    self._policies = policies(connection, self._weights)
            except ProblemsError as error:
                _LOG.warning("new comments have no heat before the next sweep: %s", error)
                self._policies = None
        return self._policies


def _columns(roots: Sequence[CommentState], wanted: Collection[str], now: datetime) -> dict[str, Column]:
    """Return the columns of new roots, which have no impressions yet; imported ones have likes."""
    columns = {
        "likes": [root.like_count for root in roots],
        "dislikes": [root.dislike_count for root in roots],
        "reports": [root.report_count for root in roots],
        "replies": [root.child_visible for root in roots],
        "length": [root.length for root in roots],
        "level": [root.level for root in roots],
        "age_hours": [max((now - root.created_at).total_seconds(), 0.0) / 3600 for root in roots],
        "owner_liked": [bool(root.attributes & Attribute.OWNER_LIKED) for root in roots],
        "owner_replied": [bool(root.attributes & Attribute.OWNER_REPLIED) for root in roots],
        "featured": [bool(root.attributes & Attribute.FEATURED) for root in roots],
        "promoted": [bool(root.attributes & Attribute.PROMOTED) for root in roots],
        "guest": [not root.publisher_id for root in roots],
    }
    found = {name: np.array(values) for name, values in columns.items() if name in wanted}
    if "content" in wanted:
        found["content"] = np.array([root.text or "" for root in roots], dtype=object)
    unseen = np.zeros(len(roots), dtype=np.int64)
    return {name: found.get(name, unseen) for name in wanted}
