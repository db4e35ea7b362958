"""How much of the upstreams' allowance is used while work waits: runs of the sensor beside a backfill of all shards."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from zlib import crc32

from sqlalchemy import func, select

from douban_pipeline.core.database import reading
from douban_pipeline.douban.partitions import partition_key
from douban_pipeline.douban.store.states import TaskStatus
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline_tests.harness.benchmarks.measuring import SMALL, Figure, Measure, Target, World
from douban_pipeline_tests.harness.benchmarks.stack import (
    CHAIN_ASSETS,
    LONG_AGO,
    TimedReplay,
    due_at_upstream,
    most_within,
    stop_instigators,
    used_share,
    videos_of_shard,
)
from douban_pipeline_tests.harness.rig.dagster_stack import DagsterStack
from douban_pipeline_tests.harness.rig.processes import RigError
from douban_pipeline_tests.harness.rig.waiting import wait_for

PATHS = ("/search", "/douban.php")
SENSOR = "due_videos_sensor"

WARM_UP_SECONDS = 60.0
"""From the first request on; the runs of the backfill and of the sensor begin in it."""

WINDOWS = {30: 240.0, 300: 180.0, 600: 150.0}
"""Seconds that are measured after that, by requests a minute."""

_LEAST_PER_SHARD, _SPARE = 20, 1.3
_FIRST_REQUEST_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Used:
    """What was made of one source's allowance, in %."""

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


def latency(target: str) -> float:
    """Return how long the upstream takes for a request: 0.3 to 1.5 s, 0.5 s on average, always the same for one."""
    return min(0.3 + Random(crc32(target.encode())).expovariate(5.0), 1.5)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a window of time saw; videos as tasks that were closed."""

    began: float
    ended: float
    videos: int

    @property
    def seconds(self) -> float:
        return self.ended - self.began


def _measure(world: World, rate: int) -> list[Figure]:
    wanted = int(rate * (WARM_UP_SECONDS + WINDOWS[rate]) / 60 * _SPARE)
    per_shard = max(_LEAST_PER_SHARD, -(-wanted // SHARDS))
    vod_ids = [n for shard in range(SHARDS) for n in videos_of_shard(world, shard, per_shard, unmatched=True)]
    vod_ids = sorted({*vod_ids, *_soon_due(world)})
    world.say(f"{len(vod_ids)} videos, mostly unmatched, made due in {SHARDS} shards")
    paced = {"douban_requests_per_minute": rate, "search_requests_per_minute": rate}
    with due_at_upstream(world, vod_ids, world.scratch / "home", **paced) as (upstream, environment):
        upstream.delay = latency
        seen = _window(world, rate, upstream, environment)
        _check_that_work_was_left(world)
        moments = {path: [request.began for request in upstream.seen if request.path == path] for path in PATHS}
    used = {path: used_of(moments[path], seen.began, seen.ended, rate) for path in PATHS}
    return _figures(rate, used, seen)


def _soon_due(world: World) -> list[int]:
    video = world.services.tables.video
    soon = video.c.douban_next_sync_at <= world.services.clock.now() + timedelta(minutes=30)
    with reading(world.services.engine) as connection:
        return list(connection.execute(select(video.c.vod_id).where(soon)).scalars())


def _window(world: World, rate: int, upstream: TimedReplay, environment: Mapping[str, str]) -> _Seen:
    """Run a backfill beside the sensor and return what the window saw."""
    with DagsterStack(world.scratch / "dagster", environment, daemon=False) as stack:
        stop_instigators(stack, but=(SENSOR,))
        stack.daemon.start()
        try:
            stack.launch_backfill(CHAIN_ASSETS, [partition_key(shard) for shard in range(SHARDS)])
            if wait_for(lambda: upstream.seen, seconds=_FIRST_REQUEST_SECONDS) is None:
                raise RigError(f"nothing was asked: {stack.code.last_words()}")
            world.say(f"warming up for {WARM_UP_SECONDS:.0f} s at {rate} a minute")
            time.sleep(max(upstream.seen[0].began + WARM_UP_SECONDS - time.time(), 0))
            world.say(f"measuring for {WINDOWS[rate]:.0f} s")
            began = time.time()
            time.sleep(WINDOWS[rate])
            ended = time.time()
        finally:
            stack.daemon.stop()
    return _Seen(began, ended, _closed(world, began, ended))


def _closed(world: World, began: float, ended: float) -> int:
    task = world.services.tables.task
    since, until = (datetime.fromtimestamp(moment, UTC) for moment in (began, ended))
    closed = (task.c.finished_at >= since, task.c.finished_at <= until, task.c.status == TaskStatus.SUCCESS)
    with reading(world.services.engine) as connection:
        return int(connection.execute(select(func.count()).where(*closed)).scalar_one())


def _check_that_work_was_left(world: World) -> None:
    video = world.services.tables.video
    waiting = select(func.count()).where(video.c.douban_next_sync_at == LONG_AGO)
    with reading(world.services.engine) as connection:
        if not connection.execute(waiting).scalar_one():
            raise RigError("the due videos of this library did not last for the whole window")


def _figures(rate: int, used: Mapping[str, Used], seen: _Seen) -> list[Figure]:
    bottleneck = max(used, key=lambda path: used[path].share)
    others = ", ".join(f"{path} {item.share:.0f} %" for path, item in used.items() if path != bottleneck)
    tightest = used[bottleneck]
    return [
        Figure(
            f"used of {rate} a minute",
            tightest.share,
            "%",
            Target(least=95),
            baseline=100 / 1.02,
            against="slots 2 % further apart than allowed, none missed",
            note=f"of the source that limits the work, {bottleneck}: {tightest.made} requests in {seen.seconds:.0f} s "
            f"after {WARM_UP_SECONDS:.0f} s of warm-up, beside a backfill; the other waits for it: {others}; counted "
            "by the replay upstream as they came in, which answers after 0.5 s on average",
        ),
        Figure("videos a minute", 60 * seen.videos / seen.seconds, "", note="tasks closed in the window"),
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
            note="of a sixth of what the source allows in a minute; no limit of its own: a call that is sent a little "
            "late comes close to the next",
        ),
    ]


MEASURES = tuple(
    Measure(
        f"budget-{rate}",
        f"The allowance that is used at {rate} requests a minute while work waits, beside a backfill.",
        partial(_measure, rate=rate),
        (SMALL,),
    )
    for rate in WINDOWS
)
