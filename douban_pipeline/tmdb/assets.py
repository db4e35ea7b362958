"""The assets of the TMDB system: changes, entities, translations, the graph, and their numbers by day."""

from datetime import date
from typing import Any

import dagster as dg

from douban_pipeline.core.errors import SourceError
from douban_pipeline.core.language import page_docstring, page_text
from douban_pipeline.core.ui.tmdb_attribution import attribution_markdown
from douban_pipeline.dagster_kit.labels import TABLES
from douban_pipeline.dagster_kit.metadata import shown_table
from douban_pipeline.tmdb.graph_sync import DOWN, GraphUnavailableError, SyncReport, drain
from douban_pipeline.tmdb.refresh import RefreshReport, note_changes, refresh, store_translations
from douban_pipeline.tmdb.resources import API_POOL, GRAPH_POOL
from douban_pipeline.tmdb.services import TmdbServices
from douban_pipeline.tmdb.store import due, links, outbox
from douban_pipeline.tmdb.video_links import link_videos

VIDEOS_PER_RUN = 500
"""Videos that a run of tmdb_matches searches."""

ENTITIES_PER_RUN = 2000
"""Entities that a run of tmdb_entities fetches: at the default rate two minutes of an hourly run."""

GROUP = "tmdb"
CHANGES, MATCHES, ENTITIES, TRANSLATIONS, GRAPH, STATS = (
    "tmdb_changes",
    "tmdb_matches",
    "tmdb_entities",
    "tmdb_translations",
    "tmdb_graph",
    "enrichment_daily_stats",
)
IN_STORE = {"python", "postgres"}
DAYS = dg.DailyPartitionsDefinition(start_date="2026-01-01", timezone="UTC")
DRAIN_SECONDS = 600.0
"""Time limit of one run's writes to the graph; the sensor launches the next run for the rest."""
_MOST_FAILED = 50


def _nothing(context: dg.AssetExecutionContext, why: str) -> dg.MaterializeResult:
    """Return the result of a run that has nothing to do; not a failure, as the system may be installed but unused."""
    context.log.warning(f"nothing to do: {why}")
    return dg.MaterializeResult(data_version=TABLES, metadata={"nothing_to_do": why})


@dg.asset(
    name=CHANGES,
    group_name=GROUP,
    kinds=IN_STORE,
    partitions_def=DAYS,
    pool=API_POOL,
)
@page_docstring
def tmdb_changes(context: dg.AssetExecutionContext, services: dg.ResourceParam[TmdbServices]) -> dg.MaterializeResult:
    """Which films, series and people TMDB changed on a day (UTC); stored ones become due.

    TMDB lists only ids. A day can be requested again at any time: entities fetched since then do not become due again.
    """
    if why := services.cannot_ask:
        return _nothing(context, why)
    services.ready()
    day = date.fromisoformat(context.partition_key)
    with services.client() as client:
        try:
            found = note_changes(services, client, day)
        except SourceError as error:
            raise dg.Failure(
                page_text("TMDB did not say what changed on {day}: {error}").format(day=day, error=error),
                allow_retries=False,
            ) from error
    numbers = {f"{entity.value}_ids": ids for entity, (ids, _) in found.items()}
    return dg.MaterializeResult(
        data_version=TABLES,
        metadata={**numbers, **{f"{entity.value}_due": marked for entity, (_, marked) in found.items()}},
    )


@dg.asset(
    name=MATCHES,
    group_name=GROUP,
    kinds=IN_STORE,
    pool=API_POOL,
)
@page_docstring
def tmdb_matches(context: dg.AssetExecutionContext, services: dg.ResourceParam[TmdbServices]) -> dg.MaterializeResult:
    """Links the library's videos to TMDB's titles, judged by the same gate as Douban's subjects.

    New videos first, then those for which nothing was found 30 days ago, 500 at most.
    A link is stored in `tmdb.vod_link`; nothing is written to the CMS. Doubtful videos are listed with their
    candidates, and decided with `decide_tmdb_matches`.
    """
    why = services.cannot_ask or ("" if services.settings.library_url.get_secret_value() else "no library is named")
    if why:
        return _nothing(context, why)
    services.ready()
    with services.client() as client:
        report = link_videos(services, client, most=VIDEOS_PER_RUN)
    if report.ended:
        context.log.warning(f"ended early: {report.ended}")
    doubtful = services.store.run(lambda connection: links.waiting(connection, _MOST_FAILED))
    rows = [
        {
            page_text("video", "table"): row["vod_id"],
            page_text("title", "video"): row["title"],
            page_text("candidate"): _candidates(row),
            page_text("reason", "column"): row["reason"],
        }
        for row in doubtful
    ]
    return dg.MaterializeResult(
        data_version=TABLES,
        metadata={
            **{f"{state}_now": report.states[state] for state in ("confirmed", "review", "none")},
            **services.store.run(links.counts),
            "failed": report.failed,
            "ended_early_because": report.ended or "—",
            "doubtful": shown_table(rows, most=_MOST_FAILED),
            "attribution": dg.MetadataValue.md(attribution_markdown()),
        },
    )


def _candidates(row: dict[str, Any]) -> str:
    return "；".join(
        f"{each['media_type']}/{each['tmdb_id']} "
        + (f"{each['title']}（{each['year'] or '?'}）" if "title" in each else page_text(" (out of date)"))
        + f"{each['score']}"
        for each in row["candidates"] or ()
    )


@dg.asset(
    name=ENTITIES,
    deps=[tmdb_changes, tmdb_matches],
    group_name=GROUP,
    kinds=IN_STORE,
    pool=API_POOL,
)
@page_docstring
def tmdb_entities(context: dg.AssetExecutionContext, services: dg.ResourceParam[TmdbServices]) -> dg.MaterializeResult:
    """Details of films, series and people: due entities are fetched again, with their credits.

    In this order, 2,000 at most: stubs linked to a video or selected in a question,
    entities changed at TMDB, those older than 150 days. An entity that TMDB no longer has is marked as gone. Changes
    of nodes and edges are put into the outbox in the same transaction. If the source fails, the run ends early and the
    rest stays due.
    """
    if why := services.cannot_ask:
        return _nothing(context, why)
    services.ready()

    def say(report: RefreshReport) -> None:
        context.log.info(f"{report.changes.total()} fetched, {len(report.failed)} failed, {report.left} left")

    with services.client() as client:
        report = refresh(services, client, most=ENTITIES_PER_RUN, on_batch=say)
    if report.ended:
        context.log.warning(f"ended early: {report.ended}")
    failed = [
        {page_text("entity"): str(key), page_text("reason", "column"): reason} for key, reason in report.failed.items()
    ]
    return dg.MaterializeResult(
        data_version=TABLES,
        metadata={
            **{name: int(value) for name, value in report.numbers().items()},
            "left": report.left,
            "ended_early_because": report.ended or "—",
            "failed": shown_table(failed, most=_MOST_FAILED),
        },
    )


@dg.asset(
    name=TRANSLATIONS,
    deps=[tmdb_entities],
    group_name=GROUP,
    kinds=IN_STORE,
    pool=API_POOL,
)
@page_docstring
def tmdb_translations(
    context: dg.AssetExecutionContext, services: dg.ResourceParam[TmdbServices]
) -> dg.MaterializeResult:
    """Titles and texts in other languages, in tables of their own.

    First those contained in stored answers, which needs no request; then those of the most popular entities without
    translations, as many as one run of `tmdb_entities` may fetch.
    """
    if why := services.cannot_ask:
        return _nothing(context, why)
    services.ready()
    with services.client() as client:
        report = store_translations(services, client, most=ENTITIES_PER_RUN)
    if report.ended:
        context.log.warning(f"ended early: {report.ended}")
    return dg.MaterializeResult(
        data_version=TABLES,
        metadata={
            "from_answers": report.split,
            "asked": report.asked,
            "failed": report.failed,
            "ended_early_because": report.ended or "—",
        },
    )


@dg.asset(
    name=GRAPH,
    deps=[tmdb_entities],
    group_name=GROUP,
    kinds={"python", "bolt"},
    pool=GRAPH_POOL,
)
@page_docstring
def tmdb_graph(context: dg.AssetExecutionContext, services: dg.ResourceParam[TmdbServices]) -> dg.MaterializeResult:
    """The graph of films, series, people and genres: writes the changes in the outbox to it, for up to ten minutes.

    Each row is leased and read when it is written, so a run may be killed, or two may run. While the graph database is
    down nothing is lost and no attempt counts. Rows that it refuses are retried with increasing delay, and put aside
    after 8 failures with the reason; `requeue_outbox` queues them again.
    """
    services.ready()
    report, down = SyncReport(), ""

    def say(so_far: SyncReport) -> None:
        context.log.info(f"{so_far.done} entities written, {len(so_far.failed)} failed")

    try:
        with services.graph() as target:
            report = drain(
                services.store,
                target,
                seconds=DRAIN_SECONDS,
                on_batch=say,
            )
    except (GraphUnavailableError, *DOWN) as error:
        down = f"{error}"[:300]
        context.log.warning(f"the graph does not answer: {down}")
    counts = services.store.run(outbox.counts)
    failed = [
        {page_text("entity"): str(key), page_text("reason", "column"): reason} for key, reason in report.failed.items()
    ]
    dead = services.store.run(outbox.dead)
    return dg.MaterializeResult(
        data_version=TABLES,
        metadata={
            "outbox_waiting": counts.waiting,
            "outbox_dead": counts.dead,
            "written": report.done,
            "edges_written": report.written.merged,
            "edges_deleted": report.written.deleted,
            "nodes_deleted": report.written.nodes_deleted,
            "graph_down_because": down or "—",
            "failed": shown_table(failed, most=_MOST_FAILED),
            "put_aside": shown_table(dead),
        },
    )


@dg.asset(
    name=STATS,
    group_name=GROUP,
    kinds=IN_STORE,
    partitions_def=DAYS,
)
@page_docstring
def enrichment_daily_stats(
    context: dg.AssetExecutionContext, services: dg.ResourceParam[TmdbServices]
) -> dg.MaterializeResult:
    """Statistics of users' questions on a day (UTC): number, share with results, duration, confidence.

    The figures are kept when the questions are deleted after 30 days.
    """
    services.ready()
    day = date.fromisoformat(context.partition_key)
    numbers = services.store.run(lambda connection: due.request_numbers(connection, day))
    if numbers["requests"]:
        numbers["hit_rate"] = round(100 * numbers["hits"] / numbers["requests"], 1)
    services.store.run(lambda connection: due.note_numbers(connection, day, numbers))
    return dg.MaterializeResult(data_version=TABLES, metadata=numbers)


assets = [tmdb_changes, tmdb_matches, tmdb_entities, tmdb_translations, tmdb_graph, enrichment_daily_stats]
