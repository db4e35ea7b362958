"""Why comments of a section stand where they stand in this moment; nothing is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from douban_pipeline.comments.heat.explaining import explain
from douban_pipeline.comments.heat.graph import Columns
from douban_pipeline.comments.heat.ranking import Policy, Ranking, columns_to_read, rank
from douban_pipeline.comments.scoring import policies
from douban_pipeline.comments.scoring.columns import read_columns
from douban_pipeline.comments.store.tables import section
from douban_pipeline.core.errors import ProblemsError


def policy_of(connection: Connection, section_id: int, weights: Mapping[str, Any]) -> Policy:
    """Return what a section is ordered by.

    Raises:
        ProblemsError: There is no such section, or a rule cannot be applied.
    """
    chosen = policies.policies(connection, weights)
    kind = connection.execute(select(section.c.type).where(section.c.section_id == section_id)).scalar()
    if kind is None:
        raise ProblemsError([f"没有编号为 {section_id} 的评论区"])
    return chosen.of(section_id, kind)


def explain_places(
    connection: Connection, section_id: int, places: Sequence[int], weights: Mapping[str, Any], now: datetime
) -> dict[int, list[str]]:
    """Return by place, counted from 1, why a comment stands there, in Chinese sentences.

    Raises:
        ProblemsError: There is no such section or place, or a rule cannot be applied.
    """
    ranking, read, policy = _ranked(connection, section_id, weights, now)
    wrong = [place for place in places if not 1 <= place <= len(ranking)]
    if wrong:
        raise ProblemsError([f"评论区 {section_id} 有 {len(ranking)} 条评论，没有第 {place} 名" for place in wrong])
    return {place: [f"评论 {ranking.ids[place - 1]}。", *explain(ranking, place, read, policy)] for place in places}


def explain_comment(
    connection: Connection, section_id: int, comment_id: int, weights: Mapping[str, Any], now: datetime
) -> list[str]:
    """Return why a root stands where it stands, in Chinese sentences; none for a comment that is in no list.

    Raises:
        ProblemsError: There is no such section, or a rule cannot be applied.
    """
    ranking, read, policy = _ranked(connection, section_id, weights, now)
    found = np.flatnonzero(ranking.ids == comment_id)
    return explain(ranking, int(found[0]) + 1, read, policy) if len(found) else []


def _ranked(
    connection: Connection, section_id: int, weights: Mapping[str, Any], now: datetime
) -> tuple[Ranking, Columns, Policy]:
    """Return the roots of a section that are shown, ranked as they are now."""
    policy = policy_of(connection, section_id, weights)
    found = read_columns(connection, section_id, columns_to_read(policy), now)
    read = {name: column[found.shown] for name, column in found.read.items()}
    return rank(found.ids[found.shown], read, policy), read, policy
