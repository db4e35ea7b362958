"""Which shards deserve a run now. Pure functions behind the due sensor."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from douban_pipeline.core.language import page_text
from douban_pipeline.douban.chain.due.shard_work import ShardDue


@dataclass(frozen=True, slots=True)
class Demand:
    """Limits for launching runs: due videos in a shard, waiting time of the longest one, and concurrent runs.

    A run covers up to `shards_per_run` adjacent shards that reach a limit.
    """

    min_due: int
    max_wait: timedelta
    max_runs: int
    shards_per_run: int = 1


@dataclass(frozen=True, slots=True)
class Pace:
    """Interval between selections of due videos, with a maximum of random extension."""

    interval: timedelta
    jitter: timedelta

    def next_selection(self, now: datetime, rng: Random) -> datetime | None:
        """Return when due videos may be selected again after ``now``; None for at any time."""
        if not self.interval:
            return None
        return now + self.interval + timedelta(seconds=rng.uniform(0, self.jitter.total_seconds()))


def choose_shards(
    due: Sequence[ShardDue],
    running: Collection[int],
    paused: Collection[int],
    runs_under_way: int,
    demand: Demand,
    now: datetime,
) -> tuple[list[range], str]:
    """Return the shards of each run to launch now, the most urgent first, and an empty text; or none, and why.

    Args:
        due: Shards with due videos, the one that waits longest first.
        running: Shards that a run works on.
        paused: Shards that pause after a failed run.
        runs_under_way: Number of chain runs queued or started, except those of backfills.
        demand: What is worth a run.
        now: The current time.
    """
    room = demand.max_runs - runs_under_way
    if not due:
        return [], page_text("nothing is due")
    if room <= 0:
        return [], page_text("{runs_under_way} chain runs are in progress, which is the maximum ({max_runs})").format(
            runs_under_way=runs_under_way, max_runs=demand.max_runs
        )
    idle = [shard for shard in due if shard.shard not in running]
    if not idle:
        return [], page_text("videos are due in {due} shard(s), all of which have a run in progress").format(
            due=len(due)
        )
    free = [shard for shard in idle if shard.shard not in paused]
    worth = [
        shard
        for shard in free
        if shard.ordered or shard.lately + shard.tasks >= demand.min_due or now - shard.oldest >= demand.max_wait
    ]
    if worth:
        return _runs_over([shard.shard for shard in worth], demand.shards_per_run, room), ""
    if not free:
        return [], page_text(
            "videos are due in {idle} shard(s), whose last run failed: paused for some minutes"
        ).format(idle=len(idle))
    waiting = sum(shard.lately + shard.tasks for shard in free)
    minutes = int(demand.max_wait.total_seconds() // 60)
    return [], page_text(
        "{waiting} videos are due in {free} shard(s): too few for a run until one of them has waited {minutes} min"
    ).format(waiting=waiting, free=len(free), minutes=minutes)


def _runs_over(shards: Sequence[int], per_run: int, most: int) -> list[range]:
    """Return up to ``most`` runs over neighbouring ones of ``shards``, the first of which are the most urgent."""
    free = set(shards)
    runs: list[range] = []
    for shard in shards:
        if len(runs) == most:
            break
        if shard not in free:
            continue
        first = last = shard
        while last - first + 1 < per_run and (last + 1 in free or first - 1 in free):
            if last + 1 in free:
                last += 1
            else:
                first -= 1
        runs.append(range(first, last + 1))
        free.difference_update(runs[-1])
    return runs
