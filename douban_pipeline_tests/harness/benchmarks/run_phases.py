"""Where the time of one run went, as its events tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import dagster as dg

_BEGAN = dg.DagsterEventType.STEP_START
_ENDED = (
    dg.DagsterEventType.STEP_SUCCESS,
    dg.DagsterEventType.STEP_FAILURE,
    dg.DagsterEventType.STEP_SKIPPED,
)
_FINISHED = (
    dg.DagsterEventType.RUN_SUCCESS,
    dg.DagsterEventType.RUN_FAILURE,
    dg.DagsterEventType.RUN_CANCELED,
)


@dataclass(frozen=True, slots=True)
class RunPhases:
    """Seconds of one run, from the moment it was asked for.

    Attributes:
        wall: Until it had finished.
        queued: Until Dagster took it from the queue.
        starting: From there until its first step: a process, its imports, its resources.
        steps: Within steps: our work, and Dagster's events of it.
        between: From the first step to the end, but not within a step.
        longest: The steps by their seconds, the longest first.
    """

    wall: float
    queued: float
    starting: float
    steps: float
    between: float
    longest: tuple[tuple[str, float], ...]

    @property
    def dagster(self) -> float:
        """Seconds outside of steps."""
        return self.wall - self.steps


@dataclass(frozen=True, slots=True)
class Step:
    """When a step began and ended (unix seconds)."""

    began: float
    ended: float


Moment = tuple[float, dg.DagsterEventType, str]


def phases(asked_at: float, moments: Iterable[Moment]) -> RunPhases:
    """Return where the time went of a run that was asked for at ``asked_at`` and executes its steps one by one.

    Args:
        asked_at: Unix seconds.
        moments: Time, type and step of its events, in any order.

    Raises:
        ValueError: It never had a step, or did not finish.
    """
    moments = list(moments)
    steps = steps_among(moments)
    dequeued = max((at for at, kind, _ in moments if kind is dg.DagsterEventType.RUN_STARTING), default=None)
    finished = max((at for at, kind, _ in moments if kind in _FINISHED), default=None)
    if finished is None or dequeued is None or not steps:
        raise ValueError("the run did not come as far as a step and its end")
    first = min(step.began for step in steps.values())
    longest = tuple(
        sorted(((name, step.ended - step.began) for name, step in steps.items()), key=lambda pair: -pair[1])
    )
    inside = sum(seconds for _, seconds in longest)
    return RunPhases(
        finished - asked_at, dequeued - asked_at, first - dequeued, inside, finished - first - inside, longest
    )


def steps_among(moments: Iterable[Moment]) -> dict[str, Step]:
    """Return the steps that began and ended, by name."""
    starts: dict[str, float] = {}
    steps: dict[str, Step] = {}
    for at, kind, name in sorted(moments, key=lambda moment: moment[0]):
        if kind is _BEGAN:
            starts[name] = at
        elif kind in _ENDED and name in starts:
            steps[name] = Step(starts[name], at)
    return steps


def phases_of(instance: dg.DagsterInstance, run_id: str, asked_at: float) -> RunPhases:
    """Return where the time of a run in ``instance`` went.

    Raises:
        ValueError: As `phases`.
    """
    return phases(asked_at, _moments(instance, run_id))


def _moments(instance: dg.DagsterInstance, run_id: str) -> list[Moment]:
    entries = ((entry, entry.dagster_event) for entry in instance.all_logs(run_id))
    return [(entry.timestamp, event.event_type, entry.step_key or "") for entry, event in entries if event]
