"""Whether what a process uses grows: a slope that outliers do not move, and when it is steep enough to matter. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

WARM_UP = 1 / 3
"""Share of a process's life that is not judged: modules are loaded, pools and caches fill."""
WARM_UP_MINUTES = 12.0
"""And at least so much of it: daemon and code server that hold +4 and +32 MB/h after 20 minutes showed +77 and +117
after nine."""
LEAST_MINUTES = 8.0
"""A stretch shorter than this is told but not judged: a few MB of noise would be a steep slope."""
_BUCKETS = 60

Point = tuple[float, float]
"""Seconds, and what was used then."""


@dataclass(frozen=True, slots=True)
class Limit:
    """When growth is a leak.

    Attributes:
        per_hour: Slope from which it may be one, in units an hour.
        least: Growth over what was looked at from which it may be one, in units; below lies what any process does.
    """

    per_hour: float
    least: float


MEMORY = Limit(per_hour=40.0, least=8.0)
"""MB. A service that leaks this much an hour needs a restart a day; less is hardly to be told in half an hour."""
DESCRIPTORS = Limit(per_hour=20.0, least=6.0)
"""Open files and sockets; some come and go with the requests under way."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How what a process uses went, after its warm-up.

    Attributes:
        minutes: Length of the stretch that was looked at.
        per_hour: Slope (Theil–Sen), in units an hour.
        first: Where the line begins, in units.
        last: Where it ends.
        noise: Median distance of the samples from the line.
        flat: Whether it does not grow; None where the stretch is too short to say.
    """

    minutes: float
    per_hour: float
    first: float
    last: float
    noise: float
    flat: bool | None

    def summary(self, unit: str) -> str:
        """Return it in a sentence."""
        what = {True: "flat", False: "GROWS", None: "too short to judge"}[self.flat]
        return (
            f"{what}: {self.first:.1f} → {self.last:.1f} {unit} in {self.minutes:.1f} min "
            f"({self.per_hour:+.1f} {unit}/h, noise ±{self.noise:.1f})"
        )


def growth_of(points: Sequence[Point], limit: Limit, *, least_minutes: float = LEAST_MINUTES) -> Growth:
    """Return how ``points``, oldest first, grow after the warm-up.

    It is a leak if the slope and the growth both exceed ``limit``, and the growth is more than the noise explains.
    """
    settled = _settled(points)
    if len(settled) < 3:
        value = settled[-1][1] if settled else 0.0
        return Growth(0.0, 0.0, value, value, 0.0, None)
    seconds = settled[-1][0] - settled[0][0]
    slope, start = theil_sen(thinned(settled, _BUCKETS))
    noise = median(abs(value - (start + slope * at)) for at, value in settled)
    first, last = start + slope * settled[0][0], start + slope * settled[-1][0]
    steep = slope * 3600 > limit.per_hour and last - first > max(limit.least, 3 * noise)
    long_enough = seconds / 60 >= least_minutes
    return Growth(seconds / 60, slope * 3600, first, last, noise, not steep if long_enough else None)


def _settled(points: Sequence[Point]) -> list[Point]:
    if not points:
        return []
    life = points[-1][0] - points[0][0]
    begins = points[0][0] + max(WARM_UP * life, WARM_UP_MINUTES * 60)
    return [point for point in points if point[0] >= begins]


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """Return at most ``most`` points, each the median of neighbours."""
    size = math.ceil(len(points) / most)
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    return [(median(at for at, _ in group), median(value for _, value in group)) for group in groups]


def theil_sen(points: Sequence[Point]) -> tuple[float, float]:
    """Return slope and value at 0 of the line through ``points``: the median of all slopes, and of what is left.

    Nearly a third of the points may be anywhere without moving it. Points at one moment have no slope.
    """
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2) if b[0] != a[0]]
    slope = median(slopes) if slopes else 0.0
    return slope, median(value - slope * at for at, value in points)
