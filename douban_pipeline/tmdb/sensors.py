"""The sensor that launches writes to the graph: one indexed query; its skip reasons state why nothing runs."""

import dagster as dg

from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.labels import owners
from douban_pipeline.dagster_kit.runs import PAUSE, JobRuns, code_location_of_sensor, pause_after_failures
from douban_pipeline.tmdb.jobs import graph_job
from douban_pipeline.tmdb.resources import tags_of
from douban_pipeline.tmdb.services import open_services
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store import outbox

INTERVAL_SECONDS = 30


def sensors_for(settings: TmdbSettings) -> list[dg.SensorDefinition]:
    """Return the sensors."""

    @dg.sensor(
        name="outbox_backlog",
        job=graph_job,
        minimum_interval_seconds=INTERVAL_SECONDS,
        owners=owners(),
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=page_text("Launches sync_tmdb_graph when changes wait for the graph; one run at a time."),
    )
    def outbox_backlog(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        for name in ("database_url", "graph_uri"):
            if not getattr(settings, name):
                variable = settings.variable(name)
                return dg.SkipReason(page_text("{variable} names no server").format(variable=variable))
        services = open_services(settings)
        try:
            services.ready()
            due = services.store.run(outbox.due)
            now = services.now()
        except DatabaseError as error:
            return dg.SkipReason(str(error))
        finally:
            services.close()
        if not due:
            return dg.SkipReason(page_text("no change waits for the graph"))
        runs = JobRuns(context.instance, code_location_of_sensor(context), graph_job.name)
        if runs.under_way():
            return dg.SkipReason(
                page_text("{due} changes wait; a run is in progress; the next tick checks again").format(due=due)
            )
        if until := pause_after_failures([ended for _, ended in runs.failed_since(now - PAUSE)], now):
            return dg.SkipReason(
                page_text("{due} changes wait, but runs failed: paused until {until:%H:%M} UTC").format(
                    due=due, until=until
                )
            )
        return dg.RunRequest(tags={**tags_of("tmdb_graph"), "tmdb/due": str(due)})

    return [outbox_backlog]
