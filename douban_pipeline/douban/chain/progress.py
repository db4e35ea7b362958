"""Progress of work, for the log and a run's metadata: done, left, rate, allowance used, expected end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, or_, select
from sqlalchemy import func as sql

from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import GateUnreadable
from douban_pipeline.core.gate_status import GateStatus
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.douban.chain.due.due_videos import DueScope, in_scope
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ReviewStatus, TaskType

INTERVAL = timedelta(seconds=30)
"""How far two lines are apart."""

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class HowFar:
    """Progress of some work at one moment.

    Attributes:
        done: Videos that are done.
        left: Videos that are not done.
        elapsed: Time since the beginning.
        now: The moment.
        used: Share of its allowance that was used in that time, by source, over all processes (1.0 is all of it).
    """

    done: int
    left: int
    elapsed: timedelta
    now: datetime
    used: Mapping[str, float] = field(default_factory=dict)

    @property
    def per_minute(self) -> float:
        """Videos a minute; 0 as long as nothing is known."""
        return self.done / (self.elapsed / _MINUTE) if self.elapsed > timedelta(0) else 0.0

    @property
    def ends_at(self) -> datetime | None:
        """When the rest will be done at this rate; None if nothing was done yet."""
        return self.now + self.left / self.per_minute * _MINUTE if self.per_minute else None

    def line(self, what: str, zone: ZoneInfo, *, done: int | None = None, deadline: datetime | None = None) -> str:
        """Return it as a line of the log.

        Args:
            what: What is done.
            zone: Time zone of times shown.
            done: What to show as done, where that is more than the rate is taken from.
            deadline: When the work stops at the latest.
        """
        shown = self.done if done is None else done
        parts = [f"{what}: {shown} done, {self.left} left", f"{self.per_minute:.1f} a minute"]
        if self.used:
            shares = ", ".join(f"{source} {share:.0%}" for source, share in sorted(self.used.items()))
            parts.append(f"allowance used: {shares}")
        if self.left:
            parts.append(self._end(zone, deadline))
        return "; ".join(parts)

    def _end(self, zone: ZoneInfo, deadline: datetime | None) -> str:
        ends_at = self.ends_at
        if ends_at is None:
            return "no end in sight yet"
        if deadline is not None and ends_at > deadline:
            stay = self.left - int(self.per_minute * (max(deadline - self.now, timedelta(0)) / _MINUTE))
            return f"ends {local_time(deadline, zone)} ({zone.key}), when about {max(stay, 1)} stay for the next runs"
        return f"ends about {local_time(ends_at, zone)} ({zone.key})"


def allowance_used(before: Mapping[str, int], after: list[GateStatus], elapsed: timedelta) -> dict[str, float]:
    """Return the used share of its allowance of each source that granted any calls.

    Args:
        before: Calls that each source had granted at the beginning.
        after: The current gates.
        elapsed: The time between the two.
    """
    minutes = elapsed / _MINUTE
    return {
        gate.source: (gate.granted - before[gate.source]) / (minutes * gate.requests_per_minute)
        for gate in after
        if minutes > 0 and gate.granted > before.get(gate.source, gate.granted)
    }


@dataclass(slots=True)
class Progress:
    """Follows one step of a run, and logs its progress every `INTERVAL`.

    Attributes:
        what: Name of the work, for the log.
        log: Where the lines go.
        zone: Time zone of times shown.
        gates: Reads the sources' gates.
        clock_now: Reads the clock.
        deadline: When the step stops at the latest.
        further: Returns a line about more than this step, such as a whole backfill, or nothing.
    """

    what: str
    log: logging.Logger
    zone: ZoneInfo
    gates: Callable[[], list[GateStatus]]
    clock_now: Callable[[], datetime]
    deadline: datetime
    further: Callable[[], str] | None = None
    done: int = field(default=0, init=False)
    total: int = field(default=0, init=False)
    _began: datetime | None = field(default=None, init=False)
    _said: datetime | None = field(default=None, init=False)
    _granted: dict[str, int] = field(default_factory=dict, init=False)

    def begin(self, total: int) -> None:
        """Begin to count, with ``total`` videos to do."""
        self.done, self.total = 0, total
        self._began = self._said = self.clock_now()
        self._granted = {gate.source: gate.granted for gate in self._gates()}

    def note(self, now: datetime) -> None:
        """Count one video as done, and log the progress if it is time to."""
        self.done += 1
        if self._said is not None and now - self._said >= INTERVAL:
            self._said = now
            self.log.info(self.now(now).line(self.what, self.zone, deadline=self.deadline))
            if self.further is not None and (line := self.further()):
                self.log.info(line)

    def now(self, now: datetime) -> HowFar:
        """Return how far the step is."""
        elapsed = now - (self._began or now)
        used = allowance_used(self._granted, self._gates(), elapsed)
        return HowFar(self.done, self.total - self.done, elapsed, now, used)

    def _gates(self) -> list[GateStatus]:
        """Return the gates; none if they cannot be read, because the work continues without them."""
        try:
            return self.gates()
        except GateUnreadable as error:
            self.log.warning(f"the allowance used is not known: {error}")
            return []

    def metadata(self) -> dict[str, float]:
        """Return rate and allowance used, for a run's metadata; nothing where nothing was done."""
        if not self.done:
            return {}
        found = self.now(self.clock_now())
        shares = {f"allowance_used_{source}": round(100 * share, 1) for source, share in sorted(found.used.items())}
        return {"videos_per_minute": round(found.per_minute, 1), **shares}


LATELY = timedelta(minutes=5)
"""The rate of a backfill is that of this time: it may have stood still for a night."""


def backfill_line(services: Services, scope: DueScope, began: datetime) -> str:
    """Return how far a backfill of all shards that began at ``began`` is, as a line of the log.

    Everything that was done since counts, whichever run did it: runs of the sensor share out the same work.
    """
    now = services.clock.now()
    task = services.tables.task
    since = max(began, now - LATELY)
    closed = (task.c.finished_at <= now, task.c.task_type != TaskType.AI_INTRO)
    with reading(services.engine) as connection:

        def count(*conditions: ColumnElement[bool]) -> int:
            return int(connection.execute(select(sql.count()).where(*conditions)).scalar_one())

        left = count(*_unvisited(services, scope, began, now), *in_scope(services.tables, services.settings))
        done = count(task.c.finished_at >= began, *closed)
        lately = count(task.c.finished_at >= since, *closed)
    recent = HowFar(lately, left, now - since, now)
    return recent.line("whole backfill", services.settings.zone, done=done)


def _unvisited(services: Services, scope: DueScope, began: datetime, now: datetime) -> Sequence[ColumnElement[bool]]:
    """Return the conditions that a backfill has a video still before it."""
    video = services.tables.video
    due = video.c.douban_next_sync_at <= now
    if scope is DueScope.due:
        return [due]
    not_yet = or_(video.c.douban_last_sync_at.is_(None), video.c.douban_last_sync_at < began)
    wanted = [video.c.douban_next_sync_at.is_not(None), video.c.douban_review_status != ReviewStatus.IGNORED, not_yet]
    return wanted if scope is DueScope.everything else [*wanted, video.c.douban_review_status != ReviewStatus.CONFIRMED]
