"""Confidence of a share: the Wilson score interval, which stays accurate near 0 and 1 and for few rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

Z = 1.96
"""Standard deviations to each side of a two-sided 95 % interval."""


class Interval(NamedTuple):
    """Bounds of a share, 0 to 1."""

    low: float
    high: float


def wilson(successes: int, total: int, z: float = Z) -> Interval:
    """Return the Wilson interval of ``successes`` out of ``total``; (0, 1) if ``total`` is 0.

    Args:
        successes: Rows that have the property.
        total: All rows.
        z: Standard deviations to each side; see `Z`.

    Raises:
        ValueError: ``successes`` is not between 0 and ``total``.
    """
    if not 0 <= successes <= total:
        raise ValueError(f"{successes} of {total} is not a share")
    if not total:
        return Interval(0.0, 1.0)
    share = successes / total
    square = z * z
    middle = share + square / (2 * total)
    reach = z * math.sqrt((share * (1 - share) + square / (4 * total)) / total)
    scale = 1 + square / total
    # At 0 and 1 the bound is exact; rounding must not move it.
    low = 0.0 if successes == 0 else (middle - reach) / scale
    high = 1.0 if successes == total else (middle + reach) / scale
    return Interval(low, high)


def most_when_none_seen(total: int, confidence: float = 0.95) -> float:
    """Return the greatest share, 0 to 1, of what was not seen in ``total`` rows: about 3 in ``total``.

    The upper bound of Clopper and Pearson, one-sided; 1 if ``total`` is 0.
    """
    return 1 - (1 - confidence) ** (1 / total) if total else 1.0


@dataclass(frozen=True, slots=True)
class Rate:
    """How many of ``total`` rows have a property: ``hits`` of them."""

    hits: int
    total: int

    @property
    def misses(self) -> int:
        """How many do not have it."""
        return self.total - self.hits

    @property
    def share(self) -> float | None:
        """The share that has it, 0 to 1; None without rows."""
        return self.hits / self.total if self.total else None

    @property
    def interval(self) -> Interval:
        """The 95 % interval (Wilson) of the share."""
        return wilson(self.hits, self.total)
