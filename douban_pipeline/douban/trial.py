"""Judges some videos in a dry run, from a command: takes in the library, runs the chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import select

from douban_pipeline.core.database import chunks, reading
from douban_pipeline.core.errors import OperatingError
from douban_pipeline.core.language import terminal_text
from douban_pipeline.dagster_kit.in_process import run_job, silent_instance
from douban_pipeline.dagster_kit.run_failures import innermost_message
from douban_pipeline.douban.chain.due.due_videos import DueScope, in_scope
from douban_pipeline.douban.chain.due.intake import Intake
from douban_pipeline.douban.definitions import build_defs
from douban_pipeline.douban.jobs import CHAIN, SYNC_TAGS, shard_range_tags
from douban_pipeline.douban.reports.lists.spec import list_path
from douban_pipeline.douban.reports.lists.verdict_list import verdict_counts
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ReviewStatus

_AT_ONCE = 5
"""Videos of one run, each of another shard: so often does the progress move, and so much is lost by Ctrl-C."""


def judge_some(services: Services, most: int, report: Callable[[str], None]) -> str | None:
    """Judge up to ``most`` videos without a confirmed subject; return the service's page of verdicts, None without any.

    What was judged before is not judged again: another call goes on with the next videos.

    Args:
        services: With ``dry_run`` in their settings.
        most: How many videos.
        report: Takes a line about the progress.

    Raises:
        OperatingError: A run failed, or the sources answered for no video.
    """
    assert services.settings.dry_run
    repository = build_defs(settings=services.settings).get_repository_def()
    run_ids: list[str] = []

    with silent_instance() as instance:

        def run(job: str, **options: Any) -> None:
            result = run_job(repository, instance, job, **options)
            run_ids.append(result.run_id)
            if not result.success:
                failed = next((event for event in result.all_events if event.is_step_failure), None)
                error = failed.step_failure_data.error if failed is not None else None
                why = " ".join(innermost_message(error).split())[:300]
                problem = terminal_text("the run {run_id} of {job} failed: {why}")
                raise OperatingError(problem.format(run_id=result.run_id, job=job, why=why))

        if Intake.of(services).has_begun():
            run("take_in_changes", ops={"take_in": {"config": {"dry_run": False}}})
        else:
            report(terminal_text("taking in the library"))
            run("initialise_library", ops={"initialise": {"config": {"dry_run": False}}})
        judged, before = 0, -1
        while before < judged < most:
            before = judged
            for shards in chunks(_shards_with_videos(services), _AT_ONCE):
                these = shards[: most - judged]
                ops = {"due_videos": {"config": {"scope": DueScope.unmatched.value, "batch_size": 1}}}
                run(CHAIN, ops=ops, tags={**SYNC_TAGS, **shard_range_tags(these[0], these[-1])})
                counts = verdict_counts(services, run_ids)
                judged = sum(counts.values())
                report(_progress(counts, judged, most))
                if judged >= most:
                    break
                if not judged:
                    raise OperatingError(terminal_text("no source answered: see `douban-pipeline check --sources`"))
    return list_path("verdicts") if judged else None


def _shards_with_videos(services: Services) -> list[int]:
    """Return the shards that hold videos without a confirmed subject, in order."""
    video = services.tables.video
    query = select(video.c.shard.distinct()).where(
        video.c.douban_review_status == ReviewStatus.NOT_FOUND,
        video.c.douban_next_sync_at.is_not(None),
        *in_scope(services.tables, services.settings),
    )
    with reading(services.engine) as connection:
        return sorted(connection.execute(query).scalars())


def _progress(counts: dict[str, int], judged: int, most: int) -> str:
    line = terminal_text("{judged} of {most} judged: {linked} would be linked, {review} to review, {none} not found")
    return line.format(
        judged=judged,
        most=most,
        linked=counts.get(ReviewStatus.CONFIRMED, 0),
        review=counts.get(ReviewStatus.REVIEW, 0),
        none=counts.get(ReviewStatus.NOT_FOUND, 0),
    )
