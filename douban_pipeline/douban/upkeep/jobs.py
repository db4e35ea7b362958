"""Jobs of upkeep: a source's breaker by hand, the archive of answers, and history past its days.

Every default is safe.
"""

from datetime import timedelta
from typing import Annotated

import dagster as dg
from pydantic import Field

from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import page_text
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.dagster_kit.launchpad import AtLeast, Filled, LaunchpadConfig, PersonName, person_job
from douban_pipeline.dagster_kit.metadata import run_table
from douban_pipeline.dagster_kit.run_retention import (
    RetentionConfig,
    prune_job,
    prune_runs,
    report_pruned,
)
from douban_pipeline.douban.chain.match.revisits import revisit
from douban_pipeline.douban.resources import PERSON_TAGS, SYSTEM, tags_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.upkeep.closed_rows import ArchiveShare, archive_figures, delete_closed
from douban_pipeline.douban.upkeep.expiry import expire
from douban_pipeline.douban.upkeep.gates import GateAction, gate_row, revisit_window, set_by_hand
from douban_pipeline.douban.upkeep.reparse import PARSERS, Reparsed, reparse

HEALTH_TAGS = tags_of("health")
HEALTH_DAYS = 2
"""Days that runs are kept which only look at the pipeline's health: one comes every few minutes, and their figures are
kept elsewhere."""


class GateConfig(LaunchpadConfig):
    """Which source's breaker is changed, how, by whom and why."""

    reviewer: PersonName = Field("", description=page_text("Your name; it is shown with the breaker."))
    note: str = Field(
        "", description=page_text("Reason, in one sentence; for open, it is shown while calls are stopped.")
    )
    dry_run: bool = Field(True, description=page_text("true: only check; false: change the breaker."))
    source: Annotated[str, Filled(page_text("Write a source that source_gates lists."))] = Field(
        "", description=page_text("Name of the source, as `source_gates` shows it.")
    )
    action: GateAction = Field(
        GateAction.close, description=page_text("open: stop all calls for `minutes`; close: allow calls.")
    )
    minutes: Annotated[int, AtLeast(1, page_text("Write the number of minutes."))] = Field(
        60, description=page_text("For open: minutes after which one call tests the source.")
    )


def change_gate(context: dg.OpExecutionContext, config: GateConfig, services: dg.ResourceParam[Services]) -> None:
    """Change the breaker, or show what would happen."""
    services.ready()
    change = set_by_hand(
        services,
        config.source,
        config.action,
        minutes=config.minutes,
        reviewer=config.reviewer,
        note=config.note,
        dry_run=config.dry_run,
    )
    source, zone = change.before.source, services.settings.zone
    what = f"opened until {local_time(change.until, zone)}" if change.until else "closed"
    context.log.info(f"the breaker of {source} {'would be ' if config.dry_run else 'was '}{what}")
    now = services.clock.now()
    shown = [gate_row(status, now, zone) for status in services.gate.status() if status.source == source]
    context.add_output_metadata(
        {
            "dry_run": config.dry_run,
            "source": source,
            "action": config.action.value,
            "until": local_time(change.until, zone),
            "before": run_table([gate_row(change.before, now, zone)]),
            "now": run_table(shown),
        }
    )


set_gate = person_job(
    change_gate,
    name="set_gate",
    manual=page_text("Open or close a source's breaker by hand."),
    writes=page_text("The source's row in `mac_douban_gate`. A dry run only checks."),
    when=page_text("When a source should be left alone for a while, or its cause of failure is mended."),
    examples={
        "": {
            "reviewer": "小王",
            "note": "豆瓣出现验证码，今晚先停两小时",
            "dry_run": False,
            "source": "douban",
            "action": GateAction.open,
            "minutes": 120,
        }
    },
    nothing_done=page_text("No source was changed"),
    tags=PERSON_TAGS,
)


class RevisitConfig(LaunchpadConfig):
    """Whose empty answers are not believed, and of when."""

    reviewer: PersonName = Field("", description=page_text("Your name."))
    note: str = Field("", description=page_text("Reason, in one sentence."))
    dry_run: bool = Field(True, description=page_text("true: only list the videos; false: search for them again."))
    source: str = Field("searxng", description=page_text("Search source with unreliable empty answers."))
    since: str = Field("", description=page_text("Start, in SITE_TIMEZONE, such as 2026-11-20 08:00."))
    until: str = Field("", description=page_text("End, in the same format."))


def queue_revisits(context: dg.OpExecutionContext, config: RevisitConfig, services: dg.ResourceParam[Services]) -> None:
    """Visit again what was not found in a window, or list it."""
    services.ready()
    window = revisit_window(services, config.source.strip(), config.since, config.until, config.reviewer, config.note)
    source = config.source.strip()
    if not config.dry_run:
        # What the archive holds of then is not to be taken for an answer either.
        services.gate.distrust(source, window)
    missed = revisit(services, window, sources={source}, dry_run=config.dry_run)
    zone = services.settings.zone
    context.log.info(f"{len(missed)} videos {'would be' if config.dry_run else 'are'} visited again")
    rows = [
        {
            "vod_id": item.vod_id,
            page_text("judged at"): local_time(item.judged_at, zone),
            page_text("visited again"): local_time(item.visit_at, zone),
        }
        for item in missed
    ]
    context.add_output_metadata({"dry_run": config.dry_run, "videos": len(missed), "listed": run_table(rows)})


revisit_not_found = person_job(
    queue_revisits,
    name="revisit_not_found",
    manual=page_text("Search again for videos that were not found while a search source wrongly returned no results."),
    writes=page_text(
        "The next visit of the listed videos, and what the archive says of the window. A dry run only lists them."
    ),
    when=page_text("When a search source was broken for hours and answered that nothing was found."),
    examples={
        "": {
            "reviewer": "小王",
            "note": "上午 SearXNG 的引擎全部失效，返回空列表",
            "dry_run": False,
            "source": "searxng",
            "since": "2026-11-20 08:00",
            "until": "2026-11-20 11:30",
        }
    },
    nothing_done=page_text("No video was visited again"),
    tags=PERSON_TAGS,
)


_MEGABYTE = 1_000_000


class PruneConfig(LaunchpadConfig):
    """Whether anything is deleted."""

    dry_run: bool = Field(
        True,
        description=page_text("true: only count what would be deleted; false: delete."),
    )


def delete_answers(context: dg.OpExecutionContext, config: PruneConfig, services: dg.ResourceParam[Services]) -> None:
    """Delete old answers that nothing refers to, or count them."""
    # It needs numpy, which takes a tenth of a second to load and no other run has to wait for.
    from douban_pipeline.douban.upkeep.retention import prune

    services.ready()
    pruned = prune(services, dry_run=config.dry_run, progress=context.log.info)
    with reading(services.engine) as connection:
        stock = archive_figures(connection, services.tables)
    done = "would be deleted" if config.dry_run else "deleted"
    size = pruned.dropped_bytes / _MEGABYTE
    context.log.info(f"{pruned.dropped} of {pruned.looked_at} old answers {done}, {size:.1f} MB; {pruned.kept} kept")
    context.add_output_metadata(
        {
            "dry_run": config.dry_run,
            "before": local_time(pruned.before, services.settings.zone),
            "looked_at": pruned.looked_at,
            "kept": pruned.kept,
            "deleted": pruned.dropped,
            "bytes_freed": pruned.dropped_bytes,
            "seen_again": pruned.seen_again,
            "kept_because": run_table(
                [
                    {page_text("reason", "column"): what, page_text("answers"): count}
                    for what, count in pruned.reasons.items()
                ]
            ),
            "archive": run_table(_stock_rows(stock, services.settings)),
        }
    )


prune_archive = person_job(
    delete_answers,
    name="prune_archive",
    manual=page_text("Delete archived answers older than 170 days to which nothing refers."),
    writes=page_text("Deletes rows of `mac_douban_snapshot`. A dry run only counts them."),
    when=page_text("By itself each week; by hand when the disk is short."),
    examples={"": {"dry_run": False}},
    nothing_done=page_text("The archive was not pruned"),
    tags=tags_of("housekeeping"),
)


class ReparseConfig(LaunchpadConfig):
    """Which answers are read again."""

    source: str = Field(
        "douban", description=page_text("Source of the answers: {parsers}.").format(parsers=", ".join(PARSERS))
    )
    only_older_versions: bool = Field(
        True,
        description=page_text("Only answers that are not marked as parsed by the current version of the parser."),
    )
    limit: Annotated[int, AtLeast(0, page_text("Write 0 for all."))] = Field(
        0,
        description=page_text("Maximum number of answers, oldest first; 0: all."),
    )
    dry_run: bool = Field(
        True,
        description=page_text("true: only count; false: mark the answers that were parsed."),
    )


def reparse_answers(
    context: dg.OpExecutionContext, config: ReparseConfig, services: dg.ResourceParam[Services]
) -> None:
    """Read the archived answers of a source with the present parser, and report how many it refuses."""
    services.ready()
    if config.source not in PARSERS:
        raise ProblemsError(
            [
                page_text("source: must be one of {sources}, not {source!r}").format(
                    sources="、".join(PARSERS), source=config.source
                )
            ]
        )
    found = reparse(
        services,
        config.source,
        only_older_versions=config.only_older_versions,
        limit=config.limit,
        dry_run=config.dry_run,
        progress=lambda done: context.log.info(f"{done} answers read"),
    )
    context.log.info(f"{found.good} of {found.looked_at} answers read by {found.version}, {found.noted} noted")
    context.add_output_metadata(
        {
            "dry_run": config.dry_run,
            "parser_version": found.version,
            "looked_at": found.looked_at,
            "read": found.good,
            "noted": found.noted,
            "outcomes": run_table(_outcome_rows(found)),
            "examples": run_table(_example_rows(found)),
        }
    )


reparse_archive = person_job(
    reparse_answers,
    name="reparse_archive",
    manual=page_text(
        "Parse archived answers with the parsers of this release, and report which ones cannot be parsed."
    ),
    writes=page_text(
        "The parser's version of answers in `mac_douban_snapshot`, nothing else. A dry run writes nothing."
    ),
    when=page_text("After an upgrade that changed how answers are parsed."),
    examples={"": {"source": "douban", "only_older_versions": True, "limit": 0, "dry_run": False}},
    nothing_done=page_text("Nothing was parsed again"),
    tags=PERSON_TAGS,
)


def _stock_rows(stock: list[ArchiveShare], settings: Settings) -> list[dict[str, object]]:
    zone = settings.zone
    return [
        {
            page_text("source"): item.source,
            page_text("status"): f"{item.status_class}xx",
            page_text("answers"): item.answers,
            page_text("MB compressed"): item.bytes / _MEGABYTE,
            page_text("oldest"): local_time(item.oldest, zone),
            page_text("newest"): local_time(item.newest, zone),
        }
        for item in stock
    ]


def _outcome_rows(found: Reparsed) -> list[dict[str, object]]:
    return [
        {page_text("old version"): version, page_text("result"): outcome, page_text("answers"): count}
        for (version, outcome), count in sorted(found.outcomes.items())
    ]


def _example_rows(found: Reparsed) -> list[dict[str, object]]:
    return [
        {
            page_text("result"): outcome,
            page_text("answer's id"): refused.snapshot_id,
            page_text("asked"): refused.request_key,
            page_text("reason", "column"): refused.why,
        }
        for outcome, examples in sorted(found.refused.items())
        for refused in examples
    ]


HISTORY_DAYS = 30
"""Days for which finished runs, closed tasks and ended alerts are kept."""


def prune(context: dg.OpExecutionContext, config: RetentionConfig, services: dg.ResourceParam[Services]) -> None:
    """Delete finished runs, closed tasks, ended alerts and TMDB's facts after their retention periods."""
    services.ready()
    now = services.clock.now()
    before = now - timedelta(days=HISTORY_DAYS)
    sooner = {now - timedelta(days=HEALTH_DAYS): HEALTH_TAGS}
    runs = prune_runs(context, SYSTEM, before=before, dry_run=config.dry_run, sooner=sooner)
    deleted = delete_closed(services.engine, services.tables, before, dry_run=config.dry_run)
    facts = expire(services, dry_run=config.dry_run)
    counts = {"runs": runs, "tasks": deleted.tasks, "alerts": deleted.alerts, "tmdb_facts": facts}
    report_pruned(context, counts, dry_run=config.dry_run)


_PRUNE_HISTORY = page_text(
    """\
Delete Dagster runs with their events, closed tasks and ended alerts older than 30 days.

Dagster itself never deletes its event log (more than 100 KB per run of the chain). Runs of `watch_health`, which
starts every few minutes, are deleted after two days. The latest run of each asset, or of each shard of one, is
kept. Runs of other code locations are not deleted; each location prunes its own. The change log, verdicts and
archived answers are kept: they explain the values in the CMS. Only what TMDB said is taken out of them before six
months are over, as its terms ask; which of its titles was used, and for which kinds of facts, stays.
"""
)

prune_history = prune_job(
    prune,
    name="prune_history",
    manual=_PRUNE_HISTORY,
    writes=page_text(
        "Deletes runs from Dagster's instance, and rows of `mac_douban_task` and `mac_douban_alert`; "
        "empties expired facts of TMDB. A dry run (the default) only counts them."
    ),
    when=page_text("By itself every night; by hand when the disk is short, or `check` asks for it."),
    tags=tags_of("housekeeping"),
)


jobs = [set_gate, revisit_not_found, prune_archive, reparse_archive, prune_history]
