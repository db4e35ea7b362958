"""One run of the chain over one shard with 100 due videos, as production runs it, and where its time went."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import httpx

from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Measure, Target, World
from douban_pipeline_tests.harness.benchmarks.stack import (
    FREE,
    Request,
    TimedReplay,
    busy_seconds,
    due_at_upstream,
    launch_chain,
    quiet_stack,
    videos_of_shard,
    wait_for_runs,
)
from douban_pipeline_tests.harness.rig.dagster_stack import DagsterStack

_STEP_BEGAN = dg.DagsterEventType.STEP_START
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
    """Seconds of one run, from the moment it was asked for."""

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
class _Step:
    """When a step began and ended (unix seconds)."""

    began: float
    ended: float


Moment = tuple[float, dg.DagsterEventType, str]


def phases(asked_at: float, moments: Iterable[Moment]) -> RunPhases:
    """Return where the time went of a run that was asked for at ``asked_at`` and executes its steps one by one.

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


def steps_among(moments: Iterable[Moment]) -> dict[str, _Step]:
    """Return the steps that began and ended, by name."""
    starts: dict[str, float] = {}
    steps: dict[str, _Step] = {}
    for at, kind, name in sorted(moments, key=lambda moment: moment[0]):
        if kind is _STEP_BEGAN:
            starts[name] = at
        elif kind in _ENDED and name in starts:
            steps[name] = _Step(starts[name], at)
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


VIDEOS = 100
RUNS = 3
_THREADS = 5
_EMPTY_JOB = "import dagster as dg\n@dg.op\ndef nothing() -> None: ...\n@dg.job\ndef empty() -> None:\n    nothing()\n"


@dataclass(frozen=True, slots=True)
class _Run:
    phases: RunPhases
    requests: list[Request]
    handled: int

    @property
    def requesting(self) -> float:
        return busy_seconds((request.began, request.ended) for request in self.requests)


def _measure(world: World) -> list[Figure]:
    shards = {shard: videos_of_shard(world, shard, VIDEOS) for shard in range(RUNS)}
    vod_ids = [vod_id for some in shards.values() for vod_id in some]
    world.say(f"{len(vod_ids)} videos made due in {RUNS} shards")
    home = world.scratch / "home"
    with due_at_upstream(world, vod_ids, home, **FREE, batch_size=VIDEOS) as (upstream, environment):
        with quiet_stack(world.scratch / "dagster", environment, storage="postgres") as stack:
            runs = [_one_run(world, stack, upstream, shard) for shard in shards]
        bare = statistics.median(_bare_requests(upstream.base, run.requests) for run in runs)
    return _figures(runs, len(vod_ids), bare, _empty_job(world.scratch))


def _one_run(world: World, stack: DagsterStack, upstream: TimedReplay, shard: int) -> _Run:
    before, asked_at = len(upstream.seen), time.time()
    run_id = launch_chain(stack, shard, shard)
    wait_for_runs(stack, run_id)
    requests = upstream.seen[before:]
    with stack.instance() as instance:
        found = phases_of(instance, run_id, asked_at)
        entries = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
    due = [
        int(str(materialization.metadata["due"].value))
        for entry in entries
        if (materialization := entry.asset_materialization) and "due" in materialization.metadata
    ]
    world.say(
        f"shard {shard}: {found.wall:.1f} s, {len(requests)} requests; "
        + ", ".join(f"{step} {seconds:.2f}" for step, seconds in found.longest[:5])
    )
    return _Run(found, requests, sum(due))


def _bare_requests(url: str, requests: Sequence[Request]) -> float:
    with httpx.Client(timeout=30) as client, ThreadPoolExecutor(_THREADS) as pool:
        began = time.perf_counter()
        for answer in pool.map(client.get, (url + request.target for request in requests)):
            answer.read()
        return time.perf_counter() - began


def _empty_job(scratch: Path) -> float:
    home = scratch / "empty"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    (home / "empty.py").write_text(_EMPTY_JOB)
    (home / "run.yaml").write_text("execution: {config: {in_process: {}}}\n")
    launch = [sys.executable, "-m", "dagster_dg_cli.cli", "launch"]
    command = [*launch, "-f", "empty.py", "--job", "empty", "-c", "run.yaml"]
    began = time.perf_counter()
    environment = {"DAGSTER_HOME": str(home), "PATH": "/usr/bin:/bin"}
    subprocess.run(command, cwd=home, env=environment, check=True, capture_output=True)
    return time.perf_counter() - began


def _figures(runs: Sequence[_Run], videos: int, bare: float, empty: float) -> list[Figure]:
    def median(values: Sequence[float]) -> float:
        return statistics.median(values)

    handled = sum(run.handled for run in runs)
    requests = sum(len(run.requests) for run in runs)
    slow = Counter[str]()
    for run in runs:
        slow.update(dict(run.phases.longest))
    reported = ", ".join(f"{step} {seconds / len(runs):.2f} s" for step, seconds in slow.most_common(4))
    return [
        Figure(
            "wall time",
            median([run.phases.wall for run in runs]),
            "s",
            note=f"from the click to the end, median of {len(runs)} runs; {handled} of {videos} due videos taken on; "
            "Dagster's history in PostgreSQL",
        ),
        Figure(
            "in requests",
            median([run.requesting for run in runs]),
            "s",
            baseline=bare,
            against="httpx alone with the same requests, 5 at once",
            note="time in which the replay upstream was at work on at least one request, by its own clock; "
            "connecting, sending and reading them count as overhead",
        ),
        Figure(
            "overhead beyond requests",
            median([run.phases.wall - run.requesting for run in runs]),
            "s",
            Target(most=5),
            note=f"the longest steps: {reported}",
        ),
        Figure(
            "of which Dagster",
            median([run.phases.dagster for run in runs]),
            "s",
            Target(most=3),
            baseline=empty,
            against="`dg launch` of an empty job, SQLite, no queue",
            note="wall time outside of steps: queue "
            f"{median([run.phases.queued for run in runs]):.1f} s, process, imports and resources "
            f"{median([run.phases.starting for run in runs]):.1f} s, between steps and end "
            f"{median([run.phases.between for run in runs]):.1f} s",
        ),
        Figure("requests per video", requests / max(handled, 1), "", note="search and douban.php together"),
    ]


MEASURES = (
    Measure("shard-run", "One run of the chain over one shard with 100 due videos, upstream at no delay.", _measure),
)
