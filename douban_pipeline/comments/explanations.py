"""Explains why comments stand where visitors are served them; nothing is written.

What is explained is the score that the served order uses, part by part as it was stored. Counts are read now: where the
score of now differs from the one that is used, the explanation says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from douban_pipeline.comments.cache.lists import RedisLists
from douban_pipeline.comments.heat.explanation import Facts, Neighbour, ServedRank, explain, explain_pinned
from douban_pipeline.comments.heat.ranking import columns_to_read, rank
from douban_pipeline.comments.scoring import policies
from douban_pipeline.comments.scoring.columns import read_columns
from douban_pipeline.comments.scoring.scores import TOLERANCE
from douban_pipeline.comments.served import ServedOrder, ServedPlace
from douban_pipeline.comments.store.comment_lists import CommentPlace, shown_ids
from douban_pipeline.comments.store.sections import get_section
from douban_pipeline.comments.store.tables import score
from douban_pipeline.comments.types import SectionStatus
from douban_pipeline.core.errors import ProblemsError


def explain_places(
    connection: Connection,
    lists: RedisLists | None,
    section_id: int,
    places: Sequence[int],
    weights: Mapping[str, Any],
) -> dict[int, list[str]]:
    """Return by place, counted from 1, the explanation of its comment's rank, in Chinese sentences.

    Raises:
        ProblemsError: There is no such section or place, or a rule cannot be applied.
    """
    order = ServedOrder(connection, lists, section_id, _section(connection, section_id)["pinned"])
    total = order.total()
    wrong = [place for place in places if not 1 <= place <= total]
    if wrong:
        raise ProblemsError([f"评论区 {section_id} 有 {total} 条评论，没有第 {place} 名" for place in wrong])
    found = {}
    for place in places:
        number = order.comment_at(place)
        said = explain_comment(connection, lists, section_id, number, weights)[1] if number is not None else []
        found[place] = [f"评论 {number}。", *said] if said else ["列表刚刚变动，请再试一次。"]
    return found


def explain_comment(
    connection: Connection,
    lists: RedisLists | None,
    section_id: int,
    comment_id: int,
    weights: Mapping[str, Any],
) -> tuple[int | None, list[str]]:
    """Return a root's place in the served order by heat, and the explanation of it in Chinese sentences.

    A pinned comment has no place in the order; of one that is in no list there is nothing to explain: no sentences.

    Raises:
        ProblemsError: There is no such section, or a rule cannot be applied.
    """
    section = _section(connection, section_id)
    if section["status"] == SectionStatus.HIDDEN:
        return None, ["评论区已隐藏，读者看不到其中的评论。"]
    pinned = [int(number) for number in section["pinned"]]
    on_top = shown_ids(connection, pinned)
    if comment_id in on_top:
        return None, explain_pinned([number for number in pinned if number in on_top].index(comment_id) + 1)
    at = ServedOrder(connection, lists, section_id, pinned).place_of(comment_id)
    if at is None:
        return None, []
    listed = [each for each in (at.own, at.upper, at.lower) if each is not None]
    stored = _stored(connection, [each.comment_id for each in listed])
    facts = _facts(connection, section, comment_id, stored.get(comment_id), weights)
    return at.number, explain(_served_rank(at, stored), facts)


def _section(connection: Connection, section_id: int) -> RowMapping:
    found = get_section(connection, section_id)
    if found is None:
        raise ProblemsError([f"没有编号为 {section_id} 的评论区"])
    return found


def _stored(connection: Connection, ids: Sequence[int]) -> dict[int, RowMapping]:
    query = select(score).where(score.c.comment_id.in_(ids), score.c.score_at.is_not(None))
    return {row["comment_id"]: row for row in connection.execute(query).mappings()}


def _served_rank(at: ServedPlace, stored: Mapping[int, RowMapping]) -> ServedRank:
    def neighbour(place: CommentPlace) -> Neighbour:
        row = stored.get(place.comment_id)
        # A sweep publishes its list before it stores the parts: those of another score explain nothing.
        return Neighbour(place.key, row["parts"] if row is not None and row["heat"] == place.key else None)

    own = stored.get(at.own.comment_id)
    return ServedRank(
        at.number,
        at.total,
        neighbour(at.own),
        neighbour(at.upper) if at.upper is not None else None,
        neighbour(at.lower) if at.lower is not None else None,
        tuple(own["decisions"]) if own is not None else (),
        own["variant"] if own is not None else "",
    )


def _facts(
    connection: Connection, section: RowMapping, comment_id: int, row: RowMapping | None, weights: Mapping[str, Any]
) -> Facts:
    """Return the comment's columns of now, and whether they and the rules still give the stored score."""
    policy = policies.policy_of(connection, section["section_id"], weights)
    swept = section["scored_at"] is not None
    at = section["scored_at"] if swept else section["created_at"]
    columns = read_columns(connection, section["section_id"], columns_to_read(policy), at, only=comment_id)
    ranking = rank(columns.ids, columns.read, policy)
    heat = int(ranking.heat[0])
    same = row is not None and abs(heat - row["heat"]) < TOLERANCE and policy.variant == row["variant"]
    counted = {name for name, hit in ranking.recalled.counted.items() if hit[0]}
    same = same and row is not None and counted == set(row["decisions"])
    values = {name: column[0] for name, column in columns.read.items()}
    return Facts(values, policy, ranking.recalled, heat, swept, same)
