"""The demo of Douban's system: the whole chain over all shards through Dagster, and its result."""

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import stamina
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sqlalchemy import func, select

from douban_pipeline.core.database import reading
from douban_pipeline.core.language import terminal_language, terminal_text
from douban_pipeline.core.terminal_table import Table
from douban_pipeline.dagster_kit.in_process import run_job
from douban_pipeline.demo.outcomes import DemoOutcome
from douban_pipeline.demo.sample import load_subjects
from douban_pipeline.demo.setup import apply_states, demo_environment, make_library
from douban_pipeline.demo.stand_ins.replay import ReplayServer
from douban_pipeline.douban.chain.due.shard_work import ShardWork
from douban_pipeline.douban.definitions import build_defs
from douban_pipeline.douban.jobs import CHAIN, SYNC_TAGS, shard_range_tags
from douban_pipeline.douban.partitions import SHARDS_PER_RUN, partition_key
from douban_pipeline.douban.services import Services, open_services
from douban_pipeline.douban.settings import Settings, load_settings
from douban_pipeline.douban.store.shown_status import shown_status_column
from douban_pipeline.douban.store.states import ChangeState
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline.douban.wording import REVIEW_STATUSES, word_for


@dataclass(slots=True)
class DemoResult:
    """Result of the demo's runs."""

    run_ids: list[str] = field(default_factory=list)
    failed_runs: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    guards: dict[str, list[bool]] = field(default_factory=dict)


def run_douban(home: Path, instance: dg.DagsterInstance, console: Console) -> DemoOutcome:
    """Register the library's videos and run the chain over all shards; return the result.

    Args:
        home: The demo's folder.
        instance: Dagster's instance.
        console: Where to print.
    """
    stamina.instrumentation.set_on_retry_hooks([])  # the sample's failing subjects are expected
    with ReplayServer(load_subjects()) as upstream:
        os.environ.update(
            demo_environment(
                home, douban_url=upstream.douban_url, search_url=upstream.search_url, llm_url=upstream.llm_url
            )
        )
        settings = load_settings()
        services = open_services(settings)
        console.print(terminal_text("library    {url}").format(url=settings.shown_library_url), soft_wrap=True)
        console.print(terminal_text("upstream   {url} (bundled replay, this machine only)").format(url=upstream.base))
        make_library(services)
        done = _run_all(settings, services, instance, console)
        _print_result(services, done, console)
        services.close()
    counts = done.counts
    judged = counts["scored_matches.confirmed"] + counts["scored_matches.review"] + counts["scored_matches.not_found"]
    written = counts["synced_fields.written"]
    well = not done.failed_runs and all(all(passed) for passed in done.guards.values())
    failed = counts["search_candidates.failed"] + counts["synced_fields.failed"]
    due, intros = counts["due_videos.due"], counts["ai_intros.written"]
    result = terminal_text("{due} visits, {judged} judged, {written} written, {intros} intros").format(
        due=due, judged=judged, written=written, intros=intros
    )
    result += terminal_text(", {count} to be tried again").format(count=failed) if failed else ""
    return DemoOutcome(well, result if due else terminal_text("nothing was due"))


def _run_all(settings: Settings, services: Services, instance: dg.DagsterInstance, console: Console) -> DemoResult:
    repository = build_defs(settings=settings).get_repository_def()
    done = DemoResult()
    columns = (TextColumn("{task.description:<34}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        steps = SHARDS // SHARDS_PER_RUN
        bar = progress.add_task(terminal_text("taking in the library"), total=steps + 2)
        ops = {"initialise": {"config": {"dry_run": False, "spread": False}}}
        _run(repository, instance, done, "initialise_library", ops=ops)
        apply_states(services)
        progress.advance(bar)
        work = ShardWork(services.engine, services.tables, settings, services.clock)
        waiting = {due.shard for due in work.overview()}
        for first in range(0, SHARDS, SHARDS_PER_RUN):
            last = first + SHARDS_PER_RUN - 1
            if waiting.isdisjoint(range(first, last + 1)):
                progress.advance(bar)
                continue
            these = terminal_text("shards {first}-{last} of {count}").format(
                first=partition_key(first), last=partition_key(last), count=SHARDS
            )
            progress.update(bar, description=these)
            if not console.is_terminal:
                console.print(these)
            _run(repository, instance, done, CHAIN, shards=(first, last))
            progress.advance(bar)
        # Videos whose id does not fit become due for a match as soon as this is detected; they fit into one run.
        if work.overview():
            progress.update(bar, description=terminal_text("what became due meanwhile"))
            _run(repository, instance, done, CHAIN, shards=(0, SHARDS - 1))
        progress.update(bar, description=terminal_text("reports"))
        _run(repository, instance, done, "nightly_reports")
        progress.update(bar, advance=1, description=terminal_text("done"))
    return done


def _run(
    repository: dg.RepositoryDefinition,
    instance: dg.DagsterInstance,
    done: DemoResult,
    job: str,
    *,
    ops: Mapping[str, Any] | None = None,
    shards: tuple[int, int] | None = None,
) -> None:
    tags = {**SYNC_TAGS, **shard_range_tags(*shards)} if shards is not None else None
    result = run_job(repository, instance, job, ops=ops, tags=tags)
    done.run_ids.append(result.run_id)
    if not result.success:
        done.failed_runs.append(f"{job} {result.run_id}")
    for event in result.all_events:
        if event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            evaluation = event.asset_check_evaluation_data
            guard = f"{evaluation.asset_key.to_user_string()}: {evaluation.check_name}"
            done.guards.setdefault(guard, []).append(evaluation.passed)
        elif event.is_step_materialization:
            _count(done.counts, event)


def _count(counts: Counter[str], event: dg.DagsterEvent) -> None:
    materialization = event.step_materialization_data.materialization
    for name, value in materialization.metadata.items():
        if isinstance(value, dg.IntMetadataValue) and value.value is not None:
            counts[f"{materialization.asset_key.to_user_string()}.{name}"] += value.value


def _print_result(services: Services, done: DemoResult, console: Console) -> None:
    counts = done.counts
    result = Table(title=terminal_text("This run"), title_justify="left", show_header=False)
    for label, value in (
        (terminal_text("due"), counts["due_videos.due"]),
        (terminal_text("confirmed by this run"), counts["scored_matches.confirmed"]),
        (terminal_text("sent to review"), counts["scored_matches.review"] + counts["synced_fields.sent_to_review"]),
        (terminal_text("not found"), counts["scored_matches.not_found"]),
        (
            terminal_text("synced (written or up to date)"),
            counts["synced_fields.written"] + counts["synced_fields.unchanged"],
        ),
        (
            terminal_text("failed, to be tried again"),
            counts["search_candidates.failed"] + counts["synced_fields.failed"],
        ),
        (
            terminal_text("deferred by a failing source"),
            counts["search_candidates.deferred"] + counts["synced_fields.deferred"],
        ),
        (terminal_text("intros written"), counts["ai_intros.written"]),
        (terminal_text("requests to find candidates"), counts["search_candidates.requests"]),
    ):
        result.add_row(label, str(value))
    console.print(result)
    console.print(_library_table(services))
    console.print(_guard_table(done))
    written = _written_table(services, done)
    if written.row_count:
        console.print(written)
    for run in done.failed_runs:
        console.print(f"[red]{terminal_text('failed run:')}[/red] {run}")


def _library_table(services: Services) -> Table:
    video = services.tables.video
    status = shown_status_column(video)
    heads = (
        terminal_text("status"),
        terminal_text("videos"),
        terminal_text("locked id"),
        terminal_text("with Douban id"),
    )
    table = Table(*heads, title=terminal_text("The library now"), title_justify="left")
    query = (
        select(
            status,
            func.count(),
            func.count().filter(video.c.douban_id_locked),
            func.count().filter(video.c.vod_douban_id > 0),
        )
        .group_by(status)
        .order_by(func.count().desc())
    )
    with reading(services.engine) as connection:
        for shown, *numbers in connection.execute(query):
            table.add_row(
                word_for(REVIEW_STATUSES, shown) if terminal_language() == "zh" else shown,
                *(str(number) for number in numbers),
            )
    return table


def _guard_table(done: DemoResult) -> Table:
    table = Table(
        terminal_text("guard"),
        terminal_text("passed"),
        terminal_text("failed", "demo"),
        title=terminal_text("Guards"),
        title_justify="left",
    )
    for guard, passed in sorted(done.guards.items()):
        failed = len(passed) - sum(passed)
        table.add_row(guard, str(sum(passed)), f"[red]{failed}[/red]" if failed else "0")
    return table


def _written_table(services: Services, done: DemoResult) -> Table:
    log = services.tables.log
    columns: Counter[str] = Counter()
    changes = 0
    with reading(services.engine) as connection:
        query = select(log.c.new_values).where(log.c.run_id.in_(done.run_ids), log.c.state == ChangeState.APPLIED)
        for values in connection.execute(query).scalars():
            changes += 1
            columns.update(values.keys())
    table = Table(
        terminal_text("column of mac_vod"),
        terminal_text("changes"),
        title=terminal_text("Written"),
        title_justify="left",
    )
    table.caption = terminal_text("{count} logged changes").format(count=changes)
    for column, count in columns.most_common():
        table.add_row(column, str(count))
    return table
