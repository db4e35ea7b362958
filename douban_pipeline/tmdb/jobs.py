"""Jobs of TMDB: its assets and checks, scheduled maintenance, and jobs that people launch with a config."""

from contextlib import closing
from datetime import timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

import dagster as dg
from pydantic import Field

from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import page_docstring, page_text
from douban_pipeline.dagster_kit.labels import owners
from douban_pipeline.dagster_kit.launchpad import AtLeast, Filled, LaunchpadConfig, PersonName, person_job
from douban_pipeline.dagster_kit.metadata import run_table
from douban_pipeline.dagster_kit.run_retention import (
    RetentionConfig,
    prune_job,
    prune_runs,
    report_pruned,
)
from douban_pipeline.tmdb import refresh
from douban_pipeline.tmdb.assets import CHANGES, ENTITIES, GRAPH, MATCHES, STATS, TRANSLATIONS
from douban_pipeline.tmdb.enrichment.factory import open_spool
from douban_pipeline.tmdb.enrichment.spool import SpoolError, conversation_hash, user_hash
from douban_pipeline.tmdb.graph_sync import rebuild_graph
from douban_pipeline.tmdb.resources import PERSON_TAGS, SYSTEM, tags_of
from douban_pipeline.tmdb.services import LOCATION, TmdbServices
from douban_pipeline.tmdb.store import outbox
from douban_pipeline.tmdb.store.requests import count_of
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline.tmdb.video_links import LinkDecision, decide

HISTORY_DAYS = 90
"""Days for which finished runs are kept."""


def _job(name: str, asset: str, kind: str, description: str) -> Any:
    return dg.define_asset_job(
        name, selection=dg.AssetSelection.assets(asset), owners=owners(), tags=tags_of(kind), description=description
    )


changes_job = _job(
    "note_tmdb_changes",
    CHANGES,
    "tmdb_changes",
    page_text("Fetches which entities TMDB changed on a day."),
)
matches_job = _job(
    "match_tmdb_videos",
    MATCHES,
    "tmdb_matches",
    page_text("Searches TMDB's titles for the library's videos."),
)
entities_job = _job(
    "refresh_tmdb_entities",
    ENTITIES,
    "tmdb_entities",
    page_text("Fetches due entities, and checks the store."),
)
translations_job = _job(
    "store_tmdb_translations",
    TRANSLATIONS,
    "tmdb_entities",
    page_text("Stores translations in their tables."),
)
graph_job = _job(
    "sync_tmdb_graph",
    GRAPH,
    "tmdb_graph",
    page_text("Writes the changes in the outbox to the graph."),
)
check_job = dg.define_asset_job(
    "look_at_tmdb",
    selection=dg.AssetSelection.all_asset_checks(),
    owners=owners(),
    tags=tags_of("tmdb_check"),
    description=page_text("Checks that the store is complete and recent enough, and that the graph agrees with it."),
)
stats_job = _job("count_tmdb_requests", STATS, "tmdb_stats", page_text("Counts a day's questions."))


def delete_outdated(
    context: dg.OpExecutionContext, config: RetentionConfig, services: dg.ResourceParam[TmdbServices]
) -> None:
    """Delete expired data, and finished runs of the location."""
    services.ready()
    done = refresh.prune(services, dry_run=config.dry_run)
    before = services.now() - timedelta(days=HISTORY_DAYS)
    runs = prune_runs(context, SYSTEM, before=before, dry_run=config.dry_run)
    numbers = {
        "requests": done.requests,
        "outbox_rows": done.outbox,
        "answers_made_stubs": done.raw,
        "expired_facts": done.facts,
        "archived_answers": done.archived,
        "runs": runs,
    }
    report_pruned(context, numbers, dry_run=config.dry_run)


_RETENTION = page_text(
    """\
Delete users' questions after 30 days, completed rows of the outbox after 7, and finished runs after 90.

Answers that could not be fetched again become stubs with nothing but their ids two days before they reach the
maximum age of TMDB's terms (180 days), and every other column loses what came from TMDB.
"""
)

tmdb_retention = prune_job(
    delete_outdated,
    name="tmdb_retention",
    manual=_RETENTION,
    writes=page_text(
        "Deletes questions, completed rows of the outbox and runs; empties expired data. A dry run "
        "(the default) only counts them."
    ),
    when=page_text("By itself every night; by hand when a check names expired data."),
    location=LOCATION,
    tags=tags_of("tmdb_upkeep"),
)


@dg.op
@page_docstring
def vacuum(context: dg.OpExecutionContext, services: dg.ResourceParam[TmdbServices]) -> None:
    """Run PostgreSQL's VACUUM."""
    services.ready()
    context.add_output_metadata({"seconds": round(refresh.vacuum(services), 1)})


@dg.job(owners=owners(), tags=tags_of("tmdb_upkeep"))
@page_docstring
def vacuum_tmdb() -> None:
    """Run `VACUUM (ANALYZE)` on every table of the schema, to reclaim space and keep statistics current."""
    vacuum()


class ForgetConfig(LaunchpadConfig):
    """Whose questions to delete."""

    dry_run: bool = Field(True, description=page_text("true: only check; false: delete."))
    user_id: str = Field("", description=page_text("All questions of this user."))
    conversation_id: str = Field("", description=page_text("Or: the questions of this conversation."))


def forget(context: dg.OpExecutionContext, config: ForgetConfig, services: dg.ResourceParam[TmdbServices]) -> None:
    """Delete the questions of a user or a conversation."""
    services.ready()
    if bool(config.user_id) == bool(config.conversation_id):
        raise ProblemsError([page_text("Write either user_id or conversation_id.")])
    try:
        conversation = UUID(config.conversation_id) if config.conversation_id else None
    except ValueError:
        raise ProblemsError(
            [page_text("conversation_id: “{given}” is no UUID").format(given=config.conversation_id[:40])]
        ) from None
    store = services.store
    if config.dry_run:
        count = store.run(lambda connection: count_of(connection, config.user_id or None, conversation))
        context.log.info(f"dry run: {count} questions would be deleted")
    else:
        named = user_hash(config.user_id) if conversation is None else conversation_hash(conversation)
        try:  # first in queue and spool, so that none is written after the deletion
            with closing(open_spool(services.settings, services.clock)) as spool:
                spooled = spool.forget(named)
        except SpoolError as error:
            raise ProblemsError([str(error)]) from error
        count = store.delete_user(config.user_id) if conversation is None else store.delete_conversation(conversation)
        context.log.info(f"{count} questions deleted, {spooled} more that waited in the spool of this machine")
    context.add_output_metadata({"dry_run": config.dry_run, "questions": count})


_FORGET = page_text(
    """\
Delete all questions of a user or a conversation, and what else refers to them.

With `dry_run: true`, the default, they are only counted.

Those that wait in this machine's spool are deleted, too.
"""
)

forget_user = person_job(
    forget,
    name="forget_user",
    manual=_FORGET,
    writes=page_text("Deletes questions, for good. A dry run (the default) only counts them."),
    when=page_text("When a user asks for it, or the law does."),
    examples={
        "一位用户": {"dry_run": False, "user_id": "user123"},
        "一个会话": {"dry_run": False, "conversation_id": "0e3a2c52-6a7e-4f0a-9d0e-3a1d5a2b7c11"},
    },
    nothing_done=page_text("No question was deleted"),
    location=LOCATION,
    tags=PERSON_TAGS,
)


class LinkChoice(LaunchpadConfig):
    """TMDB's title of one video."""

    vod_id: Annotated[int, AtLeast(1, page_text("A video's id is in mac_vod.vod_id."))] = Field(
        description=page_text("The video.")
    )
    media_type: Literal["movie", "tv"] = Field("movie", description=page_text("Film or series."))
    tmdb_id: Annotated[int, AtLeast(0, page_text("Write 0 for what TMDB does not have."))] = Field(
        0, description=page_text("0: TMDB does not have it.")
    )


class DecideConfig(LaunchpadConfig):
    """A person's decisions."""

    dry_run: bool = Field(True, description=page_text("true: only check; false: store them."))
    reviewer: PersonName = Field("", description=page_text("Name of the reviewer."))
    note: str = Field("", description=page_text("Reason."))
    decisions: Annotated[list[LinkChoice], Filled(page_text("Write at least one video."))] = Field(
        default_factory=list, description=page_text("One decision per video.")
    )


def decide_links(
    context: dg.OpExecutionContext, config: DecideConfig, services: dg.ResourceParam[TmdbServices]
) -> None:
    """Store a person's decisions about videos."""
    services.ready()
    chosen = [
        LinkDecision(each.vod_id, EntityKey(EntityType(each.media_type), each.tmdb_id) if each.tmdb_id else None)
        for each in config.decisions
    ]
    context.add_output_metadata({"dry_run": config.dry_run, "decisions": len(chosen)})
    if config.dry_run:
        context.log.info(f"dry run: {len(chosen)} decisions would be stored")
        return
    decide(services, chosen, config.reviewer.strip(), config.note.strip())
    context.log.info(f"{len(chosen)} decisions kept")


_DECIDE = page_text(
    """\
Decide which TMDB titles the library's videos are.

Doubtful ones are on the page of `tmdb_matches`.

`tmdb_id: 0`: TMDB does not have it. No run changes a decision.
"""
)

decide_tmdb_matches = person_job(
    decide_links,
    name="decide_tmdb_matches",
    manual=_DECIDE,
    writes=page_text("Rows of the links between videos and TMDB's titles. A dry run (the default) only checks them."),
    when=page_text("When the page of `tmdb_matches` lists doubtful videos."),
    examples={
        "是这部电影": {
            "dry_run": False,
            "reviewer": "小王",
            "decisions": [LinkChoice(vod_id=12, media_type="movie", tmdb_id=603)],
        },
        "TMDB 没有": {
            "dry_run": False,
            "reviewer": "小王",
            "decisions": [LinkChoice(vod_id=13, media_type="movie", tmdb_id=0)],
        },
    },
    nothing_done=page_text("No decision was recorded"),
    location=LOCATION,
    tags=PERSON_TAGS,
)


class RequeueConfig(LaunchpadConfig):
    """Changes to queue again."""

    dry_run: bool = Field(True, description=page_text("true: only list them; false: requeue them."))


def requeue(context: dg.OpExecutionContext, config: RequeueConfig, services: dg.ResourceParam[TmdbServices]) -> None:
    """Queue changes again that were put aside."""
    services.ready()
    rows = services.store.run(outbox.dead)
    done = 0 if config.dry_run else services.store.run(outbox.requeue_dead)
    context.log.info(f"{'dry run: ' if config.dry_run else ''}{len(rows)} put aside, {done} queued again")
    shown = run_table(rows)
    context.add_output_metadata({"dry_run": config.dry_run, "queued": done, "put_aside": shown})


_REQUEUE = page_text(
    """\
Requeue changes that the graph refused too often, after the cause is fixed.

With `dry_run: true`, the default, only the last 50 are listed.
"""
)

requeue_outbox = person_job(
    requeue,
    name="requeue_outbox",
    manual=_REQUEUE,
    writes=page_text("Makes rows of the outbox due again. A dry run (the default) only lists them."),
    when=page_text("When the check says that changes were put aside, and their cause is removed."),
    examples={"": {"dry_run": False}},
    nothing_done=page_text("Nothing was queued again"),
    location=LOCATION,
    tags=PERSON_TAGS,
)


class GraphRebuildConfig(LaunchpadConfig):
    """Whether the graph is rebuilt."""

    dry_run: bool = Field(True, description=page_text("true: only show the count; false: rebuild."))


def rebuild(
    context: dg.OpExecutionContext, config: GraphRebuildConfig, services: dg.ResourceParam[TmdbServices]
) -> None:
    """Empty the graph and rebuild it from the stored answers alone."""
    services.ready()
    total = sum(found.full for found in services.store.row_counts().values())
    context.add_output_metadata({"dry_run": config.dry_run, "answers": total})
    if config.dry_run:
        context.log.info(f"dry run: the graph would be emptied and rebuilt from {total} answers")
        return
    with services.graph() as target:
        done = rebuild_graph(
            services.store,
            target,
            on_batch=lambda built: context.log.info(f"{built} of {total}") if built % 1000 < 50 else None,
        )
        counts = {name: count for name, count in target.counts().items() if count}
    context.log.info(f"built from {done} answers: " + ", ".join(f"{name} {count}" for name, count in counts.items()))


_REBUILD = page_text(
    """\
Empty the graph and rebuild it from the stored answers alone.

Dry run by default; the graph is incomplete until done.
"""
)

rebuild_tmdb_graph = person_job(
    rebuild,
    name="rebuild_tmdb_graph",
    manual=_REBUILD,
    writes=page_text("The whole graph, anew. A dry run (the default) only counts the answers."),
    when=page_text("When graph and store disagree, or the graph was lost."),
    examples={"": {"dry_run": False}},
    nothing_done=page_text("The graph was not rebuilt"),
    location=LOCATION,
    tags={**PERSON_TAGS, "dagster/max_runtime": "86400"},
)

jobs: list[Any] = [
    changes_job,
    matches_job,
    entities_job,
    translations_job,
    graph_job,
    stats_job,
    check_job,
    tmdb_retention,
    vacuum_tmdb,
    forget_user,
    decide_tmdb_matches,
    requeue_outbox,
    rebuild_tmdb_graph,
]
