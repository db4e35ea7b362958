"""Dagster's pools: how many runs may be busy with one source at a time. The gate paces their requests."""

import dagster as dg

from douban_pipeline.douban.chain.linking.assets import SEARCH_POOL
from douban_pipeline.douban.chain.syncing.assets import DOUBAN_POOL
from douban_pipeline.douban.intros.assets import LLM_POOL

POOL_LIMITS = {SEARCH_POOL: 2, DOUBAN_POOL: 2, LLM_POOL: 2}
"""Every pool of the code location. `pools.default_limit` of dagster.yaml does not hold at a pool's first use, so each
limit is set explicitly when an instance is set up."""


def set_pool_limits(instance: dg.DagsterInstance) -> None:
    """Set the limit of every pool in ``instance``; safe to repeat."""
    for pool, limit in POOL_LIMITS.items():
        instance.event_log_storage.set_concurrency_slots(pool, limit)
