"""Wrong links against coverage at different score thresholds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from douban_pipeline.core.intervals import Rate
from douban_pipeline.douban.quality.labelled_replay import Result
from douban_pipeline.douban.quality.labelled_rows import link_is_wrong
from douban_pipeline.douban.quality.metrics import Expectation, expectation, is_headline
from douban_pipeline.matching import Code

SCORE_REASONS = frozenset({str(Code.LEAD_TOO_SMALL), str(Code.BELOW_CONFIRM), str(Code.BELOW_REVIEW)})
"""Reasons that concern only the score."""


@dataclass(frozen=True, slots=True)
class Point:
    """Number of links if all eligible rows with at least a given score were linked.

    Attributes:
        threshold: The minimum score.
        linked: Links of headline rows.
        wrong: Wrong links of headline rows.
        missing_wrong: Links of rows whose true subject is missing.
    """

    threshold: float
    linked: Rate
    wrong: Rate
    missing_wrong: Rate


@dataclass(frozen=True, slots=True)
class Sweep:
    """Two curves of wrong links against coverage.

    Attributes:
        clean: Over confirmed rows: the effect of a higher threshold.
        loose: Also over rows not confirmed only because of score or lead: the effect of a lower threshold.
    """

    clean: tuple[Point, ...]
    loose: tuple[Point, ...]


def sweep(results: Sequence[Result]) -> Sweep:
    """Return both curves, with every score as a threshold, from the highest down."""
    headline = [result for result in results if is_headline(result.gold)]
    missing = [result for result in results if expectation(result.gold) is Expectation.NONE]
    return Sweep(tuple(_points(headline, missing, loose=False)), tuple(_points(headline, missing, loose=True)))


def _points(headline: Sequence[Result], missing: Sequence[Result], *, loose: bool) -> Iterator[Point]:
    events = [
        (result.score, row_is_headline, link_is_wrong(result.gold, result.douban_id))
        for row_is_headline, rows in ((True, headline), (False, missing))
        for result in rows
        if result.score is not None and result.douban_id is not None and _may_be_linked(result, loose)
    ]
    events.sort(key=lambda event: -event[0])
    linked = wrong = missing_wrong = 0
    for number, (score, row_is_headline, is_wrong) in enumerate(events):
        linked += row_is_headline
        wrong += row_is_headline and is_wrong
        missing_wrong += not row_is_headline
        if number + 1 == len(events) or events[number + 1][0] != score:
            total = len(headline)
            yield Point(score, Rate(linked, total), Rate(wrong, total), Rate(missing_wrong, len(missing)))


def _may_be_linked(result: Result, loose: bool) -> bool:
    if result.verdict == "CONFIRMED":
        return True
    return loose and bool(result.reasons) and SCORE_REASONS.issuperset(map(str, result.reasons))


def at_steps(points: Sequence[Point], step: float) -> list[Point]:
    """Return the points at multiples of ``step``, from the highest down, for a table."""
    if not points:
        return []
    found: list[Point] = []
    threshold = step * (points[0].threshold // step)
    place = 0
    while True:
        while place + 1 < len(points) and points[place + 1].threshold >= threshold:
            place += 1
        point = points[place]
        if point.threshold >= threshold:
            found.append(Point(threshold, point.linked, point.wrong, point.missing_wrong))
        if place + 1 == len(points):
            return found
        threshold = round(threshold - step, 6)
