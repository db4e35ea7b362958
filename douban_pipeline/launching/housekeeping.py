"""Clearing away what nobody needs any more: finished runs with their events, and closed tasks."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import dagster as dg
from sqlalchemy import delete, select

from douban_pipeline.catalog.database import reading, transactions
from douban_pipeline.services import Services

_FINISHED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
_BATCH = 500
HEALTH_TAGS = {"pipeline": "health"}
HEALTH_DAYS = 2
"""Days that runs are kept which only look at the pipeline's health: one comes every few minutes, and their figures are
kept elsewhere."""


@dataclass(frozen=True, slots=True)
class Cleared:
    """How many runs and tasks were deleted."""

    runs: int
    tasks: int


def clear_away(services: Services, instance: dg.DagsterInstance, *, keep_run: str) -> Cleared:
    """Delete finished runs and closed tasks older than the setting `history_days`, except run ``keep_run``.

    Runs that only look at the pipeline's health go after `HEALTH_DAYS`.
    """
    now = services.clock.now()
    before = now - timedelta(days=services.settings.history_days)
    runs = _delete_runs(instance, dg.RunsFilter(statuses=_FINISHED, updated_before=before), keep_run)
    brief = dg.RunsFilter(statuses=_FINISHED, tags=HEALTH_TAGS, updated_before=now - timedelta(days=HEALTH_DAYS))
    runs += _delete_runs(instance, brief, keep_run)
    return Cleared(runs, _delete_tasks(services, before))


def _delete_runs(instance: dg.DagsterInstance, finished: dg.RunsFilter, keep_run: str) -> int:
    deleted = 0
    while found := instance.get_runs(filters=finished, limit=_BATCH):
        old = [run.run_id for run in found if run.run_id != keep_run]
        if not old:
            break
        for run_id in old:
            instance.delete_run(run_id)
        deleted += len(old)
    return deleted


def _delete_tasks(services: Services, before: datetime) -> int:
    task = services.tables.task
    deleted = 0
    while True:
        with reading(services.engine) as connection:
            query = select(task.c.task_id).where(task.c.open_key.is_(None), task.c.finished_at < before).limit(_BATCH)
            old = list(connection.execute(query).scalars())
        if not old:
            return deleted
        for transaction in transactions(services.engine):
            with transaction as connection:
                connection.execute(delete(task).where(task.c.task_id.in_(old)))
        deleted += len(old)


@dg.op
def prune(context: dg.OpExecutionContext, services: dg.ResourceParam[Services]) -> None:
    """Delete finished runs and closed tasks past their days."""
    services.ready()
    report = clear_away(services, context.instance, keep_run=context.run_id)
    context.log.info(f"{report.runs} runs and {report.tasks} tasks deleted")
    context.add_output_metadata({"runs": report.runs, "tasks": report.tasks})


@dg.job(tags={"pipeline": "housekeeping"})
def prune_history() -> None:
    """Delete Dagster runs with their events, and closed tasks, older than `DOUBAN_PIPELINE_HISTORY_DAYS`.

    Dagster keeps its event log for ever (about 80 KB a run). Runs of `watch_health`, which come every few minutes, go
    after two days. The change log, verdicts and archived answers are not touched: they explain what stands in the CMS.
    """
    prune()
