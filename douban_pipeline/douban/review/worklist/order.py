"""The order of waiting videos: value × doubt, both between 0 and 1.

**Value** is what a mistake costs the site's visitors::

    watched = log10(1 + hits) / 6, at most 1      a million hits are the maximum
    talked  = log10(1 + comments) / 4, at most 1  comments of a section that was active within a week
    popular = the larger of the two
    recent  = ½ ^ (days since the CMS last changed it / 90)
    value   = 0.05 + 0.65 · popular + 0.30 · recent

**Doubt** is how likely a review changes the outcome. The reasons are combined like independent probabilities::

    near    = 1 − |best score − confirm| / 30, at least 0     0.6   close to the threshold
    tight   = 1 − lead / (3 · least lead), at least 0         0.4   a rival is near; no rival is no doubt
    in_cms  = an id in doubt is in the CMS                    0.7   visitors see it now
    failing = five failures in a row                          0.5   automation is stuck
    doubt   = 1 − 0.9 · Π (1 − weight · reason)

A video without any of these facts still has a value of 0.05 and a doubt of 0.1, so that none is lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from douban_pipeline.douban.settings import Settings

_LEAST_VALUE, _POPULAR, _RECENT = 0.05, 0.65, 0.30
_MOST_HITS, _MOST_COMMENTS = 6.0, 4.0
"""Maxima, as powers of ten."""

_HALF_LIFE = timedelta(days=90)
_LEAST_DOUBT = 0.1
_NEAR, _TIGHT, _IN_CMS, _FAILING = 0.6, 0.4, 0.7, 0.5
_REACH = 30.0
"""Distance from the confirm threshold, in points, from which a score adds no doubt."""

_WIDE = 3.0
"""Multiple of the least lead from which a rival adds no doubt."""


@dataclass(frozen=True, slots=True)
class ConfirmLines:
    """Thresholds of verdicts: the score that confirms, and the least lead over another work."""

    confirm: float
    lead: float


def lines_of(settings: Settings) -> ConfirmLines:
    """Return the thresholds of the settings."""
    return ConfirmLines(settings.confirm_score, settings.lead_score)


def value_of(hits: int, updated: datetime | None, now: datetime, comments: int = 0) -> float:
    """Return the value of a video to the site, 0.05 to 1.

    Args:
        hits: How often it was watched.
        updated: When the CMS last changed it; None for never.
        now: The current time.
        comments: Number of comments in its section, if it is hot.
    """
    watched = math.log10(1 + max(0, hits)) / _MOST_HITS
    talked = math.log10(1 + max(0, comments)) / _MOST_COMMENTS
    popular = min(1.0, max(watched, talked))
    recent = 0.0 if updated is None else 0.5 ** (max(timedelta(0), now - updated) / _HALF_LIFE)
    return _LEAST_VALUE + _POPULAR * popular + _RECENT * recent


def doubt_of(score: float | None, lead: float | None, lines: ConfirmLines, *, in_cms: bool, failing: bool) -> float:
    """Return the doubt about a video, 0.1 to 1.

    Args:
        score: Score of the best candidate; None without one.
        lead: Its lead over the best other work; None without a rival.
        lines: Thresholds of verdicts.
        in_cms: Whether the CMS holds an id that is in doubt.
        failing: Whether it failed five times in a row.
    """
    near = 0.0 if score is None else max(0.0, 1 - abs(score - lines.confirm) / _REACH)
    tight = 0.0 if lead is None else _tight(max(0.0, lead), lines.lead)
    calm = (1 - _NEAR * near) * (1 - _TIGHT * tight) * (1 - _IN_CMS * in_cms) * (1 - _FAILING * failing)
    return 1 - (1 - _LEAST_DOUBT) * calm


def _tight(lead: float, least: float) -> float:
    if not least:
        return float(lead == 0)
    return max(0.0, 1 - lead / (_WIDE * least))
