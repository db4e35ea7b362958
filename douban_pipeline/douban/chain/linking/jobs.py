"""Jobs that have links judged again, by a person's order, every default safe, and by themselves; and the index."""

import dagster as dg
from pydantic import Field

from douban_pipeline.core.ui.language import described
from douban_pipeline.core.ui.presentation import subject_link
from douban_pipeline.dagster_kit.labels import owners
from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig, person_job
from douban_pipeline.dagster_kit.metadata import run_table
from douban_pipeline.douban.chain.linking.assets import due_rechecks
from douban_pipeline.douban.chain.linking.ordered import MOST_RECHECKS, RecheckOrder, order_rechecks
from douban_pipeline.douban.known_subjects.archived import index_archived
from douban_pipeline.douban.known_subjects.known_search import archived_index
from douban_pipeline.douban.links import LOCATION
from douban_pipeline.douban.resources import PERSON_TAGS, tags_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import IdSource
from douban_pipeline.douban.wording import ID_SOURCES, word_for

_SHOWN = 500


class RecheckConfig(LaunchpadConfig):
    """Which links are judged again, by whose order and why."""

    reviewer: str = Field("", description="你的名字 · Your name; it is recorded with every task.")
    note: str = Field("", description="原因，一句话 · Reason, in one sentence.")
    dry_run: bool = Field(True, description="true 只列出 · true: only list them; false: queue them.")
    vod_ids: list[int] = Field(default_factory=list, description="影片 · Videos (mac_vod.vod_id).")
    sources: list[str] = Field(
        default_factory=list,
        description="豆瓣 ID 的来源：`person` 人工，`import` 导入，`auto` 自动，`ai_search` 联网搜索，`cms` 原有 · "
        f"Any of: {', '.join(IdSource)}.",
    )
    type_ids: list[int] = Field(
        default_factory=list, description="类别（不含子类） · Categories (child categories are not included)."
    )
    max_rows: int = Field(100, description=f"最多多少部（1 至 {MOST_RECHECKS}） · Maximum number of videos.")


def queue_rechecks(context: dg.OpExecutionContext, config: RecheckConfig, services: dg.ResourceParam[Services]) -> None:
    """Have links judged again, or show which would be."""
    services.ready()
    order = RecheckOrder(config.reviewer, config.note, config.vod_ids, config.sources, config.type_ids, config.max_rows)
    found = order_rechecks(services, order, run_id=context.run_id, dry_run=config.dry_run)
    queued = sum(not item.refusal for item in found)
    context.log.info(f"{len(found)} links chosen, {queued} {'could be queued' if config.dry_run else 'queued'}")
    rows = [
        {
            "影片": item.vod_id,
            "片名": item.title,
            "现有 ID": subject_link(item.douban_id),
            "来源": word_for(ID_SOURCES, item.source),
            "结果": item.refusal or ("可以复查" if config.dry_run else "已排队"),
        }
        for item in found
    ]
    context.add_output_metadata(
        {
            "dry_run": config.dry_run,
            "queued": 0 if config.dry_run else queued,
            "refused": len(found) - queued,
            "links": run_table(rows, most=_SHOWN),
        }
    )


_MANUAL = """\
复查关联 · Judge links again: would they be confirmed today?

{examples}

**字段** · Fields（`vod_ids`、`sources`、`type_ids` 至少填写一项；写了 `vod_ids` 就只看这些影片，不看另外两项）

{fields}

重新搜索、比较现有条目和其他候选，什么都不写入 CMS，也不解除关联：仍然成立的保持不变；按现在的规则不会再确认的、
条目已不存在的，转为待审核，候选一并列出。人工选定或锁定的，只有条目已不存在、或有审核员没有接受过的冲突时才转为待审核；
锁定的标为“锁定阻止”，ID、锁定和来源都不动。

Nothing is written to the CMS, and no link is removed; links that would no longer be confirmed go to review.
"""

recheck_links = person_job(
    queue_rechecks,
    name="recheck_links",
    manual=_MANUAL,
    examples={
        "几部影片": {"reviewer": "小王", "note": "读者说不对", "dry_run": False, "vod_ids": [1024, 2048]},
        "CMS 原有的 ID": {"reviewer": "小王", "note": "来源不明", "dry_run": False, "sources": ["cms"]},
    },
    nothing_done="未排队任何复查",
    location=LOCATION,
    tags=PERSON_TAGS,
)

recheck_due_links = dg.define_asset_job(
    "recheck_due_links",
    selection=dg.AssetSelection.assets(due_rechecks),
    owners=owners(),
    tags=tags_of("rechecks"),
    description=described(
        "把该重新判定的关联排进队列：信息变了的、用旧规则确认的、太久没判定的。由定时作业启动。",
        "Queues links to be judged again: with changed facts, by other rules, or judged long ago. Launched by a "
        "schedule.",
    ),
)


@dg.op(description=described("重写存档条目的索引"))
def write_index(context: dg.OpExecutionContext, services: dg.ResourceParam[Services]) -> None:
    """Rewrite the index of the archived subjects."""
    services.ready()
    path = archived_index(services.settings.home)
    contents = index_archived(services.archive, path)
    context.log.info(f"{contents.subjects:,} subjects with {contents.names:,} names: {path}")
    context.add_output_metadata({"subjects": contents.subjects, "names": contents.names})


@dg.job(
    name="index_archive",
    owners=owners(),
    tags=tags_of("housekeeping"),
    description=described(
        "为存档应答描述过的条目建索引，同一作品的其他影片不必发请求就能找到它。由定时作业每晚启动。",
        "Indexes the subjects in archived answers, so that they are found for other videos of the same work without a "
        "request. Launched by a schedule each night.",
    ),
)
def index_archive() -> None:
    """See the description."""
    write_index()


jobs = [recheck_links, recheck_due_links, index_archive]
