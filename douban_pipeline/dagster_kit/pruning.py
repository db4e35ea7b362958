"""What the pruning jobs of all locations share: a dry run, whose runs go, and what is said of it."""

from collections.abc import Mapping
from datetime import datetime

import dagster as dg
from pydantic import Field

from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig
from douban_pipeline.dagster_kit.run_history import assets_of_location, delete_remains, delete_runs
from douban_pipeline.dagster_kit.runs import Owner, code_location_of


class RetentionConfig(LaunchpadConfig):
    """Whether what is past its days is deleted, or only counted."""

    dry_run: bool = Field(False, description="true 只统计会删除多少 · true only counts what would be deleted.")


def prune_opening(op: str) -> dg.RunConfig:
    """Return what the launchpad of a pruning job opens with, and what its schedule runs it with."""
    return dg.RunConfig(ops={op: RetentionConfig(dry_run=False)})


def prune_runs(
    context: dg.OpExecutionContext,
    system: str,
    *,
    before: datetime,
    dry_run: bool,
    sooner: Mapping[datetime, dict[str, str]] | None = None,
) -> int:
    """Delete finished runs of the location of ``context``, and what is left of them; return how many.

    Args:
        context: The pruning run, which stays.
        system: Whose runs go.
        before: Age of the runs, in UTC.
        dry_run: Delete nothing, and return how many would go.
        sooner: Tags of runs that go earlier, by their age.
    """
    owner = Owner(code_location_of(context.run), system)
    ages: list[tuple[datetime, dict[str, str] | None]] = [(before, None), *(sooner or {}).items()]
    runs = sum(
        delete_runs(context.instance, owner, before=age, keep=[context.run_id], tags=tags, dry_run=dry_run)
        for age, tags in ages
    )
    if not dry_run:
        delete_remains(context.instance, owner, before=before, assets=assets_of_location(context))
    return runs


def report_pruned(context: dg.OpExecutionContext, counts: Mapping[str, int], *, dry_run: bool) -> None:
    """Say what was deleted, or would be, by what it is."""
    named = ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in counts.items())
    context.log.info(f"{named} {'would be deleted' if dry_run else 'deleted'}")
    context.add_output_metadata({**counts, "dry_run": dry_run})
