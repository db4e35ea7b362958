"""The job that records one decision about many videos, which are selected by a filter."""

import enum
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated, Any

import dagster as dg
from pydantic import Field

from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import page_text
from douban_pipeline.core.ui.presentation import Markdown, subject_link
from douban_pipeline.dagster_kit.launchpad import AtLeast, LaunchpadConfig, PersonName, person_job
from douban_pipeline.dagster_kit.metadata import run_table
from douban_pipeline.douban.links import LOCATION
from douban_pipeline.douban.resources import OVERRIDE, PERSON_TAGS, VideoIds
from douban_pipeline.douban.review.batch.filters import MOST_ROWS, VideoFilter
from douban_pipeline.douban.review.batch.rules import UNLOCKING, BatchDecision, target_of
from douban_pipeline.douban.review.batch.selection import (
    BatchSelection,
    SelectionError,
    decisions_of,
    select_videos,
)
from douban_pipeline.douban.review.jobs import (
    DRY_RUN,
    NOTHING_RECORDED,
    REVIEWER,
    dry_run_notice,
    log_progress,
    replaced,
    report_recording,
)
from douban_pipeline.douban.review.records.record import record
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.shown_status import ShownStatus
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.wording import ACTIONS
from douban_pipeline.matching.codes import code_of

_SHOWN = 500
_NO_SUBJECT = Markdown("")


class YesNo(enum.StrEnum):
    """Yes, no or any."""

    any = "any"
    yes = "yes"
    no = "no"


_YES_NO = {YesNo.any: None, YesNo.yes: True, YesNo.no: False}


class BatchConfig(LaunchpadConfig):
    """The decision, and the filter of videos. Empty filters do not restrict; at least one must be set."""

    reviewer: PersonName = Field("", description=REVIEWER)
    note: str = Field("", description=page_text("Reason, in one sentence; it is recorded with every resulting write."))
    dry_run: bool = Field(True, description=DRY_RUN)
    action: DecisionAction = Field(
        description=page_text("One of: {decision_action}.").format(decision_action=", ".join(DecisionAction))
    )
    douban_id: int = Field(
        0, description=page_text("The subject, for set_id, replace_and_lock and choose; the same for all videos.")
    )
    rank: int = Field(0, description=page_text("For choose: 1, the best candidate; no other rank in bulk."))
    days: int = Field(0, description=page_text("Days for which they are ignored, for ignore; 0: forever."))
    lock: bool = Field(False, description=page_text("Also lock the ids against automatic changes."))
    accept_conflicts: bool = Field(
        False, description=page_text("Accept the subject despite conflicts with the videos.")
    )
    override_cms_lock: bool = Field(False, description=OVERRIDE)
    i_am_sure: bool = Field(
        False,
        description=page_text("Required to unlock, and to replace locked ids."),
    )
    max_rows: Annotated[int, AtLeast(1, page_text("Write the greatest number of videos."))] = Field(
        100,
        description=page_text("Maximum number of videos, 1 to {most_rows}; the first ones of the review queue.").format(
            most_rows=MOST_ROWS
        ),
    )
    statuses: list[ShownStatus] = Field(
        default_factory=list,
        description=page_text("Any of these statuses; empty: all but ignored ones."),
    )
    min_score: float = Field(0.0, description=page_text("Minimum score of the latest verdict; 0: any."))
    max_score: float = Field(0.0, description=page_text("Maximum score of the latest verdict; 0: any."))
    with_codes: list[str] = Field(
        default_factory=list,
        description=page_text("All of these reasons or conflicts, by code or label."),
    )
    without_codes: list[str] = Field(default_factory=list, description=page_text("None of these reasons or conflicts."))
    type_ids: list[int] = Field(
        default_factory=list, description=page_text("Categories (child categories are not included).")
    )
    min_year: int = Field(0, description=page_text("First year in the CMS; 0: any."))
    max_year: int = Field(0, description=page_text("Last year in the CMS; 0: any."))
    duplicates_of: int = Field(0, description=page_text("A subject: the videos that have its id; 0: any."))
    id_locked: YesNo = Field(YesNo.any, description=page_text("Whether the id is locked."))
    intro_locked: YesNo = Field(YesNo.any, description=page_text("Whether the synopsis is locked."))
    sources: list[str] = Field(
        default_factory=list,
        description=page_text("Source of the id: any of these."),
    )
    updated_within_days: int = Field(0, description=page_text("Updated within this number of days; 0: any."))
    updated_before_days: int = Field(0, description=page_text("Not updated for this number of days; 0: any."))
    locked_within_days: int = Field(0, description=page_text("Locked within this number of days; 0: any."))
    locked_before_days: int = Field(0, description=page_text("Locked more than this number of days ago; 0: any."))
    vod_ids: VideoIds = Field(default_factory=list, description=page_text("Only these videos (mac_vod.vod_id)."))
    except_vod_ids: list[int] = Field(default_factory=list, description=page_text("Exclude these videos."))


def select_and_record(
    context: dg.OpExecutionContext, config: BatchConfig, services: dg.ResourceParam[Services]
) -> None:
    """Select the videos, show them, and record the decision about each."""
    services.ready()
    batch = _batch(config)
    try:
        selection = select_videos(services, _filter(config, services.clock.now()), batch, progress=_looking(context))
    except SelectionError as error:
        raise ProblemsError(error.problems) from error
    context.log.info(
        f"{selection.matched_in_all} videos match: {len(selection.videos)} selected, "
        f"{selection.left_out_in_all} left out, {selection.beyond} beyond max_rows"
    )
    shown = _shown(selection, batch)
    unsure = _unsure(selection, batch)
    if unsure and not config.dry_run:
        raise dg.Failure(f"{NOTHING_RECORDED}：{unsure}", metadata=shown, allow_retries=False)
    if not selection.videos:
        context.add_output_metadata({"dry_run": config.dry_run, **shown})
        return
    recording = record(
        services,
        decisions_of(selection, batch),
        reviewer=config.reviewer,
        note=config.note,
        run_id=context.run_id,
        dry_run=config.dry_run,
        progress=log_progress(context, services, len(selection.videos)),
    )
    unlocking = {"unlocking": unsure} if unsure else {}
    more = {**shown, **unlocking, **replaced(services, recording), **dry_run_notice(services.settings)}
    report_recording(context, recording, config.dry_run, **more)


def _batch(config: BatchConfig) -> BatchDecision:
    return BatchDecision(
        config.action,
        config.douban_id,
        config.rank,
        config.days,
        config.lock,
        config.accept_conflicts,
        config.override_cms_lock,
        config.i_am_sure,
    )


def _filter(config: BatchConfig, now: datetime) -> VideoFilter:
    def back(days: int) -> datetime | None:
        return now - timedelta(days=days) if days > 0 else None

    return VideoFilter(
        id_locked=_YES_NO[config.id_locked],
        intro_locked=_YES_NO[config.intro_locked],
        sources=tuple(config.sources),
        updated_since=back(config.updated_within_days),
        updated_before=back(config.updated_before_days),
        locked_since=back(config.locked_within_days),
        locked_before=back(config.locked_before_days),
        statuses=tuple(config.statuses),
        min_score=config.min_score,
        max_score=config.max_score,
        with_codes=tuple(map(code_of, config.with_codes)),
        without_codes=tuple(map(code_of, config.without_codes)),
        type_ids=tuple(config.type_ids),
        min_year=config.min_year,
        max_year=config.max_year,
        duplicates_of=config.duplicates_of,
        vod_ids=tuple(config.vod_ids),
        except_vod_ids=tuple(config.except_vod_ids),
        max_rows=config.max_rows,
    )


def _unsure(selection: BatchSelection, batch: BatchDecision) -> str:
    """Return what a person who unlocks in bulk has to confirm; empty if nothing."""
    if not batch.unlocks or batch.i_am_sure or not selection.videos:
        return ""
    what = f"{len(selection.videos)} 部影片的{UNLOCKING[batch.action]}"
    return f"将解锁 {what}，此后自动运行可以改动它们；确认请设 i_am_sure: true"


def _looking(context: dg.OpExecutionContext) -> Callable[[int, int], None]:
    return lambda looked_at, of: context.log.info(f"{looked_at} of {of} videos looked at")


def _shown(selection: BatchSelection, batch: BatchDecision) -> dict[str, Any]:
    videos = [
        {
            "影片": pick.vod_id,
            "片名": pick.title,
            "状态": pick.status,
            "现有 ID": subject_link(pick.douban_id),
            "得分": pick.score,
            "首选": subject_link(pick.best.douban_id) if pick.best else _NO_SUBJECT,
            "首选片名": f"{pick.best.title}（{pick.best.year or '?'}）" if pick.best else "",
            "决定": f"{batch.action} {ACTIONS[batch.action]}",
            "条目": subject_link(target_of(batch, pick.best)),
        }
        for pick in selection.videos
    ]
    left_out = [{"影片": entry.vod_id, "片名": entry.title, "原因": entry.why} for entry in selection.left_out]
    return {
        "videos": run_table(videos, most=_SHOWN),
        "videos_left_out": run_table(left_out, most=_SHOWN),
        "matched": selection.matched_in_all,
        "selected": len(selection.videos),
        "beyond_max_rows": selection.beyond,
        "left_out": selection.left_out_in_all,
    }


_MANUAL = page_text(
    """\
Record one decision about many videos, selected by filters.

{links}

{fields}

{examples}
"""
)
_EXAMPLES = {
    "确认待审核中的高分影片": {
        "reviewer": "小王",
        "note": "高分无冲突",
        "dry_run": False,
        "action": DecisionAction.confirm_top1,
        "statuses": [ShownStatus.REVIEW],
        "min_score": 90,
    },
    "一个类别里没有找到的影片，半年内不再处理": {
        "reviewer": "小王",
        "note": "这类短剧不收录",
        "dry_run": False,
        "action": DecisionAction.ignore,
        "days": 180,
        "type_ids": [36],
        "statuses": [ShownStatus.NOT_FOUND],
    },
    "一组重复影片只留一部，其余清除 ID": {
        "reviewer": "小王",
        "note": "只有 1024 是它",
        "dry_run": False,
        "action": DecisionAction.clear_id,
        "duplicates_of": 1292052,
        "except_vod_ids": [1024],
    },
    "一年前锁定、由 CMS 带来的 ID，全部解锁": {
        "reviewer": "小王",
        "note": "旧锁已过时",
        "dry_run": False,
        "action": DecisionAction.unlock_id,
        "id_locked": YesNo.yes,
        "sources": ["cms"],
        "locked_before_days": 365,
        "i_am_sure": True,
    },
    "解锁几部影片的简介": {
        "reviewer": "小王",
        "note": "允许自动改写",
        "dry_run": False,
        "action": DecisionAction.unlock_intro,
        "vod_ids": [1024, 2048],
        "i_am_sure": True,
    },
}

record_batch_decisions = person_job(
    select_and_record,
    name="record_batch_decisions",
    manual=_MANUAL,
    writes=page_text("Rows in `mac_douban_decision`, one per selected video. A dry run only shows them."),
    when=page_text("When one decision fits many videos that a filter can name; look at the dry run first."),
    examples=_EXAMPLES,
    nothing_done=NOTHING_RECORDED,
    location=LOCATION,
    opening={"action": DecisionAction.confirm_top1},
    tags=PERSON_TAGS,
)

jobs = [record_batch_decisions]
