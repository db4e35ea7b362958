"""Jobs that the lists' batch links launch: every default is safe."""

from datetime import timedelta
from typing import Annotated, Any

import dagster as dg
from pydantic import Field

from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.launchpad import AtLeast, LaunchpadConfig, PersonName, person_job
from douban_pipeline.dagster_kit.metadata import run_table
from douban_pipeline.douban.links import LOCATION
from douban_pipeline.douban.reports.lists.duplicate_settlement import MOST_GROUPS, Settlement, settlement
from douban_pipeline.douban.reports.lists.keepers import KeeperRule
from douban_pipeline.douban.reports.lists.keyset import ListFilter
from douban_pipeline.douban.reports.lists.lookup import video_name
from douban_pipeline.douban.reports.lists.matching_now import MOST, queue_matches
from douban_pipeline.douban.resources import PERSON_TAGS, VideoIds
from douban_pipeline.douban.review.jobs import (
    DRY_RUN,
    NOTHING_RECORDED,
    REVIEWER,
    dry_run_notice,
    log_progress,
    report_recording,
)
from douban_pipeline.douban.review.records.record import record
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.shown_status import ShownStatus

_SHOWN = 500


class MatchNowConfig(LaunchpadConfig):
    """Which videos without an id are matched at once: only the named ones, or all that pass the filters."""

    reviewer: PersonName = Field("", description=page_text("Your name; it is recorded with the tasks."))
    dry_run: bool = Field(True, description=page_text("true: only show the videos; false: queue them."))
    vod_ids: VideoIds = Field(default_factory=list, description=page_text("Only these videos; if empty, the filters."))
    type_ids: list[int] = Field(default_factory=list, description=page_text("Categories."))
    since_days: int = Field(0, ge=0, description=page_text("Updated within this number of days; 0: any."))
    statuses: list[ShownStatus] = Field(
        default_factory=list,
        description=page_text("Only these statuses; empty: all."),
    )
    text: str = Field("", description=page_text("Text in the title or the reason."))
    most: Annotated[int, AtLeast(1, page_text("Write the greatest number."))] = Field(
        200, description=page_text("Maximum number of videos, 1 to {most}, newest first.").format(most=MOST)
    )


def queue(context: dg.OpExecutionContext, config: MatchNowConfig, services: dg.ResourceParam[Services]) -> None:
    """Queue the videos, or only show them."""
    services.ready()
    since = services.clock.now() - timedelta(days=config.since_days) if config.since_days else None
    chosen = {"status": config.statuses} if config.statuses else {}
    asked = ListFilter(categories=config.type_ids, since=since, chosen=chosen, text=config.text)
    queued = queue_matches(
        services,
        services.queue(context.run_id),
        asked,
        config.vod_ids,
        reviewer=config.reviewer,
        run_id=context.run_id,
        most=config.most,
        dry_run=config.dry_run,
    )
    context.log.info(f"{len(queued.videos)} videos, {queued.new} tasks queued, {queued.waiting} were waiting already")
    rows = [
        {"影片": row["vod_id"], "片名": row["video"], "状态": row["status"], "原因": row["reason"]}
        for row in queued.videos[:_SHOWN]
    ]
    context.add_output_metadata(
        {
            "dry_run": config.dry_run,
            "videos": len(queued.videos),
            "queued": queued.new,
            "sooner": queued.waiting,
            "not_in_the_list": "、".join(map(str, queued.unknown[:_SHOWN])),
            "first": run_table(rows, most=_SHOWN),
        }
    )


queue_matches_job = person_job(
    queue,
    name="queue_matches",
    manual=page_text("Match videos without a Douban id at once, with priority over due tasks."),
    writes=page_text("Tasks in `mac_douban_task`. A dry run only shows the videos."),
    when=page_text("When videos without an id should not wait until they are due."),
    examples={
        "最近 30 天更新的 200 部": {"reviewer": "小王", "dry_run": False, "since_days": 30, "most": 200},
        "这几部": {"reviewer": "小王", "dry_run": False, "vod_ids": [1024, 2048]},
    },
    nothing_done="没有入队",
    location=LOCATION,
    tags=PERSON_TAGS,
)


class SettleConfig(LaunchpadConfig):
    """Which groups are settled, by which rule, by whom and why."""

    reviewer: PersonName = Field("", description=REVIEWER)
    note: str = Field("", description=page_text("Reason, in one sentence; it is recorded with every resulting write."))
    dry_run: bool = Field(True, description=DRY_RUN)
    keeper: KeeperRule = Field(
        KeeperRule.best_match, description=page_text("Which video keeps the id: best_match, earliest_link, popularity.")
    )
    douban_ids: list[int] = Field(default_factory=list, description=page_text("The subjects of the groups."))
    every_group: bool = Field(False, description=page_text("Or: all groups, the smallest first."))
    most: Annotated[int, AtLeast(1, page_text("Write the greatest number."))] = Field(
        100, description=page_text("Maximum number of groups, 1 to {most_groups}.").format(most_groups=MOST_GROUPS)
    )
    largest: int = Field(
        20,
        description=page_text("Maximum group size; larger ones are decided one by one."),
    )


def settle(context: dg.OpExecutionContext, config: SettleConfig, services: dg.ResourceParam[Services]) -> None:
    """Record the decisions about the groups, or only show them."""
    services.ready()
    found = settlement(
        services,
        config.douban_ids,
        config.keeper,
        every_group=config.every_group,
        most=config.most,
        largest=config.largest,
    )
    decisions = found.decisions
    context.log.info(f"{len(found.groups)} groups, {len(decisions)} ids to be cleared")
    shown = _settled(found)
    if not decisions:
        context.add_output_metadata({"dry_run": config.dry_run, **shown})
        return
    recording = record(
        services,
        decisions,
        reviewer=config.reviewer,
        note=config.note or "重复：保留组内最合适的一部",
        run_id=context.run_id,
        dry_run=config.dry_run,
        progress=log_progress(context, services, len(decisions)),
    )
    report_recording(context, recording, config.dry_run, **shown, **dry_run_notice(services.settings))


def _settled(found: Settlement) -> dict[str, Any]:
    rows = [
        {
            "条目": group.douban_id,
            "保留": video_name(group.keep.vod_id, group.keep.title, group.keep.year),
            "理由": group.why,
            "清除": "、".join(video_name(each.vod_id, each.title, each.year) for each in group.cleared[:5])
            + (f" 等 {len(group.cleared)} 部" if len(group.cleared) > 5 else ""),
            "已锁定，不动": "、".join(str(each.vod_id) for each in group.locked),
        }
        for group in found.groups[:_SHOWN]
    ]
    return {
        "groups": len(found.groups),
        "settled": run_table(rows, most=_SHOWN),
        "no_groups": "、".join(map(str, found.no_groups)),
        "too_large": "、".join(map(str, found.too_large)),
    }


settle_duplicates = person_job(
    settle,
    name="settle_duplicates",
    manual=page_text("Resolve many groups of videos that share a subject: one keeps the id, the others lose it."),
    writes=page_text(
        "Rows in `mac_douban_decision`, a `clear_id` for each video that loses the id. A dry run only shows them."
    ),
    when=page_text("When the list of duplicates has many groups to settle by one rule."),
    examples={
        "几组": {"reviewer": "小王", "note": "重复采集", "dry_run": False, "douban_ids": [1292052, 1291546]},
        "所有两三部的组，留播放最多的": {
            "reviewer": "小王",
            "note": "重复采集",
            "dry_run": False,
            "keeper": KeeperRule.popularity,
            "every_group": True,
            "largest": 3,
            "most": 500,
        },
    },
    nothing_done=NOTHING_RECORDED,
    location=LOCATION,
    tags=PERSON_TAGS,
)

jobs = [queue_matches_job, settle_duplicates]
