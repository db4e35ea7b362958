"""Days of the digest on which nothing worked: WeRSS was down, or the model, from the first slot to the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from douban_pipeline_tests.harness.soak.systems.ground import Ground

JOB = "run_digest_slot"
_MOST_SLOTS = 3
"""Slots of such a day that are run beside that of the report: enough for a day, and for a soak's time."""
_MOST_LAUNCHES = 12
"""Of one day: a slot whose run was killed is launched again, as an operator does who backfills a day."""


@dataclass(frozen=True, slots=True)
class IllDay:
    """A day on which one thing did not work at all.

    Attributes:
        run_date: The day.
        what: What was down, ``WeRSS`` or ``the model``.
        down: Takes it down, or brings it back.
        true: What the day's report must say, of all that it could.
    """

    run_date: date
    what: str
    down: Callable[[bool], None]
    true: str


class IllDays:
    """Runs the slots of such days, one day at a time, each slot after the one before it; see `step`.

    Attributes:
        past: The days that were lived through.

    Args:
        ground: Where runs are launched.
        slots: The slots of a day, the report's last.
    """

    def __init__(self, ground: Ground, slots: Sequence[str]) -> None:
        self._ground, self._slots = ground, [*slots[:_MOST_SLOTS], slots[-1]]
        self._left: list[str] = []
        self._launches = 0
        self._day: IllDay | None = None
        self.past: list[IllDay] = []

    @property
    def going_on(self) -> bool:
        """Whether such a day is being lived through."""
        return self._day is not None

    def begin(self, day: IllDay) -> bool:
        """Take down what is down on that day; return False while another such day goes on."""
        if self._day is not None:
            return False
        day.down(True)
        self._day, self._left, self._launches = day, [*self._slots], 0
        return True

    def step(self) -> str:
        """Launch the next slot once the one before it has ended; bring everything back after the last."""
        assert self._day is not None
        if self._ground.under_way("digest", JOB):
            return f"a day without {self._day.what} went on"
        while self._left and self._ground.succeeded("digest", JOB, **self._tags(self._left[0])):
            self._left.pop(0)
        if not self._left or self._launches >= _MOST_LAUNCHES:
            return self._end()
        self._launches += 1
        if not self._ground.launch("digest", JOB, None, **self._tags(self._left[0])):
            return "a slot that could not be launched"
        return f"a slot of a day without {self._day.what}"

    def _tags(self, slot: str) -> dict[str, str]:
        assert self._day is not None
        day = self._day.run_date.isoformat()
        return {"dagster/partition": f"{day}|{slot}", "dagster/partition/date": day, "dagster/partition/slot": slot}

    def _end(self) -> str:
        day = self._day
        assert day is not None
        day.down(False)
        self.past.append(day)
        self._day = None
        return f"a whole day without {day.what} was over"

    def heal(self) -> None:
        """Bring back what is down; a day that is not over is not judged."""
        if self._day is not None:
            self._day.down(False)
            self._day = None
