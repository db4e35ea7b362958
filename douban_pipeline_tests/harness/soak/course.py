"""The course of a soak: life and troubles side by side for so many minutes, the drain, and the evidence."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import dagster as dg
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline_tests.harness.rig.processes import RigError
from douban_pipeline_tests.harness.soak.background import Acting
from douban_pipeline_tests.harness.soak.disasters import Disasters
from douban_pipeline_tests.harness.soak.drill import Drill
from douban_pipeline_tests.harness.soak.duties import Operator
from douban_pipeline_tests.harness.soak.ending import come_to_rest, drain
from douban_pipeline_tests.harness.soak.evidence import (
    Alert,
    Evidence,
    Kill,
    RunRecord,
    Usage,
    runs_of,
    snapshot_of,
)
from douban_pipeline_tests.harness.soak.harms import Harms
from douban_pipeline_tests.harness.soak.harms import plan as plan_harms
from douban_pipeline_tests.harness.soak.journal import Journal
from douban_pipeline_tests.harness.soak.life import Life
from douban_pipeline_tests.harness.soak.snapshot import Snapshot
from douban_pipeline_tests.harness.soak.troubles import plan
from douban_pipeline_tests.harness.soak.watching import Sample, Watcher
from douban_pipeline_tests.harness.soak.world import World

STEP_SECONDS = (0.3, 1.7)
"""Least and most seconds between two acts of outsiders."""
SAY_SECONDS = 30.0
_OPERATOR_SECONDS = 5.0
_TICK_SECONDS = 0.5


@dataclass(slots=True)
class StopRequests:
    """What the person at the terminal wants: an early end of life and troubles, or of the drain too."""

    end: threading.Event = field(default_factory=threading.Event)
    hurry: threading.Event = field(default_factory=threading.Event)


class Living(Acting):
    """Outsiders at work, on a thread of their own.

    Attributes:
        pause: Held while they must not do anything.
    """

    def __init__(self, life: Life, rng: Random) -> None:
        failed = "a launch that failed"
        super().__init__("life", rng, rhythm=STEP_SECONDS, outages=(RigError,), outage=failed, patience=60)
        self._life = life
        self.pause = threading.Lock()

    def step(self) -> str:
        """Let one of them act, unless they must not."""
        with self.pause:
            return self._life.step()


@dataclass(slots=True)
class Course:
    """What a soak leaves behind."""

    initial: Snapshot
    journal: Journal
    began: datetime
    drain_began: datetime
    ended: datetime
    drained: bool
    runs: list[RunRecord]
    watcher: Watcher
    disasters: Disasters
    drill: Drill
    harms: Harms
    operator: Operator
    living: Living

    def evidence(self, world: World) -> Evidence:
        """Return what an audit of ``world`` rests on."""
        usage = [
            Usage(name, growth.flat is not False, growth.summary(unit))
            for name, (growth, unit) in self.watcher.growths().items()
        ]
        return Evidence(
            services=world.services,
            journal=self.journal,
            initial=self.initial,
            requests=world.replay.requests.describe(),
            limits=world.limits,
            runs=self.runs,
            began=self.began,
            ended=self.ended,
            drain_began=self.drain_began,
            kills=sorted([*self.disasters.kills, *self.drill.kills], key=lambda kill: kill.at),
            alerts=[Alert(each.at, f"{each.title}\n{each.text}", each.url) for each in world.robots.taken],
            usage=usage,
            drained=self.drained,
        )


def live_through(world: World, scratch: Path, stop_requests: StopRequests, say: Callable[[str], None]) -> Course:
    """Let ``world`` live for its minutes, and come to rest; Dagster's services are stopped when this returns.

    Args:
        world: It runs.
        scratch: Folder for journal and samples.
        stop_requests: May end it early.
        say: Told what happens.
    """
    scale, stack, services = world.scale, world.stack, world.services
    seconds = scale.minutes * 60
    initial = snapshot_of(services)
    journal = Journal(scratch / "journal.jsonl")
    life = Life(
        services=services,
        journal=journal,
        rng=Random(f"life {scale.seed}"),
        seed=scale.seed,
        videos=scale.videos,
        most_arrivals=scale.most_arrivals,
        launch=stack.launch,
    )
    living = Living(life, Random(f"rhythm {scale.seed}"))
    disasters = Disasters(world, plan(scale.minutes, scale.seed), living.pause, say)
    processes = {process.name: process for process in (stack.daemon, stack.code, stack.webserver)}
    with stack.instance() as instance:
        operator = Operator(world, instance, seconds)
        drill = Drill(world, life, operator, living.pause)
        harms = Harms(drill.harms(), plan_harms(list(drill.harms()), scale.minutes, scale.seed), say)
        watcher = Watcher(processes, services, instance, world.scratch, scratch / "samples.jsonl")
        began = datetime.now(UTC)
        with watcher:
            with living:
                disasters.begin()
                harms.begin()
                _go_on(seconds, disasters, harms, operator, watcher, stop_requests, say)
                disasters.end()
                harms.end()
            stop_requests.end.set()  # who asks for an end from now on means the drain
            say("life and troubles are over; what waits is done now")
            life.settle()
            drain_began = datetime.now(UTC)
            drained = drain(operator, say, stop_requests.hurry.is_set)
            stack.daemon.stop()
            come_to_rest(operator)
            watcher.look()
        runs = _stopped(world, instance, [*disasters.kills, *drill.kills])
    life.settle()
    life.close()
    return Course(
        initial=initial,
        journal=journal,
        began=began,
        drain_began=drain_began,
        ended=datetime.now(UTC),
        drained=drained,
        runs=runs,
        watcher=watcher,
        disasters=disasters,
        drill=drill,
        harms=harms,
        operator=operator,
        living=living,
    )


def _go_on(
    seconds: float,
    disasters: Disasters,
    harms: Harms,
    operator: Operator,
    watcher: Watcher,
    stop_requests: StopRequests,
    say: Callable[[str], None],
) -> None:
    """Let troubles happen and the operator act until the time is over."""
    reported_at = looked = 0.0
    while disasters.passed < seconds and not stop_requests.end.wait(_TICK_SECONDS):
        disasters.step()
        harms.step()
        if disasters.passed - looked >= _OPERATOR_SECONDS:
            looked = disasters.passed
            operator.step(looked, disasters.ill_sources)
        if disasters.passed - reported_at >= SAY_SECONDS:
            reported_at = disasters.passed
            say(progress(watcher.last, disasters))


def progress(sample: Sample, disasters: Disasters) -> str:
    """Return in a line how things stand."""
    memory = ", ".join(f"{name} {held.memory_mb:.0f}" for name, held in sample.services.items())
    gates = f", breakers open: {', '.join(sample.open_gates)}" if sample.open_gates else ""
    return (
        f"{sample.due} due, {sample.queue} queued, {sample.confirmed} confirmed, {sample.written} writes, "
        f"runs {sum(sample.runs.values())} ({sample.runs.get('FAILURE', 0)} failed), "
        f"{sum(disasters.done.values())} troubles{gates}; MB: {memory}"
    )


def _stopped(world: World, instance: dg.DagsterInstance, kills: Sequence[Kill]) -> list[RunRecord]:
    """Stop Dagster's services and return what its instance, which is gone later, tells of the runs."""
    for process in (world.stack.daemon, world.stack.webserver, world.stack.code):
        process.stop()
    try:
        return runs_of(instance, {kill.run_id for kill in kills if kill.run_id})
    except SQLAlchemyError:
        return []


def happened(course: Course, world: World) -> dict[str, dict[str, Any]]:
    """Return what happened, by heading, for the report."""
    last, breakers = course.watcher.last, course.watcher.breakers
    by_job: dict[str, Counter[str]] = {}
    for run in course.runs:
        by_job.setdefault(run.job, Counter())[run.status] += 1
    requests = world.replay.requests.describe()
    return {
        "what went wrong": {
            **{str(kind): count for kind, count in course.disasters.done.items()},
            **course.harms.done,
            "runs to kill, but none was at work": course.disasters.missed,
            **{f"not done, there was no moment for it: {what}": count for what, count in course.harms.missed.items()},
            "breakers opened": dict(breakers.opened),
            "breakers closed by themselves": dict(breakers.closed_alone),
            "breakers closed by the operator": dict(breakers.closed_by_hand),
            "launches that failed": dict(course.operator.refused),
            "faults of the soak itself": len(course.living.errors),
        },
        "what outsiders did": dict(sorted(course.living.acts.items())),
        "what the pipeline did": {
            "videos by status": last.videos,
            "changes by state": last.changes,
            "tasks by status": last.tasks,
            **{f"runs of {job}": dict(statuses) for job, statuses in sorted(by_job.items())},
            **{f"requests: {name}": about["count"] for name, about in requests.items() if about["count"]},
        },
    }
