"""Schedules of the TMDB system. All days are UTC, like TMDB's."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import dagster as dg

from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.labels import owners
from douban_pipeline.dagster_kit.run_retention import pruning
from douban_pipeline.tmdb.assets import CHANGES, STATS
from douban_pipeline.tmdb.jobs import (
    changes_job,
    check_job,
    entities_job,
    matches_job,
    stats_job,
    tmdb_retention,
    translations_job,
    vacuum_tmdb,
)
from douban_pipeline.tmdb.resources import tags_of
from douban_pipeline.tmdb.settings import TmdbSettings

CATCH_UP = timedelta(days=14)
"""How far back missed days are made up for: TMDB reports the changes of the last 14 days, by their documentation."""

_CLOCK: list[tuple[str, Any, str, Callable[[], str]]] = [
    (
        "hourly_tmdb_entities",
        entities_job,
        "15 * * * *",
        lambda: page_text("Fetches due entities, and checks the store.", "tmdb"),
    ),
    (
        "hourly_tmdb_matches",
        matches_job,
        "45 * * * *",
        lambda: page_text("Searches TMDB's titles for new videos."),
    ),
    (
        "daily_tmdb_translations",
        translations_job,
        "45 3 * * *",
        lambda: page_text("Stores translations in their tables.", "tmdb"),
    ),
    (
        "nightly_tmdb_retention",
        tmdb_retention,
        "20 4 * * *",
        lambda: page_text("Deletes expired data."),
    ),
    (
        "weekly_tmdb_vacuum",
        vacuum_tmdb,
        "40 4 * * 0",
        lambda: page_text("Runs VACUUM in PostgreSQL."),
    ),
    (
        "daily_tmdb_look",
        check_job,
        "5 6 * * *",
        lambda: page_text("Checks store and graph every day."),
    ),
]


def schedules_for(settings: TmdbSettings) -> list[dg.ScheduleDefinition]:
    """Return the schedules; if no PostgreSQL server is configured, they are stopped by default."""
    named = bool(settings.database_url.get_secret_value())
    status = dg.DefaultScheduleStatus.RUNNING if named else dg.DefaultScheduleStatus.STOPPED
    changes = page_text("Fetches the list of entities that TMDB changed yesterday.")
    counts = page_text("Counts yesterday's questions.")
    return [
        _of_yesterday("daily_tmdb_changes", changes_job, CHANGES, "30 1 * * *", "tmdb_changes", changes, status),
        _of_yesterday("daily_tmdb_stats", stats_job, STATS, "10 0 * * *", "tmdb_stats", counts, status),
        *(
            dg.ScheduleDefinition(
                name=name,
                job=job,
                cron_schedule=cron,
                run_config=pruning("delete_outdated") if job is tmdb_retention else None,
                owners=owners(),
                default_status=status,
                description=description(),
            )
            for name, job, cron, description in _CLOCK
        ),
    ]


def _of_yesterday(
    name: str, job: Any, asset: str, cron: str, kind: str, description: str, status: dg.DefaultScheduleStatus
) -> dg.ScheduleDefinition:
    """Return a schedule that launches the partition of the day before its tick, and those missed within `CATCH_UP`.

    A day is missed if its run failed, or if nothing ran then: Dagster itself repeats only the last missed tick. Days
    before the first one in the asset's history are not launched.
    """

    @dg.schedule(
        name=name,
        job=job,
        cron_schedule=cron,
        execution_timezone="UTC",
        owners=owners(),
        default_status=status,
        description=description,
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest]:
        tick = context.scheduled_execution_time
        known = context.instance.get_materialized_partitions(dg.AssetKey(asset))
        first = min(known, default=f"{tick:%F}")
        for days in range(CATCH_UP.days, 0, -1):
            day = f"{tick - timedelta(days=days):%F}"
            if days == 1:
                yield dg.RunRequest(run_key=day, partition_key=day, tags=tags_of(kind))
            elif day > first and day not in known:
                yield dg.RunRequest(run_key=f"{day}, again on {tick:%F}", partition_key=day, tags=tags_of(kind))

    return schedule
