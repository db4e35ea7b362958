"""One run of the chain over one shard with 100 due videos, as production runs it."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import httpx

from douban_pipeline_tests.harness.benchmarks.chain_runs import launch_chain, wait_for_runs
from douban_pipeline_tests.harness.benchmarks.due_batch import due_at_upstream, videos_of_shard
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Measure, Target, World
from douban_pipeline_tests.harness.benchmarks.requests_seen import Request, TimedReplay, busy_seconds
from douban_pipeline_tests.harness.benchmarks.run_phases import RunPhases, phases_of
from douban_pipeline_tests.harness.benchmarks.stack_environment import FREE, quiet_stack
from douban_pipeline_tests.harness.rig.dagster_stack import DagsterStack

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
    """Return the seconds that an HTTP client alone takes for the same requests, as many at once."""
    with httpx.Client(timeout=30) as client, ThreadPoolExecutor(_THREADS) as pool:
        began = time.perf_counter()
        for answer in pool.map(client.get, (url + request.target for request in requests)):
            answer.read()
        return time.perf_counter() - began


def _empty_job(scratch: Path) -> float:
    """Return the seconds from the start of `dg launch` with a job that does nothing to its end."""
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
    Measure("shard_run", "One run of the chain over one shard with 100 due videos, upstream at no delay.", _measure),
)
