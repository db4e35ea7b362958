"""The 64 shards into which the library is partitioned, and how many a run covers."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from douban_pipeline.dagster_kit.guard_checks import BreachTable
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline.douban.store.videos import Breach

shards = dg.StaticPartitionsDefinition([f"{shard:02d}" for shard in range(SHARDS)])
"""``vod_id % 64``: always evenly filled, no new partitions as the library grows, readable in the UI."""

SHARDS_PER_RUN = 8
"""A backfill over all shards has 8 runs: one run per shard would double the time through process starts alone."""

shard_backfill = dg.BackfillPolicy.multi_run(max_partitions_per_run=SHARDS_PER_RUN)
"""The policy of the whole chain: Dagster requires the assets of a job to share it."""


def shard_numbers(keys: Sequence[str]) -> list[int]:
    """Return the shards of partition keys."""
    return [int(key) for key in keys]


def partition_key(shard: int) -> str:
    """Return the partition key of ``shard``."""
    return f"{shard:02d}"


BREACHES: BreachTable[Breach] = BreachTable(
    things="videos",
    partitions="shards",
    partition_of=lambda breach: partition_key(breach.shard),
    row=lambda breach: {"vod_id": breach.vod_id, "shard": partition_key(breach.shard), "what": breach.what},
)
"""The table in which guards show videos that break a rule."""
