"""Explains the current ranks of comments of a section; nothing is written."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
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

_KEPT = timedelta(minutes=1)
_MOST_ROWS = 1_000_000
"""Maximum number of roots of all cached sections together; a larger section is ranked for each request."""


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A ranked section.

    Attributes:
        ranking: Its roots, hottest first.
        read: The columns that the ranking was computed from.
        policy: The policy of the ranking.
        version: Changes with every event and rule.
        at: Time of reading; reference time of ages and windows.
    """

    ranking: Ranking
    read: Columns
    policy: Policy
    version: tuple[Any, ...]
    at: datetime


class RankedSections:
    """Cache of ranked sections for successive requests about single comments; thread-safe.

    A section is ranked again after an event in it, a change of a rule, or one minute.
    """

    def __init__(self) -> None:
        self._kept: dict[int, _Ranked] = {}
        self._lock = threading.Lock()

    def get(self, connection: Connection, section_id: int, weights: Mapping[str, Any], now: datetime) -> _Ranked:
        """Return a section's current ranking, cached or computed.

        Raises:
            ProblemsError: There is no such section, or a rule cannot be applied.
        """
        policy = policy_of(connection, section_id, weights)
        applied = connection.execute(select(section.c.event_seq).where(section.c.section_id == section_id)).scalar()
        version = (applied, policy.weights, policy.variant, tuple(policy.rules.rules))
        known = self._kept.get(section_id)
        if known is not None and known.version == version and now - known.at < _KEPT:
            return known
        found = _Ranked(*_rank(connection, section_id, policy, now), policy, version, now)
        with self._lock:
            self._kept.pop(section_id, None)
            self._kept = {number: each for number, each in self._kept.items() if now - each.at < _KEPT}
            if sum(len(each.ranking) for each in (*self._kept.values(), found)) <= _MOST_ROWS:
                self._kept[section_id] = found
        return found


def policy_of(connection: Connection, section_id: int, weights: Mapping[str, Any]) -> Policy:
    """Return the ranking policy of a section.

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
    """Return by place, counted from 1, the explanation of its comment's rank, in Chinese sentences.

    Raises:
        ProblemsError: There is no such section or place, or a rule cannot be applied.
    """
    policy = policy_of(connection, section_id, weights)
    ranking, read = _rank(connection, section_id, policy, now)
    wrong = [place for place in places if not 1 <= place <= len(ranking)]
    if wrong:
        raise ProblemsError([f"评论区 {section_id} 有 {len(ranking)} 条评论，没有第 {place} 名" for place in wrong])
    return {place: [f"评论 {ranking.ids[place - 1]}。", *explain(ranking, place, read, policy)] for place in places}


def explain_comment(
    connection: Connection,
    section_id: int,
    comment_id: int,
    weights: Mapping[str, Any],
    now: datetime,
    sections: RankedSections,
) -> list[str]:
    """Return the explanation of a root's rank, in Chinese sentences; none for a comment that is in no list.

    Raises:
        ProblemsError: There is no such section, or a rule cannot be applied.
    """
    found = sections.get(connection, section_id, weights, now)
    place = np.flatnonzero(found.ranking.ids == comment_id)
    return explain(found.ranking, int(place[0]) + 1, found.read, found.policy) if len(place) else []


def _rank(connection: Connection, section_id: int, policy: Policy, now: datetime) -> tuple[Ranking, Columns]:
    """Return the current ranking of a section's shown roots, and the columns it was computed from."""
    found = read_columns(connection, section_id, columns_to_read(policy), now)
    read = {name: column[found.shown] for name, column in found.read.items()}
    return rank(found.ids[found.shown], read, policy), read
