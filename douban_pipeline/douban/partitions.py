"""The 64 shards into which the library is divided, and how runs share them out."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from douban_pipeline.dagster_kit.guard_checks import BreachTable
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline.douban.store.videos import Breach

shards = dg.StaticPartitionsDefinition([f"{shard:02d}" for shard in range(SHARDS)])
"""``vod_id % 64``: always evenly filled, no new partitions as the library grows, readable in the UI."""

SHARDS_PER_RUN = 8
"""A backfill over all shards is 8 runs: a run a shard would cost twice the time in process starts alone."""

shard_backfill = dg.BackfillPolicy.multi_run(max_partitions_per_run=SHARDS_PER_RUN)
"""One policy for the whole chain: Dagster wants the assets of a job to share it."""


def shard_numbers(keys: Sequence[str]) -> list[int]:
    """Return the shards that partition keys name."""
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
"""How the guards show videos that break a rule."""
