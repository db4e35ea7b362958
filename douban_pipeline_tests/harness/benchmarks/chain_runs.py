"""Runs of a real stack: launched as people do, and waited for."""

from __future__ import annotations

import dagster as dg

from douban_pipeline.douban.jobs import CHAIN, SYNC_TAGS, shard_range_tags
from douban_pipeline_tests.harness.rig.dagster_stack import DagsterStack
from douban_pipeline_tests.harness.rig.processes import RigError
from douban_pipeline_tests.harness.rig.waiting import wait_for

CHAIN_ASSETS = ("due_videos", "search_candidates", "scored_matches", "synced_fields", "ai_intros")
_RUN_SECONDS = 900.0


def launch_chain(stack: DagsterStack, first: int, last: int) -> str:
    """Launch one run of the chain over the shards ``first`` to ``last``, both included; return its id."""
    return stack.launch(CHAIN, tags={**SYNC_TAGS, **shard_range_tags(first, last)})


def wait_for_runs(stack: DagsterStack, *run_ids: str, seconds: float = _RUN_SECONDS) -> None:
    """Wait until runs have ended well.

    Raises:
        RigError: One failed, or goes on after ``seconds``.
    """
    with stack.instance() as instance:
        for run_id in run_ids:

            def ended(run_id: str = run_id) -> dg.DagsterRun | None:
                run = instance.get_run_by_id(run_id)
                return run if run is not None and run.is_finished else None

            run = wait_for(ended, seconds=seconds)
            if run is None or not run.is_success:
                state = run.status.value if run else "goes on"
                raise RigError(f"run {run_id}: {state}; {stack.code.last_words()}")
