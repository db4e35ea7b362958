"""The first link of the chain: due videos become tasks. Assets that decide when work is done belong here."""

import dagster as dg
from pydantic import Field

from douban_pipeline.core.language import page_docstring, page_text
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.dagster_kit.labels import TABLES
from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig
from douban_pipeline.dagster_kit.metadata import shown_table
from douban_pipeline.douban.chain.assets import begin_step, chain_asset, figures_of
from douban_pipeline.douban.chain.due.due_videos import DueReport, DueScope, DueVideos
from douban_pipeline.douban.chain.match.revisits import revisit_doubted
from douban_pipeline.douban.decisions.application import apply_decisions
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import TaskType
from douban_pipeline.douban.wording import REVIEW_STATUSES, TASK_TYPES, word_for


class DueConfig(LaunchpadConfig):
    """Which videos a run takes on."""

    scope: DueScope = Field(
        DueScope.due,
        description=page_text(
            "due: videos whose next visit is due. unmatched: also every video without a confirmed "
            "subject. everything: all videos of the shard, for a backfill that reprocesses the "
            "library."
        ),
    )
    batch_size: int = Field(
        0,
        description=page_text("Videos per shard; 0: the setting DOUBAN_PIPELINE_BATCH_SIZE."),
    )


@chain_asset()
@page_docstring
def due_videos(
    context: dg.AssetExecutionContext, config: DueConfig, services: dg.ResourceParam[Services]
) -> dg.MaterializeResult:
    """Applies what people decided, then puts the videos of a shard that are due into the task queue.

    Decisions have a lane of their own, `applied_decisions`; a run that meets some applies them before it does anything
    else, and `synced_fields` reports them.

    A video is due when `mac_douban_video.douban_next_sync_at` has come. Without a confirmed subject it gets a
    MATCH_DOUBAN_ID task in `mac_douban_task`, with one a SYNC_DOUBAN task, with a locked one that is in doubt a RECHECK
    task; never two open tasks of a type. Excluded
    categories, ignored videos and videos that wait for a reviewer's decision get none, and a run that no person
    launched takes none outside `DOUBAN_PIPELINE_ACTIVE_HOURS`. Found by index; makes no request.
    """
    session = begin_step(context, services)
    decided = 0
    if not services.settings.dry_run:
        decided = apply_decisions(
            services, session.queue, session.change_log, session.shards, deadline=session.deadline
        )
    due = DueVideos(services)
    dropped = due.drop_out_of_scope(session.queue)
    missed = revisit_doubted(services)
    if missed:
        context.log.warning(f"{len(missed)} videos were not found while a search found nothing: they are visited again")
    report = DueReport()
    if not session.ordered_only:
        limit = config.batch_size or services.settings.batch_size
        report = due.take(session.queue, session.shards, scope=config.scope, limit=limit, run_id=session.run_id)
    context.log.info(f"{len(report.taken)} videos taken on, {report.left} left for later runs")

    def of_type(task_type: TaskType) -> list[int]:
        return [video.vod_id for video in report.taken if video.task_type is task_type]

    waiting = sorted((video for video in report.taken if video.due_since), key=lambda video: str(video.due_since))
    rows = [
        {
            page_text("video"): video.vod_id,
            page_text("task"): word_for(TASK_TYPES, video.task_type),
            page_text("status"): word_for(REVIEW_STATUSES, video.status),
            page_text("due since"): local_time(video.due_since, services.settings.zone),
        }
        for video in waiting
    ]
    return dg.MaterializeResult(
        data_version=TABLES,
        metadata=session.metadata(
            {
                **figures_of(
                    context,
                    session,
                    {
                        "due": [video.vod_id for video in report.taken],
                        "to_match": of_type(TaskType.MATCH_DOUBAN_ID),
                        "to_sync": of_type(TaskType.SYNC_DOUBAN),
                        "to_recheck": of_type(TaskType.RECHECK),
                    },
                ),
                **({"decisions_first": decided} if decided else {}),
                "new_tasks": report.new_tasks,
                "left_for_later": report.left,
                "dropped_out_of_scope": dropped,
                "revisited": len(missed),
                "waiting_longest": shown_table(rows),
            }
        ),
    )
