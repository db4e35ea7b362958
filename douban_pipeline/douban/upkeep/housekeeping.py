"""Clearing away what nobody needs any more: finished runs with their events, closed tasks, ended alerts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import dagster as dg
from sqlalchemy import Column, ColumnElement, delete, select

from douban_pipeline.core.database import reading, transactions
from douban_pipeline.dagster_kit.run_history import delete_remains, delete_runs
from douban_pipeline.douban.services import Services

_BATCH = 500
HEALTH_TAGS = {"pipeline": "health"}
HEALTH_DAYS = 2
"""Days that runs are kept which only look at the pipeline's health: one comes every few minutes, and their figures are
kept elsewhere."""


@dataclass(frozen=True, slots=True)
class Cleared:
    """How many runs, tasks and alerts were deleted."""

    runs: int
    tasks: int
    alerts: int


def clear_away(services: Services, instance: dg.DagsterInstance, *, keep_run: str) -> Cleared:
    """Delete finished runs, closed tasks and ended alerts older than the setting `history_days`, but not ``keep_run``.

    Runs that only look at the pipeline's health go after `HEALTH_DAYS`. The run that made an asset, or a partition of
    one, for the last time stays.
    """
    now = services.clock.now()
    before = now - timedelta(days=services.settings.history_days)
    runs = delete_runs(instance, before=before, keep=[keep_run])
    runs += delete_runs(instance, before=now - timedelta(days=HEALTH_DAYS), keep=[keep_run], tags=HEALTH_TAGS)
    delete_remains(instance, before=before)
    task, alert = services.tables.task, services.tables.alert
    closed = (task.c.open_key.is_(None), task.c.finished_at < before)
    ended = (alert.c.open_key.is_(None), alert.c.ended_at < before)
    return Cleared(
        runs, _delete_rows(services, task.c.task_id, closed), _delete_rows(services, alert.c.alert_id, ended)
    )


def _delete_rows(services: Services, key: Column[Any], conditions: Sequence[ColumnElement[bool]]) -> int:
    """Delete the rows that fulfil ``conditions``, some at a time by their ``key``; return how many there were."""
    deleted = 0
    while True:
        with reading(services.engine) as connection:
            old = list(connection.execute(select(key).where(*conditions).limit(_BATCH)).scalars())
        if not old:
            return deleted
        for transaction in transactions(services.engine):
            with transaction as connection:
                connection.execute(delete(key.table).where(key.in_(old)))
        deleted += len(old)


@dg.op
def prune(context: dg.OpExecutionContext, services: dg.ResourceParam[Services]) -> None:
    """Delete finished runs, closed tasks and ended alerts past their days."""
    services.ready()
    report = clear_away(services, context.instance, keep_run=context.run_id)
    context.log.info(f"{report.runs} runs, {report.tasks} tasks and {report.alerts} alerts deleted")
    context.add_output_metadata({"runs": report.runs, "tasks": report.tasks, "alerts": report.alerts})


@dg.job(tags={"pipeline": "housekeeping"})
def prune_history() -> None:
    """Delete Dagster runs with their events, closed tasks and ended alerts older than `DOUBAN_PIPELINE_HISTORY_DAYS`.

    Dagster keeps its event log for ever (more than 100 KB a run of the chain). Runs of `watch_health`, which come every
    few minutes, go after two days; the run that made an asset, or a shard of one, for the last time stays. The change
    log, verdicts and archived answers are not touched: they explain what stands in the CMS.
    """
    prune()
