"""Previews what a change of policy would move in a section."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from douban_pipeline.comments.heat.graph import Column
from douban_pipeline.comments.heat.ranking import HeatRanking
from douban_pipeline.comments.heat.score import HEAT


@dataclass(frozen=True, slots=True)
class Move:
    """A comment that the other policy would move.

    Attributes:
        before: Its place, counted from 1.
        after: Its place under the other policy.
        rules: Names of the other policy's rules that count for it.
    """

    comment_id: int
    before: int
    after: int
    points: float
    rules: tuple[str, ...]

    def __str__(self) -> str:
        """Return a sentence that describes the move."""
        because = f"，规则 {'、'.join(self.rules)}" if self.rules else ""
        direction = "升" if self.after < self.before else "降" if self.after > self.before else "不动"
        return f"评论 {self.comment_id}：第 {self.before} → 第 {self.after}（{direction}{because}）"


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Effect of another policy on a section.

    Attributes:
        hits: Number of comments for which each rule of the other policy would count.
        changed: Number of comments with another score.
    """

    comments: int
    hits: dict[str, int]
    changed: int
    moved: int
    moves: tuple[Move, ...]

    def sentences(self) -> list[str]:
        """Return a description of the effect, in Chinese sentences."""
        found = [f"共 {self.comments} 条评论，{self.changed} 条得分变化，{self.moved} 条名次变化。"]
        found += [f"规则「{name}」将对 {count} 条生效。" for name, count in self.hits.items()]
        return found + [f"{move}。" for move in self.moves]


def what_if(before: HeatRanking, after: HeatRanking, *, top: int = 10, most: int = 200) -> WhatIf:
    """Compare two rankings of the same columns.

    A boost far below shifts every comment it passes by one place; such shifts are reported only within the first
    ``top`` places, before or after.

    Args:
        after: Ranking by the other policy.
        most: Maximum number of moves returned.

    Raises:
        ValueError: The rankings are of different comments.
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


def _by_row(ranking: HeatRanking) -> _ByRow:
    places, heat = np.empty(len(ranking), dtype=np.int64), np.empty(len(ranking), dtype=np.int64)
    places[ranking.rows] = np.arange(1, len(ranking) + 1)
    heat[ranking.rows] = ranking.heat
    return _ByRow(places, heat)


def top_moves(before: Sequence[int], after: Sequence[int]) -> int:
    """Return how many of the first comments of ``after`` have another place than in ``before``, or are new there."""
    places = {comment: place for place, comment in enumerate(before)}
    return sum(places.get(comment) != place for place, comment in enumerate(after))
