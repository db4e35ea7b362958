"""Jobs that the lists' batch links launch: every default is safe."""

from datetime import timedelta
from typing import Any

import dagster as dg
from pydantic import Field

from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig, person_job
from douban_pipeline.dagster_kit.metadata import run_table
from douban_pipeline.douban.links import LOCATION
from douban_pipeline.douban.reports.lists.keepers import Keeper
from douban_pipeline.douban.reports.lists.keyset import ListFilter
from douban_pipeline.douban.reports.lists.lookup import video_name
from douban_pipeline.douban.reports.lists.matching_now import MOST, queue_matches
from douban_pipeline.douban.reports.lists.settling import MOST_GROUPS, Settlement, settlement
from douban_pipeline.douban.resources import PERSON_TAGS
from douban_pipeline.douban.review.jobs import (
    DRY_RUN,
    NOTHING_RECORDED,
    REVIEWER,
    dry_run_notice,
    log_progress,
    report_recording,
)
from douban_pipeline.douban.review.recording.record import record
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.shown_status import ShownStatus

_SHOWN = 500


class MatchNowConfig(LaunchpadConfig):
    """Which videos without an id are matched at once: only the named ones, or all that pass the filters."""

    reviewer: str = Field("", description="你的名字 · Your name; it is recorded with the tasks.")
    dry_run: bool = Field(True, description="true 只显示 · true: only show the videos; false: queue them.")
    vod_ids: list[int] = Field(
        default_factory=list, description="只这些影片 · Only these videos; if empty, the filters."
    )
    type_ids: list[int] = Field(default_factory=list, description="类别 · Categories.")
    since_days: int = Field(0, ge=0, description="CMS 在这些天之内更新过 · Updated within this number of days; 0: any.")
    statuses: list[ShownStatus] = Field(
        default_factory=list,
        description="UNCHECKED 未检查、NOT_FOUND 未找到、REVIEW 待审核 · Only these statuses; empty: all.",
    )
    text: str = Field("", description="片名或原因里的文字 · Text in the title or the reason.")
    most: int = Field(200, description=f"最多多少部（1 至 {MOST}），新的在前 · Maximum number of videos, newest first.")


def queue(context: dg.OpExecutionContext, config: MatchNowConfig, services: dg.ResourceParam[Services]) -> None:
    """Queue the videos, or only show them."""
    services.ready()
    since = services.clock.now() - timedelta(days=config.since_days) if config.since_days else None
    asked = ListFilter(categories=config.type_ids, since=since, sources=config.statuses, text=config.text)
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


_QUEUE_MATCHES = """\
一键生成候选 · Match videos without a Douban id at once, with priority over due tasks.

{link}：
`dry_run: true`（默认）只列出影片；改为 `false` 后入队，优先级高于到期的任务，分片的下一次运行就会处理。

`vod_ids` 只取这些影片中没有豆瓣 ID 的；不填则按 `type_ids`、`since_days`、`statuses`、`text` 筛选，
取最近更新的 `most` 部。已在队列里的不会重复，只是提前。搜索结果在缓存期内不再请求。

**字段** · Fields

{fields}

**示例** · Examples:

{examples}
"""

queue_matches_job = person_job(
    queue,
    name="queue_matches",
    manual=_QUEUE_MATCHES,
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

    reviewer: str = Field("", description=REVIEWER)
    note: str = Field(
        "", description="原因，一句话 · Reason, in one sentence; it is recorded with every resulting write."
    )
    dry_run: bool = Field(True, description=DRY_RUN)
    keeper: Keeper = Field(
        Keeper.best_match, description="保留哪一部 · Which video keeps the id: best_match, earliest_link, popularity."
    )
    douban_ids: list[int] = Field(default_factory=list, description="这些条目的组 · The subjects of the groups.")
    every_group: bool = Field(False, description="或：所有的组，小的在前 · Or: all groups, the smallest first.")
    most: int = Field(100, description=f"最多多少组（1 至 {MOST_GROUPS}） · Maximum number of groups.")
    largest: int = Field(
        20,
        description="更大的组留给人：多半是采集写入的固定 ID · Maximum group size; larger ones are decided one by one.",
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


_SETTLE = """\
批量处理重复的豆瓣 ID · Resolve many groups of videos that share a subject: one keeps the id, the others lose it.

{links}

每组按 `keeper` 留一部，其余各记录一条 `clear_id`，与在 `record_decisions` 里逐条记录相同：
先核对、可拒绝、随即自动执行，结果中的 `undo` 一次撤销全部。锁定的不动并列出；
清除后该影片回到“无豆瓣 ID”，不再自动关联同一条目。

`best_match` 匹配最可靠，`earliest_link` 关联最早，`popularity` 播放最多。

**字段** · Fields

{fields}

**示例** · Examples:

{examples}
"""

settle_duplicates = person_job(
    settle,
    name="settle_duplicates",
    manual=_SETTLE,
    examples={
        "几组": {"reviewer": "小王", "note": "重复采集", "dry_run": False, "douban_ids": [1292052, 1291546]},
        "所有两三部的组，留播放最多的": {
            "reviewer": "小王",
            "note": "重复采集",
            "dry_run": False,
            "keeper": Keeper.popularity,
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
