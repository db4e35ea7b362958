"""Jobs that have links judged again, by a person's order, every default safe, and by themselves; and the index."""

from typing import Annotated

import dagster as dg
from pydantic import Field

from douban_pipeline.core.language import page_docstring, page_text
from douban_pipeline.core.ui.presentation import subject_link
from douban_pipeline.dagster_kit.labels import owners
from douban_pipeline.dagster_kit.launchpad import AtLeast, LaunchpadConfig, PersonName, asset_job_manual, person_job
from douban_pipeline.dagster_kit.metadata import run_table
from douban_pipeline.douban.chain.match.assets import DueRechecksConfig, due_rechecks
from douban_pipeline.douban.chain.match.ordered import MOST_RECHECKS, RecheckOrder, order_rechecks
from douban_pipeline.douban.known_subjects.archived import index_archived
from douban_pipeline.douban.known_subjects.known_search import archived_index
from douban_pipeline.douban.links import LOCATION
from douban_pipeline.douban.resources import PERSON_TAGS, VideoIds, tags_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.wording import ID_SOURCES, word_for

_SHOWN = 500


class RecheckConfig(LaunchpadConfig):
    """Which links are judged again, by whose order and why."""

    reviewer: PersonName = Field("", description=page_text("Your name; it is recorded with every task."))
    note: str = Field("", description=page_text("Reason, in one sentence."))
    dry_run: bool = Field(True, description=page_text("true: only list them; false: queue them."))
    vod_ids: VideoIds = Field(default_factory=list, description=page_text("Videos (mac_vod.vod_id)."))
    sources: list[str] = Field(
        default_factory=list,
        description=page_text("Any of: person, import, auto, ai_search, cms."),
    )
    type_ids: list[int] = Field(
        default_factory=list, description=page_text("Categories (child categories are not included).")
    )
    max_rows: Annotated[int, AtLeast(1, page_text("Write the greatest number of videos."))] = Field(
        100,
        description=page_text("Maximum number of videos, 1 to {most_rechecks}.").format(most_rechecks=MOST_RECHECKS),
    )


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


_MANUAL = page_text(
    """\
Judge links again: would they be confirmed today?

Nothing is written to the CMS, and no link is removed; links that would no longer be confirmed go to review.
"""
)

recheck_links = person_job(
    queue_rechecks,
    name="recheck_links",
    manual=_MANUAL,
    writes=page_text("RECHECK tasks in `mac_douban_task`. A dry run only lists the links."),
    when=page_text("When somebody says that links are wrong, or after rules changed."),
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
    description=asset_job_manual(
        page_text(
            "Queues links to be judged again: with changed facts, by other rules, or judged long ago. "
            "Launched by a schedule."
        ),
        writes=page_text("RECHECK tasks in `mac_douban_task`; nothing in the CMS."),
        when=page_text("By itself every hour, for one slice of 24; by hand over all shards after rules changed."),
        ops={due_rechecks.node_def.name: DueRechecksConfig(part=0, parts=1)},
    ),
)


@dg.op
@page_docstring
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
    description=asset_job_manual(
        page_text(
            "Indexes the subjects in archived answers, so that they are found for other videos of the "
            "same work without a request. Launched by a schedule each night."
        ),
        writes=page_text("A file of HOME, which it replaces."),
        when=page_text("By itself every night; by hand when the file was lost."),
    ),
)
def index_archive() -> None:
    """See the description."""
    write_index()


jobs = [recheck_links, recheck_due_links, index_archive]
