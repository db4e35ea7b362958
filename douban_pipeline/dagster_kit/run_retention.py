"""Shared parts of all locations' pruning jobs: dry run, deletion of runs, and the report."""

from collections.abc import Callable, Mapping
from datetime import datetime

import dagster as dg
from pydantic import Field

from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig, person_job
from douban_pipeline.dagster_kit.run_history import assets_of_location, delete_remains, delete_runs
from douban_pipeline.dagster_kit.runs import Owner, code_location_of


class RetentionConfig(LaunchpadConfig):
    """Config of a pruning job: delete expired data, or only count it."""

    dry_run: bool = Field(True, description=page_text("true: only count what would be deleted; false: delete."))


def prune_job(
    work: Callable[..., None],
    *,
    name: str,
    manual: str,
    writes: str,
    tags: Mapping[str, str],
    location: str = "",
    when: str | None = None,
) -> dg.JobDefinition:
    """Return a pruning job, see `person_job`.

    Args:
        work: The op's function; its config is `RetentionConfig`.
        name: Name of the job.
        manual: What it deletes, and when; the config to copy and its field follow.
        writes: What a launch writes.
        tags: The job's tags.
        location: Repository and code location in links.
        when: When to launch it; every night by itself, if not given.
    """
    return person_job(
        work,
        name=name,
        manual=manual,
        writes=writes,
        when=when or page_text("By itself every night; by hand when the disk is short."),
        examples={"": {"dry_run": False}},
        nothing_done=page_text("Nothing was pruned"),
        location=location,
        tags=tags,
    )


def pruning(op: str) -> dg.RunConfig:
    """Return the config with which a schedule prunes: for real."""
    return dg.RunConfig(ops={op: RetentionConfig(dry_run=False)})


def prune_runs(
    context: dg.OpExecutionContext,
    system: str,
    *,
    before: datetime,
    dry_run: bool,
    sooner: Mapping[datetime, dict[str, str]] | None = None,
) -> int:
    """Delete finished runs of the location of ``context`` and their remaining data; return the number of runs.

    Args:
        context: The pruning run, which is kept.
        system: Name of the system whose runs are deleted.
        before: Runs last updated before this time are deleted (UTC).
        dry_run: Delete nothing, and return how many runs would be deleted.
        sooner: Tags of runs that are deleted earlier, with their time.
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
    """Log what was deleted, or would be, by kind."""
    named = ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in counts.items())
    context.log.info(f"{named} {'would be deleted' if dry_run else 'deleted'}")
    context.add_output_metadata({**counts, "dry_run": dry_run})
