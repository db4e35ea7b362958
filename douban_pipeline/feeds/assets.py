"""The assets of the feeds system: polls of due sources, their entries, the re-analysis, and the page."""

from datetime import datetime

import dagster as dg

from douban_pipeline.core.database import reading
from douban_pipeline.core.language import page_docstring, page_text, read_in
from douban_pipeline.dagster_kit.metadata import counts_table, shown_table
from douban_pipeline.feeds import wording
from douban_pipeline.feeds.alerts import report_causes
from douban_pipeline.feeds.budget_plan import crowded_hosts
from douban_pipeline.feeds.cadence_review import review
from douban_pipeline.feeds.poller import RUN_MINUTES, Poller, PollReport
from douban_pipeline.feeds.reports import page
from douban_pipeline.feeds.resources import POLL_POOL
from douban_pipeline.feeds.services import FeedsServices
from douban_pipeline.feeds.store import entries
from douban_pipeline.feeds.types import PollOutcome

_SHOWN = 30


def poll_metadata(report: PollReport) -> dict[str, dg.MetadataValue]:
    """Return the result of a run of polls as metadata."""
    outcomes = {each.value: report.outcomes[each.value] for each in PollOutcome}
    numbers = {
        "polled": report.polled,
        **outcomes,
        "new_entries": report.new,
        "edited_entries": report.edited,
        "videos_handed_over": report.handed_over,
        "left_for_next_run": report.left,
        "leases_lost": report.lost,
        "sources_with_unread_updates": report.gaps,
    }
    return {
        **{name: dg.MetadataValue.int(value) for name, value in numbers.items()},
        "hosts": counts_table(page_text("host"), page_text("polls", "count"), report.hosts.most_common(), most=_SHOWN),
        "problems": counts_table(page_text("problem"), page_text("source"), report.problems.most_common(), most=_SHOWN),
    }


@dg.asset(
    group_name="feeds",
    kinds={"python"},
    pool=POLL_POOL,
)
@page_docstring
def feed_polls(context: dg.AssetExecutionContext, services: dg.ResourceParam[FeedsServices]) -> dg.MaterializeResult:
    """Polls every source that is due, under leases, for 10 minutes at most.

    Runs may overlap: each source is leased to one run. A failing source gets a back-off with its reason and does not
    stop others; a host whose gate is closed is skipped, and its sources become due when it opens. A killed run leaves
    no partial results.
    """
    services.ready()
    report = Poller(services, seconds=60 * RUN_MINUTES).run()
    context.log.info(f"{report.polled} sources polled, {report.new} new entries")
    return dg.MaterializeResult(metadata={**poll_metadata(report), **_alerts(context, services)})


def _alerts(context: dg.AssetExecutionContext, services: FeedsServices) -> dict[str, dg.MetadataValue]:
    """Report problems that need a person, and return them as metadata."""
    alerts = report_causes(services)
    for cause in alerts.reported:
        context.log.warning(cause.sentence)
    if alerts.problem:
        context.log.warning(f"an alert was not accepted, and is sent again after the next polls: {alerts.problem}")
    if not alerts.lasting:
        return {}
    lines = "\n".join(f"- {cause.sentence}" for cause in alerts.lasting[:_SHOWN])
    return {"alerts": dg.MetadataValue.md(lines)}


@dg.asset(
    group_name="feeds",
    kinds={"python"},
    deps=[feed_polls],
)
@page_docstring
def feed_entries(services: dg.ResourceParam[FeedsServices]) -> dg.MaterializeResult:
    """Entries published by the sources, in the table `feed_entry`: counts, and the newest ones."""
    services.ready()
    zone = services.settings.zone
    with reading(services.engine) as connection:
        counts = entries.counts(connection, services.now())
        newest = entries.newest_of_all(connection, _SHOWN)
    rows = [
        {
            page_text("published"): wording.moment_text(row.published_at, zone) if row.dated else "—",
            page_text("source"): row.source_title or row.source_id,
            page_text("title", "column"): row.title,
            page_text("found at"): wording.moment_text(row.found_at, zone),
        }
        for row in newest
    ]
    shown = {name: dg.MetadataValue.int(value) for name, value in counts.items()}
    return dg.MaterializeResult(metadata={**shown, "newest": shown_table(rows, most=_SHOWN)})


@dg.asset(
    group_name="feeds",
    kinds={"python"},
)
@page_docstring
def feed_cadence(context: dg.AssetExecutionContext, services: dg.ResourceParam[FeedsServices]) -> dg.MaterializeResult:
    """Re-analyses all sources: their cadences, and in profile budget the plan by which polls are distributed."""
    services.ready()
    report = review(services)
    context.log.info(f"{report.sources} sources analysed, {report.changed} changed their cadence")
    with read_in("en"):
        for crowded in crowded_hosts(services.engine, services.settings):
            context.log.warning(crowded)
    metadata: dict[str, dg.MetadataValue] = {
        "sources": dg.MetadataValue.int(report.sources),
        "changed": dg.MetadataValue.int(report.changed),
        "mended_clocks": dg.MetadataValue.int(report.mended),
        "cadences": counts_table(page_text("cadence"), page_text("source"), sorted(report.cadences.items())),
        "origins": counts_table(
            page_text("cadence from"),
            page_text("source"),
            ((wording.ORIGINS.get(name, name), count) for name, count in sorted(report.origins.items())),
        ),
    }
    if report.plan is not None:
        metadata["budget_polls_a_day"] = dg.MetadataValue.float(report.plan.polls_per_day)
        metadata["correction"] = dg.MetadataValue.float(round(report.plan.correction, 3))
        metadata["polls_in_the_last_day"] = dg.MetadataValue.int(report.polled_in_a_day)
        metadata["planned_polls_a_day"] = dg.MetadataValue.float(round(report.plan.allocation.polls, 1))
    # Also here: where polls no longer run, the problem must be reported too.
    return dg.MaterializeResult(metadata={**metadata, **_alerts(context, services)})


@dg.asset(
    group_name="feeds",
    kinds={"python"},
    deps=[feed_cadence],
)
@page_docstring
def feeds_page(services: dg.ResourceParam[FeedsServices]) -> dg.MaterializeResult:
    """The page `feeds.html` under HOME/reports: how polling goes, what needs a person, and which sources are worst."""
    services.ready()
    view = page.look(services)
    path = services.reports.write(page.NAME, page.page(view, services))
    figures = {name: value for name, value in view.figures.items() if isinstance(value, int)}
    return dg.MaterializeResult(
        metadata={
            "page": services.reports.address(page.NAME),
            "path": dg.MetadataValue.path(str(path)),
            "made_at": f"{datetime.fromtimestamp(view.now, services.settings.zone):%Y-%m-%d %H:%M}",
            **{name: dg.MetadataValue.int(value) for name, value in figures.items()},
            "hit_rate": dg.MetadataValue.float(round(view.figures["hit_rate"], 4)),
            "worst": shown_table(view.worst),
        }
    )


assets = [feed_polls, feed_entries, feed_cadence, feeds_page]
