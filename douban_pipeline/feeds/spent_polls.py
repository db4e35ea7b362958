"""Whether the budget is spent: polls made against those that were planned, and the correction that follows. Pure.

A plan foresees a day in which nothing is found; each find makes a source's next one less likely for hours, so fewer
polls follow than planned. Polls are nearly proportional to the correction, so those made under earlier corrections show
what there would be without any: a day of them decides the next correction, and none builds up while nothing is polled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

from douban_pipeline.feeds.budget import density
from douban_pipeline.feeds.intensity import DAY, HOUR, Floats

BOUNDS = (0.25, 4.0)
"""Least and greatest correction: what lies beyond is not the plan's error, but polls that cannot be made."""
SHORTEST, LONGEST = 600, 2 * HOUR
"""Seconds of a span that is counted: the review is hourly, and what it missed for longer was an outage."""
KEPT, MOST_KEPT = 7 * DAY, 48
"""Seconds for which spans are kept, so that an outage does not empty them, and how many."""
MOST_FAILED, MOST_LATE = 0.5, 0.05
"""Share of polls that failed, and of sources that waited for their poll, from which a span is not counted."""
LATE = 600
"""Seconds that a source may wait for its poll."""
_EVEN = 0.1
"""Part of a day's polls that is spread evenly: the hours of few sources say little of the others."""


@dataclass(frozen=True, slots=True)
class PlanSpan:
    """Polls between two plans.

    Attributes:
        start: When the earlier plan was made.
        end: When the later one was made.
        planned: Polls planned for the time between, without a correction.
        correction: The correction in force.
        made: Polls made.
    """

    start: int
    end: int
    planned: float
    correction: float
    made: int

    def to_json(self) -> list[float]:
        """Return the stored form."""
        return list(astuple(self))

    @classmethod
    def from_json(cls, stored: Sequence[float]) -> PlanSpan:
        """Return the span from its stored form.

        Raises:
            TypeError, ValueError: It was stored by another release.
        """
        start, end, planned, correction, made = stored
        return cls(int(start), int(end), float(planned), float(correction), int(made))


@dataclass(frozen=True, slots=True)
class Spent:
    """What happened since the last plan: polls made, failed ones among them, and the share of sources that wait."""

    made: int
    failed: int
    late: float


def counted(span: PlanSpan, spent: Spent) -> bool:
    """Return whether a span says anything of the plan: polls could be made in it."""
    usual = SHORTEST <= span.end - span.start <= LONGEST
    return usual and spent.failed <= MOST_FAILED * spent.made and spent.late <= MOST_LATE and span.planned > 0


def planned_between(everyone: Floats, polls_per_day: float, start: float, end: float) -> float:
    """Return the polls planned from ``start`` to ``end``, in local seconds: a day's, spread as sources publish.

    Over a whole day they are a day's, whatever the hours of all sources (``everyone``) are.
    """
    shape = density((1 - _EVEN) * everyone / everyone.sum() + _EVEN / len(everyone))
    edges = np.arange(len(shape) + 1) * DAY / len(shape)
    until = np.concatenate([[0.0], np.cumsum(shape / shape.sum())])
    first, last = (moment // DAY + np.interp(moment % DAY, edges, until) for moment in (start, end))
    return float(polls_per_day * (last - first))


def corrected(spans: Sequence[PlanSpan], before: float, polls_per_day: float) -> float:
    """Return the factor by which more is to be polled than planned, so that the budget is spent.

    Args:
        spans: Counted spans, oldest first.
        before: The correction so far.
        polls_per_day: Polls planned for a day.
    """
    planned = bare = seconds = 0.0
    for span in reversed(spans):
        if seconds >= DAY:
            break
        seconds += span.end - span.start
        planned += span.planned
        bare += span.made / span.correction
    # What is not known of a day is taken to be as before, so that no hour of a first day moves it far.
    missing = max(polls_per_day - planned, 0.0)
    planned, bare = planned + missing, bare + missing / before
    if planned <= 0:
        return before
    return float(np.clip(planned / max(bare, 1e-9), *BOUNDS))
