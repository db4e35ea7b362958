"""Jobs of the feeds system: its assets, jobs that people launch with a config, and pruning."""

from datetime import timedelta
from typing import Any

import dagster as dg
from pydantic import Field

from douban_pipeline.core.database import reading
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
from douban_pipeline.feeds import subscriptions, wording
from douban_pipeline.feeds.assets import feed_cadence, feed_entries, feed_polls, feeds_page, poll_metadata
from douban_pipeline.feeds.cadence_review import drop_old
from douban_pipeline.feeds.poller import RUN_MINUTES, Poller
from douban_pipeline.feeds.resources import PERSON_TAGS, SYSTEM, tags_of
from douban_pipeline.feeds.services import LOCATION, FeedsServices
from douban_pipeline.feeds.subscriptions import FollowReport, SourceRequest
from douban_pipeline.feeds.types import Source

POLL_TAGS = tags_of("feeds_poll")

poll_job = dg.define_asset_job(
    "poll_feeds",
    selection=dg.AssetSelection.assets(feed_polls, feed_entries),
    owners=owners(),
    tags=POLL_TAGS,
    description=page_text(
        "Polls every source that is due, under leases. Launched by the sensor `due_feeds_sensor`, or by hand."
    ),
)

review_job = dg.define_asset_job(
    "review_feeds",
    selection=dg.AssetSelection.assets(feed_cadence, feeds_page),
    owners=owners(),
    tags=tags_of("feeds_review"),
    description=page_text("Re-analyses all sources, computes the budget's plan, and rewrites the page feeds.html."),
)


class SourceRow(LaunchpadConfig):
    """One source."""

    kind: str = Field("rss", description=page_text("rss, werss, maccms or json.", "feeds"))
    url: str = Field("", description=page_text("Address; empty for a public account."))
    title: str = Field("", description=page_text("Title; empty: the source's own."))
    cadence: str = Field(
        "P2", description=page_text("In profile plan: P0 (15 min) to P6 (24 h), until its own is learned.")
    )
    mp_id: str = Field("", description=page_text("Id of a public account at WeRSS."))
    options: dict[str, str] = Field(default_factory=dict, description=page_text("For JSON lists."))
    folder: str = Field("", description=page_text("Folder, outer/inner; empty: as it is."))
    credential: str = Field("", description=page_text("Name of its credentials; empty: as they are."))


class FollowConfig(LaunchpadConfig):
    """Sources to add or edit."""

    dry_run: bool = Field(True, description=page_text("true: only check and preview; false: store."))
    sources: list[SourceRow] = Field(default_factory=list, description=page_text("The sources."))


def store_sources(
    context: dg.OpExecutionContext, config: FollowConfig, services: dg.ResourceParam[FeedsServices]
) -> None:
    """Add sources, or edit those that are already followed."""
    services.ready()
    requests = [SourceRequest(**each.model_dump()) for each in config.sources]
    if len(requests) <= subscriptions.FEW:
        requests = [subscriptions.find_feed(services, each)[0] for each in requests]
    report = subscriptions.follow(services, requests, dry_run=config.dry_run)
    _show_following(context, report, dry_run=config.dry_run)


def _show_following(context: dg.OpExecutionContext, report: FollowReport, *, dry_run: bool) -> None:
    counts = f"{len(report.added)} added, {len(report.edited)} edited, {len(report.known)} known without changes"
    context.log.info(f"{'dry run: ' if dry_run else ''}{counts}")
    parts = {page_text("added"): report.added, page_text("changed"): report.edited, page_text("known"): report.known}
    rows = [{"": what, **_shown(each)} for what, found in parts.items() for each in found]
    for refusal in report.refused:
        context.log.warning(refusal)
    context.add_output_metadata(
        {
            "dry_run": dry_run,
            "added": len(report.added),
            "edited": len(report.edited),
            "known": len(report.known),
            "refused": len(report.refused),
            "sources": run_table(rows, most=100),
        }
    )


def _shown(source: Source) -> dict[str, str]:
    kind = wording.KINDS[source.kind.value]
    return {
        page_text("kind", "source"): kind,
        page_text("name"): source.title,
        page_text("address"): source.url,
        page_text("cadence by hand"): source.manual_cadence,
    }


_FOLLOW = page_text(
    """\
Add sources, or edit those that are already followed.

Examples:

{examples}

{links}

Fields

{fields}
"""
)

follow_sources = person_job(
    store_sources,
    name="follow_sources",
    manual=_FOLLOW,
    writes=page_text("Rows in `feed_source`. A dry run (the default) only checks them."),
    when=page_text("When something new is to be followed, or a followed source has another title or cadence."),
    examples={
        "订阅": {
            "dry_run": False,
            "sources": [{"url": "https://example.com/feed.xml", "title": "示例", "cadence": "P2"}],
        },
        "资源站": {
            "sources": [{"kind": "maccms", "url": "https://example.com/api.php/provide/vod/", "title": "资源站"}]
        },
        "公众号": {"sources": [{"kind": "werss", "mp_id": "MP_WXS_3000000001", "title": "公众号"}]},
        "JSON 列表": {
            "sources": [
                {
                    "kind": "json",
                    "url": "https://example.com/api/posts",
                    "options": {"path": "data.list", "id": "id", "title": "name", "link": "url", "time": "created"},
                }
            ]
        },
    },
    nothing_done=page_text("No source was changed"),
    location=LOCATION,
    tags=PERSON_TAGS,
)


class PauseConfig(LaunchpadConfig):
    """Sources to pause or resume."""

    dry_run: bool = Field(True, description=page_text("true: only check; false: change."))
    sources: list[str] = Field(default_factory=list, description=page_text("Titles, addresses or ids."))
    resume: bool = Field(False, description=page_text("true: resume; false: pause."))
    reason: str = Field("", description=page_text("Reason, shown on the page."))


def change_states(
    context: dg.OpExecutionContext, config: PauseConfig, services: dg.ResourceParam[FeedsServices]
) -> None:
    """Pause or resume sources."""
    services.ready()
    if not config.resume and not config.reason.strip():
        raise ProblemsError([page_text("Write the reason for the pause (reason)")])
    found = subscriptions.set_paused(
        services, config.sources, paused=not config.resume, reason=config.reason.strip(), dry_run=config.dry_run
    )
    context.log.info(f"{len(found)} sources {'would be ' if config.dry_run else ''}changed")
    rows = [_shown(each) for each in found]
    context.add_output_metadata({"dry_run": config.dry_run, "sources": run_table(rows, most=100)})


_PAUSE = page_text(
    """\
Pause sources, or resume them.

Example:

{examples}

{link}

Fields

{fields}
"""
)

pause_sources = person_job(
    change_states,
    name="pause_sources",
    manual=_PAUSE,
    writes=page_text("The state of sources in `feed_source`. A dry run (the default) only checks them."),
    when=page_text("When a source is being rebuilt, sends rubbish, or is there again."),
    examples={"": {"dry_run": False, "sources": ["示例"], "reason": "改版中，下周再看"}},
    nothing_done=page_text("No source was changed"),
    location=LOCATION,
    tags=PERSON_TAGS,
)


class PollNowConfig(LaunchpadConfig):
    """Sources to poll now."""

    dry_run: bool = Field(True, description=page_text("true: only list the sources; false: poll them."))
    sources: list[str] = Field(default_factory=list, description=page_text("Titles, addresses or ids."))


def poll_now(context: dg.OpExecutionContext, config: PollNowConfig, services: dg.ResourceParam[FeedsServices]) -> None:
    """Poll sources whether they are due or not; their hosts' limits still apply."""
    services.ready()
    with reading(services.engine) as connection:
        found = subscriptions.named_sources(connection, config.sources)
    shown = {"dry_run": config.dry_run, "sources": run_table([_shown(each) for each in found], most=100)}
    if config.dry_run:
        context.log.info(f"dry run: {len(found)} sources would be polled")
        context.add_output_metadata(shown)
        return
    poller = Poller(services, seconds=60 * RUN_MINUTES)
    report = poller.run(only=[each.source_id for each in found], most=len(found))
    context.log.info(f"{report.polled} sources polled, {report.new} new entries")
    context.add_output_metadata({**shown, **poll_metadata(report)})


_POLL_NOW = page_text(
    """\
Poll sources now, whether they are due or not.

Example:

{examples}

{link}

Fields

{fields}
"""
)

poll_sources_now = person_job(
    poll_now,
    name="poll_sources_now",
    manual=_POLL_NOW,
    writes=page_text(
        "Polls and new entries, as every poll does. A dry run (the default) asks no source and only lists them."
    ),
    when=page_text("When you do not want to wait for a source's next poll, such as after its address was mended."),
    examples={"": {"dry_run": False, "sources": ["示例"]}},
    nothing_done=page_text("Nothing was polled"),
    location=LOCATION,
    tags=PERSON_TAGS,
)


class OpmlConfig(LaunchpadConfig):
    """An OPML list of feeds."""

    dry_run: bool = Field(True, description=page_text("true: only check and preview; false: store."))
    opml: str = Field("", description=page_text("The content of the OPML file."))


def import_outline(
    context: dg.OpExecutionContext, config: OpmlConfig, services: dg.ResourceParam[FeedsServices]
) -> None:
    """Follow the feeds of an OPML file."""
    services.ready()
    _show_following(
        context, subscriptions.import_opml(services, config.opml, dry_run=config.dry_run), dry_run=config.dry_run
    )


_OPML = page_text(
    """\
Follow the feeds of an OPML file, as feed readers export it.

Example:

{examples}

Fields

{fields}
"""
)

_OPML_EXAMPLE = """\
<opml version="2.0"><body>
<outline type="rss" text="Example" xmlUrl="https://example.com/feed.xml"/>
</body></opml>
"""

import_opml = person_job(
    import_outline,
    name="import_opml",
    manual=_OPML,
    writes=page_text(
        "Rows in `feed_source`, for feeds that are not followed yet. A dry run (the default) only checks them."
    ),
    when=page_text("When you move from another feed reader."),
    examples={"": {"dry_run": False, "opml": _OPML_EXAMPLE}},
    nothing_done=page_text("No source was imported"),
    location=LOCATION,
    tags=PERSON_TAGS,
)

HISTORY_DAYS = 7
"""Days for which finished runs are kept: there is one every few minutes, and their results are in the tables."""


def prune(context: dg.OpExecutionContext, config: RetentionConfig, services: dg.ResourceParam[FeedsServices]) -> None:
    """Delete polls, raw answers and finished runs after their retention period."""
    services.ready()
    polls, answers = drop_old(services, dry_run=config.dry_run)
    before = services.clock.now() - timedelta(days=HISTORY_DAYS)
    runs = prune_runs(context, SYSTEM, before=before, dry_run=config.dry_run)
    report_pruned(context, {"polls": polls, "answers": answers, "runs": runs}, dry_run=config.dry_run)


prune_feeds = prune_job(
    prune,
    name="prune_feeds",
    manual=page_text("Delete polls and raw answers older than 30 days, and finished runs of the location."),
    writes=page_text("Deletes polls, raw answers and runs. A dry run (the default) only counts them."),
    location=LOCATION,
    tags=tags_of("feeds_prune"),
)


jobs: list[Any] = [poll_job, review_job, follow_sources, pause_sources, poll_sources_now, import_opml, prune_feeds]
