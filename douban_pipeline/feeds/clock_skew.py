"""A source's clock: by how much its times are wrong, learned from when its entries appear. Pure.

An entry that is new at a poll was published since the poll before it. So the true time of a publication lies between
two polls, and the error of the stated time between two bounds. A source is right as long as some of its entries agree
with no error at all; a wrong zone shows as one error, of whole quarters of an hour, that nearly all entries agree with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

QUARTER, HOUR = 900, 3600
KEPT = 20
"""Sightings kept of a source."""
LEAST = 5
"""Sightings from which an error is concluded, and by which it is dropped."""
LEAST_LATE = 10
"""Sightings, none of them right, from which it is concluded that a clock is behind: entries may merely be late."""
LARGEST = 14 * HOUR
"""The greatest error of a zone: CST of the US for that of China."""
LEAST_BEHIND = 3 * HOUR
"""A source may show its entries late, but hardly hours late to the minute; no entry appears before its time."""
_EARLY, _LATE = 300, 900
"""Seconds by which clocks may differ, and by which an entry may appear late."""
_NARROW = 2 * HOUR
_WIDEST = HOUR
"""An error is known once the errors that agree lie within so many seconds."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A new entry: when it was found, its stated time, and when the source had been polled before."""

    found: int
    stated: int
    before: int

    def agrees(self, error: int) -> bool:
        """Return whether the entry was published between the two polls if ``error`` is added to its time."""
        return self.before - self.stated - _LATE < error <= self.found - self.stated + _EARLY


@dataclass(frozen=True, slots=True)
class SourceClock:
    """What is known of a source's clock.

    Attributes:
        skew: Seconds to be added to its times.
        since: Entries found before this moment were stated by another clock; 0 if the clock never changed.
        seen: The last sightings, oldest first.
    """

    skew: int = 0
    since: int = 0
    seen: Sequence[Sighting] = field(default_factory=tuple)

    def after(self, sighting: Sighting) -> SourceClock:
        """Return what is known after another sighting."""
        if self.seen and sighting.found <= self.seen[-1].found:
            return self
        seen = [*self.seen, sighting][-KEPT:]
        since, last = self.since, seen[-LEAST:]
        if self.skew and len(last) == LEAST and sum(each.agrees(self.skew) for each in last) <= 1:
            # Its clock was put right, or set otherwise: what was seen before says nothing of it.
            seen = [each for each in last if not each.agrees(self.skew)]
            since = seen[0].found
            return SourceClock(learned_skew(seen) or 0, since, seen)
        learned = learned_skew(seen)
        return SourceClock(self.skew if learned is None else learned, since, seen)

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        return {
            "skew": self.skew,
            "since": self.since,
            "seen": [[each.found, each.stated, each.before] for each in self.seen],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> SourceClock:
        """Return the clock from its stored form; one of which nothing is known if that cannot be read."""
        try:
            seen = tuple(Sighting(*map(int, each)) for each in stored.get("seen", ()))
            skew = int(stored.get("skew", 0))
            return cls(skew if abs(skew) <= LARGEST else 0, int(stored.get("since", 0)), seen)
        except (TypeError, ValueError):
            return cls()


def learned_skew(seen: Sequence[Sighting]) -> int | None:
    """Return the error of a source's clock in seconds, 0 if it is right, or None if the sightings do not decide it."""
    if len(seen) < LEAST:
        return None
    nearly_all = len(seen) - len(seen) // 10
    right = sum(each.agrees(0) for each in seen)
    if right >= nearly_all:
        return 0
    # Nothing is published after it was found, but some entries are shown late.
    ahead = sum(each.stated > each.found + _EARLY for each in seen)
    if ahead < LEAST - 2:
        if right:
            return None
        # Late by chance is told from a clock that is behind by the narrower of the sightings alone.
        seen = [each for each in seen if each.found - each.before <= _NARROW]
        if len(seen) < LEAST_LATE:
            return None
        nearly_all = len(seen)
    if len({each.stated % HOUR for each in seen}) < LEAST - 2:
        return None  # what is stated is a date or an hour, not the reading of a clock
    errors = [
        error
        for error in range(-LARGEST, LARGEST + 1, QUARTER)
        if (error < 0 or error >= LEAST_BEHIND) and sum(each.agrees(error) for each in seen) >= nearly_all
    ]
    if not errors or errors[-1] - errors[0] > _WIDEST:
        return None
    if len(errors) == 1:
        return errors[0]
    hours = [error for error in errors if error % HOUR == 0]
    return hours[0] if len(hours) == 1 else None
