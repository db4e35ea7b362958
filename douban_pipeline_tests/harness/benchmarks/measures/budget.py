"""How much of the upstreams' allowance two concurrent runs use while work waits, and whether they keep to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from douban_pipeline.douban.partitions import SHARDS_PER_RUN
from douban_pipeline_tests.harness.benchmarks.chain_runs import launch_chain, wait_for_runs
from douban_pipeline_tests.harness.benchmarks.due_batch import due_at_upstream, videos_of_shard
from douban_pipeline_tests.harness.benchmarks.measuring import SMALL, Figure, Measure, Target, World
from douban_pipeline_tests.harness.benchmarks.requests_seen import most_within, used_share
from douban_pipeline_tests.harness.benchmarks.run_phases import Step, steps_of
from douban_pipeline_tests.harness.benchmarks.stack_environment import quiet_stack
from douban_pipeline_tests.harness.rig.dagster_stack import DagsterStack
from douban_pipeline_tests.harness.rig.processes import RigError

PER_MINUTE = {"/search": 200, "/douban.php": 300}
"""Requests a minute: ten times what production asks of public sources, in the same proportion."""
BUSY_SECONDS = 70
VIDEOS_PER_SHARD = 120
_RUNS = 2
_SEARCH = "search_candidates"


@dataclass(frozen=True, slots=True)
class Used:
    """What was made of one source's allowance, in %.

    Attributes:
        share: Of the allowed requests while work waited, those that were made.
        minute: The most that any minute held, of what a minute allows.
        ten_seconds: The same for ten seconds.
        made: Requests while work waited.
    """

    share: float
    minute: float
    ten_seconds: float
    made: int


def used_of(moments: list[float], began: float, ended: float, per_minute: float) -> Used:
    """Return what was made of an allowance from ``began`` to ``ended``; all ``moments`` have to keep to it."""
    return Used(
        share=100 * used_share(moments, began, ended, per_minute),
        minute=100 * most_within(moments, 60) / per_minute,
        ten_seconds=100 * most_within(moments, 10) / (per_minute / 6),
        made=sum(began <= moment <= ended for moment in moments),
    )


def _measure(world: World) -> list[Figure]:
    shards = range(_RUNS * SHARDS_PER_RUN)
    vod_ids = [n for shard in shards for n in videos_of_shard(world, shard, VIDEOS_PER_SHARD, unmatched=True)]
    world.say(f"{len(vod_ids)} unmatched videos made due in {len(shards)} shards")
    paced = {
        "douban_requests_per_minute": PER_MINUTE["/douban.php"],
        "search_requests_per_minute": PER_MINUTE["/search"],
        "batch_size": VIDEOS_PER_SHARD,
        "run_seconds": BUSY_SECONDS,
    }
    with due_at_upstream(world, vod_ids, world.scratch / "home", **paced) as (upstream, environment):
        with quiet_stack(world.scratch / "dagster", environment, storage="postgres") as stack:
            searches = _run_both(world, stack)
        moments = {path: [request.began for request in upstream.seen if request.path == path] for path in PER_MINUTE}
    # While both have work: from when the later one begins until the earlier one takes on no more.
    began = max(step.began for step in searches)
    ended = min(step.began + BUSY_SECONDS for step in searches)
    if any(step.ended < ended for step in searches):
        raise RigError(f"the {len(vod_ids)} videos of this library did not keep two runs busy for {BUSY_SECONDS} s")
    used = {path: used_of(moments[path], began, ended, allowed) for path, allowed in PER_MINUTE.items()}
    return _figures(used, ended - began)


def _run_both(world: World, stack: DagsterStack) -> list[Step]:
    """Run the chain twice at once, over half of the shards each; return their searches."""
    firsts = [run * SHARDS_PER_RUN for run in range(_RUNS)]
    run_ids = [launch_chain(stack, first, first + SHARDS_PER_RUN - 1) for first in firsts]
    world.say(f"two runs ask for {BUSY_SECONDS} s")
    wait_for_runs(stack, *run_ids)
    with stack.instance() as instance:
        return [steps_of(instance, run_id)[_SEARCH] for run_id in run_ids]


def _figures(used: Mapping[str, Used], seconds: float) -> list[Figure]:
    bottleneck = max(used, key=lambda path: used[path].share)
    others = ", ".join(f"{path} {item.share:.0f} %" for path, item in used.items() if path != bottleneck)
    tightest = used[bottleneck]
    return [
        Figure(
            "used of the allowance",
            tightest.share,
            "%",
            Target(least=95),
            baseline=100 / 1.02,
            against="slots 2 % further apart than allowed, none missed",
            note=f"of the source that limits the work, {bottleneck}: {tightest.made} requests in {seconds:.0f} s while "
            f"both runs searched; the other waits for it: {others}; counted by the replay upstream as they came in",
        ),
        Figure(
            "most in any minute",
            max(item.minute for item in used.values()),
            "%",
            Target(most=100),
            note="of what the source allows in a minute; the worst rolling minute of the worst source",
        ),
        Figure(
            "most in any ten seconds",
            max(item.ten_seconds for item in used.values()),
            "%",
            Target(most=100),
            note="of a sixth of what the source allows in a minute; the worst ten seconds of the worst source",
        ),
    ]


MEASURES = (
    Measure("budget", "The upstreams' allowance as two concurrent runs use it while work waits.", _measure, (SMALL,)),
)
