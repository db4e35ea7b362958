"""What a change of policy would move in a section, before it is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from douban_pipeline.comments.heat.graph import Column
from douban_pipeline.comments.heat.ranking import Ranking
from douban_pipeline.comments.heat.score import HEAT


@dataclass(frozen=True, slots=True)
class Move:
    """A comment that another policy would put elsewhere.

    Attributes:
        comment_id: Which.
        before: Its place, counted from 1.
        after: Its place under the other policy.
        points: By how much its score differs.
        rules: Names of the rules of the other policy that count for it.
    """

    comment_id: int
    before: int
    after: int
    points: float
    rules: tuple[str, ...]

    def __str__(self) -> str:
        """Say it in a sentence."""
        because = f"，规则 {'、'.join(self.rules)}" if self.rules else ""
        direction = "升" if self.after < self.before else "降" if self.after > self.before else "不动"
        return f"评论 {self.comment_id}：第 {self.before} → 第 {self.after}（{direction}{because}）"


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What another policy would do to a section.

    Attributes:
        comments: How many comments the section has.
        hits: By rule of the other policy, for how many comments it would count.
        changed: How many comments would get another score.
        moved: How many of them would change place, with those that change place on top.
        moves: These, by the higher of both places; the first of them.
    """

    comments: int
    hits: dict[str, int]
    changed: int
    moved: int
    moves: tuple[Move, ...]

    def sentences(self) -> list[str]:
        """Return what would happen, in Chinese."""
        found = [f"共 {self.comments} 条评论，{self.changed} 条得分变化，{self.moved} 条名次变化。"]
        found += [f"规则「{name}」将对 {count} 条生效。" for name, count in self.hits.items()]
        return found + [f"{move}。" for move in self.moves]


def what_if(before: Ranking, after: Ranking, *, top: int = 10, most: int = 200) -> WhatIf:
    """Compare two rankings of the same columns.

    A boost far below shifts whatever it passes by one place; such shifts are told of only within the first ``top``
    places, before or after.

    Args:
        before: By the present policy.
        after: By the other one.
        top: Places in which every change is told of.
        most: Moves that are returned.

    Raises:
        ValueError: They are not of the same comments.
    """
    count = len(before)
    if count != len(after) or not np.array_equal(np.sort(before.ids), np.sort(after.ids)):
        raise ValueError("rankings of different comments")
    first, second = (_by_row(each) for each in (before, after))
    places = np.minimum(first.places, second.places)
    changed = first.heat != second.heat
    moved = (first.places != second.places) & (changed | (places <= top))
    rows = np.flatnonzero(moved)
    total = len(rows)
    rows = rows[np.lexsort((second.places[rows], places[rows]))][:most]
    counted = after.recalled.counted
    moves = [
        Move(
            int(before.ids[first.places[row] - 1]),
            int(first.places[row]),
            int(second.places[row]),
            float(second.heat[row] - first.heat[row]) / HEAT,
            tuple(name for name, hit in counted.items() if hit[row]),
        )
        for row in rows
    ]
    hits = {name: int(np.count_nonzero(hit)) for name, hit in counted.items()}
    return WhatIf(count, hits, int(np.count_nonzero(changed)), total, tuple(moves))


@dataclass(frozen=True, slots=True)
class _ByRow:
    places: Column
    heat: Column


def _by_row(ranking: Ranking) -> _ByRow:
    places, heat = np.empty(len(ranking), dtype=np.int64), np.empty(len(ranking), dtype=np.int64)
    places[ranking.rows] = np.arange(1, len(ranking) + 1)
    heat[ranking.rows] = ranking.heat
    return _ByRow(places, heat)


def top_moves(before: Sequence[int], after: Sequence[int]) -> int:
    """Return how many of the first comments of ``after`` stand elsewhere than in ``before``, or came from outside."""
    places = {comment: place for place, comment in enumerate(before)}
    return sum(places.get(comment) != place for place, comment in enumerate(after))
