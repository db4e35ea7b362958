"""Jobs of the comment system: asset jobs, jobs for operators, and pruning."""

from datetime import timedelta
from typing import Any, Literal

import dagster as dg
from pydantic import Field

from douban_pipeline.comments import moderation
from douban_pipeline.comments.assets import (
    capacity_report,
    comment_factors,
    comment_review_queue,
    comment_rules,
    comment_search_index,
    hot_scores,
    impression_rollup,
    mac_comment_import,
    moderator_notices,
)
from douban_pipeline.comments.cms_export import open_export
from douban_pipeline.comments.experiments.jobs import jobs as experiment_jobs
from douban_pipeline.comments.heat_order.jobs import jobs as ordering_jobs
from douban_pipeline.comments.moderation import STATUS_NAMES, PlannedChange
from douban_pipeline.comments.resources import LOCATION, PERSON_TAGS, SYSTEM, tags_of
from douban_pipeline.comments.retention import forget_expired
from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.comments.store import search_index
from douban_pipeline.comments.store.sections import get_section
from douban_pipeline.comments.types import Actor, CommentStatus, Rank
from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.labels import owners
from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig, person_job
from douban_pipeline.dagster_kit.metadata import run_table
from douban_pipeline.dagster_kit.run_retention import (
    RetentionConfig,
    prune_job,
    prune_runs,
    report_pruned,
)

_SHOWN = 200

sweep_job = dg.define_asset_job(
    "score_comments",
    selection=dg.AssetSelection.assets(comment_rules, hot_scores, comment_search_index, moderator_notices),
    owners=owners(),
    tags=tags_of("comments_sweep"),
    description=page_text(
        "Scores the sections that were active within a week, publishes their lists, adds new "
        "comments to the search index, and tells moderators what waits. Every ten minutes."
    ),
)

report_job = dg.define_asset_job(
    "report_comments",
    selection=dg.AssetSelection.assets(
        mac_comment_import,
        comment_factors,
        impression_rollup,
        capacity_report,
        comment_review_queue,
    ),
    owners=owners(),
    tags=tags_of("comments_report"),
    description=page_text(
        "Imports the CMS's comments, aggregates impressions; lists factors, capacity and waiting comments. Every hour."
    ),
)


class ModerateConfig(LaunchpadConfig):
    """Config of a moderation decision about many comments, or of its reversal."""

    dry_run: bool = Field(True, description=page_text("true: only preview; false: apply."))
    action: Literal["delete", "review", "restore", "undo"] = Field("delete", description=page_text("Action."))
    comments: list[int] = Field(default_factory=list, description=page_text("Ids of comments."))
    section: int = Field(0, description=page_text("With words: id of the section."))
    words: str = Field("", description=page_text("Comments that contain this text."))
    batch: str = Field("", description=page_text("Name of the batch; for undo, of the batch to revert."))
    audit: bool = Field(False, description=page_text("Decide with the rank of auditors, above operators."))
    operator: str = Field("", description=page_text("Name of the operator."))
    reason: str = Field("", description=page_text("Reason."))


_ACTIONS = {"delete": CommentStatus.DELETED, "review": CommentStatus.REVIEW, "restore": CommentStatus.NORMAL}


def moderate(
    context: dg.OpExecutionContext, config: ModerateConfig, services: dg.ResourceParam[CommentsServices]
) -> None:
    """Plan a moderation decision about many comments and, unless it is a dry run, queue it for the workers."""
    services.ready()
    problems = [] if config.batch.strip() else ["请写明批次名（batch），撤销时要用"]
    if not config.operator.strip():
        problems.append("请写明操作人（operator）")
    if not config.dry_run and not config.reason.strip():
        problems.append("请写明原因（reason）")
    if problems:
        raise ProblemsError(problems)
    rank_given = Rank.AUDIT if config.audit else Rank.OPERATOR
    actor = Actor(f"ops:{config.operator.strip()}"[:40], name=config.operator.strip(), rank=rank_given)
    batch, reason = config.batch.strip()[:50], config.reason.strip()
    with reading(services.engine) as connection:
        if config.action == "undo":
            planned = moderation.plan_undo(connection, batch, actor.key, actor.rank)
        else:
            ids = list(config.comments)
            if config.words.strip():
                ids += moderation.find_comments(connection, config.section, config.words.strip())
            planned = moderation.plan_status(connection, ids, _ACTIONS[config.action], actor.rank)
        planned = moderation.refuse_repeated(connection, planned, batch, undo=config.action == "undo")
    written = 0
    if not config.dry_run:
        now = services.clock.now()
        if config.action == "undo":
            written = run_transaction(
                services.engine,
                lambda connection: moderation.apply_undo(connection, planned, actor, batch, reason, now),
            )
        else:
            wanted = _ACTIONS[config.action]
            written = run_transaction(
                services.engine,
                lambda connection: moderation.apply_status(connection, planned, wanted, actor, batch, reason, now),
            )
    refused = sum(bool(each.refusal) for each in planned)
    context.log.info(f"{len(planned)} comments, {refused} of them refused, {written} events written")
    context.add_output_metadata(
        {
            "dry_run": config.dry_run,
            "comments_found": len(planned),
            "refused": refused,
            "events": written,
            "comments": run_table([_row(each) for each in planned], most=_SHOWN),
        }
    )


def _row(planned: PlannedChange) -> dict[str, Any]:
    return {
        "评论": planned.comment_id,
        "评论区": planned.section_id,
        "现状": STATUS_NAMES[planned.current],
        "正文": planned.text[:60],
        "不执行的原因": planned.refusal,
    }


_MODERATE = page_text(
    """\
Moderate many comments, or revert a batch.

With `dry_run: true` the changes are only shown. Workers apply them; `action: undo` reverts a batch.
"""
)

moderate_comments = person_job(
    moderate,
    name="moderate_comments",
    manual=_MODERATE,
    writes=page_text("Events that the workers apply to the comments. A dry run (the default) only shows the changes."),
    when=page_text("When many comments are to be hidden or shown again at once."),
    examples={
        "按文字删除": {"section": 1, "words": "加群", "batch": "加群广告", "operator": "小王", "reason": "广告"},
        "放行": {"action": "restore", "comments": [1], "batch": "放行", "operator": "小王", "reason": "误判"},
        "撤销": {"action": "undo", "batch": "加群广告", "operator": "小王", "reason": "误删"},
    },
    nothing_done="未处理任何评论",
    location=LOCATION,
    tags=PERSON_TAGS,
)


class ReindexConfig(LaunchpadConfig):
    """Config of rebuilding the search index."""

    dry_run: bool = Field(True, description=page_text("true: only count; false: index."))
    section: int = Field(0, description=page_text("Id of the section; 0: all sections."))


def reindex(
    context: dg.OpExecutionContext, config: ReindexConfig, services: dg.ResourceParam[CommentsServices]
) -> None:
    """Rebuild the search index for the texts of one section or of all sections."""
    services.ready()
    with reading(services.engine) as connection:
        if config.section and get_section(connection, config.section) is None:
            raise ProblemsError([f"没有编号为 {config.section} 的评论区"])
        total, waiting = search_index.count_texts(connection, config.section)
    taken = 0
    if not config.dry_run:
        search_index.forget(services.engine, config.section)
        with reading(services.engine) as connection:
            _, left = search_index.count_texts(connection, 0)
        taken = search_index.fill(services.engine, left)
    context.log.info(f"{total} comments, {waiting} of them not in the index, {taken} taken into it")
    context.add_output_metadata(
        {"dry_run": config.dry_run, "comments": total, "not_indexed": waiting, "taken": taken},
    )


_REINDEX = page_text(
    """\
Rebuild the search index of the comments.

With `dry_run: true` only the numbers are shown. Search remains available during the rebuild; comments that are not in
the index yet are found by reading their texts, which takes longer. If the job is interrupted, `comment_search_index`
continues.
"""
)

reindex_comments = person_job(
    reindex,
    name="reindex_comments",
    manual=_REINDEX,
    writes=page_text("The search index. A dry run (the default) only counts the comments."),
    when=page_text("When a search misses comments that are there."),
    examples={"": {"section": 1, "dry_run": False}},
    nothing_done="未重建索引",
    location=LOCATION,
    tags=PERSON_TAGS,
)


class ExportConfig(LaunchpadConfig):
    """Config of writing comments back to the CMS, or of reverting a batch."""

    dry_run: bool = Field(True, description=page_text("true: only compare; false: write."))
    action: Literal["export", "undo"] = Field("export", description=page_text("Write, or revert a batch."))
    batch: str = Field("", description=page_text("Name of the batch; for undo, of the batch to revert."))
    operator: str = Field("", description=page_text("Name of the operator."))


def write_back(
    context: dg.OpExecutionContext, config: ExportConfig, services: dg.ResourceParam[CommentsServices]
) -> None:
    """Compare the CMS's comments with ours and write the differences, or revert a batch of such writes."""
    services.ready()
    batch, operator = config.batch.strip()[:64], config.operator.strip()[:64]
    problems = [] if batch or (config.dry_run and config.action == "export") else ["请写明批次名（batch）"]
    if not config.dry_run and not operator:
        problems.append("请写明操作人（operator）")
    if not config.dry_run and config.action == "export" and not services.settings.export:
        problems.append("写回默认关闭：试算满意后设置 DOUBAN_PIPELINE_COMMENTS_EXPORT=true")
    if problems:
        raise ProblemsError(problems)
    export = open_export(services)
    if config.action == "undo":
        found = export.undo(batch, dry_run=config.dry_run)
    else:
        found = export.run(batch, operator, services.clock.now(), dry_run=config.dry_run)
    context.log.info(f"{found.compared} compared, {found.written} written, {found.skipped} left alone")
    rows = [
        {"CMS 评论": row.number, "评论": row.comment_id, "原值": row.old, "新值": row.new, "不写的原因": row.refusal}
        for row in found.rows
    ]
    counts = {"compared": found.compared, "written": found.written, "skipped": found.skipped}
    context.add_output_metadata({"dry_run": config.dry_run, **counts, "rows": run_table(rows, most=_SHOWN)})


_EXPORT = page_text(
    """\
Write the status of comments back to the CMS's own.

Only the status of comments imported from the CMS is written; the worker does so within a minute after a decision. With
`dry_run: true` only the differences are shown; `action: undo` reverts a batch.
"""
)

export_comments = person_job(
    write_back,
    name="export_comments",
    manual=_EXPORT,
    writes=page_text("The status of the CMS's own comments. A dry run (the default) only shows the differences."),
    when=page_text("Before and after the export is switched on, and to take a batch back."),
    examples={
        "试算": {},
        "写回": {"dry_run": False, "batch": "首次写回", "operator": "小王"},
        "撤销": {"action": "undo", "dry_run": False, "batch": "首次写回", "operator": "小王"},
    },
    nothing_done="未写回",
    location=LOCATION,
    tags=PERSON_TAGS,
)


HISTORY_DAYS = 7
"""Days that finished runs are kept: there is one every ten minutes, and their results are in the tables."""


def prune_comment_runs(
    context: dg.OpExecutionContext, config: RetentionConfig, services: dg.ResourceParam[CommentsServices]
) -> None:
    """Delete finished runs, and what visitors left, after their retention periods."""
    services.ready()
    before = services.clock.now() - timedelta(days=HISTORY_DAYS)
    runs = prune_runs(context, SYSTEM, before=before, dry_run=config.dry_run)
    forgotten = forget_expired(services, dry_run=config.dry_run)
    report_pruned(context, {"runs": runs, **forgotten}, dry_run=config.dry_run)


prune_comments = prune_job(
    prune_comment_runs,
    name="prune_comments",
    manual=page_text(
        "Delete finished runs of the location after seven days, and after `…_RETENTION_DAYS` addresses, finished "
        "events, texts of removed comments, replaced texts and ended bans; moderators' log after three years."
    ),
    writes=page_text(
        "Deletes runs from Dagster's instance and rows of the comments' tables. A dry run (the default) only counts "
        "them."
    ),
    location=LOCATION,
    tags=tags_of("comments_prune"),
)


jobs: list[Any] = [
    sweep_job,
    report_job,
    *ordering_jobs,
    *experiment_jobs,
    moderate_comments,
    reindex_comments,
    export_comments,
    prune_comments,
]
