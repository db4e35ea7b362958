"""Runs on other hosts: Dagster's Celery launcher, extended to detect a host that died during a run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from celery.result import AsyncResult  # type: ignore[import-untyped]
from dagster import DagsterRun, DagsterRunStatus, Field
from dagster_celery.config import TASK_EXECUTE_JOB_NAME, TASK_RESUME_JOB_NAME
from dagster_celery.launcher import CeleryRunLauncher
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG
from kombu import Queue

from douban_pipeline.dagster_kit.internals import CheckRunHealthResult, ConfigurableClassData, WorkerStatus

MOST_PRIORITY = 10
"""Priorities distinguished by a queue; RabbitMQ needs the number when the queue is created."""


@dataclass(slots=True)
class _Sign:
    """The last heartbeat of a run: its value, and when this process first saw it, by its own clock."""

    sign: object
    seen_at: float


class WatchfulCeleryLauncher(CeleryRunLauncher):
    """Starts each run as one Celery task, and considers a run dead if its worker sends no heartbeats.

    Celery's own launcher relies on the task's last known state, which stays STARTED for ever if the worker's host dies:
    the run would occupy its slot until `max_runtime_seconds`. Our workers (`celery_app`) renew that state every few
    seconds, and this launcher measures the time since it last changed. Clocks of different hosts are never compared.

    Args:
        silent_seconds: A run without a heartbeat for this long is failed.
        default_queue: The queue of a run that names none, on which our workers listen.
        options: Further arguments of `dagster_celery.CeleryRunLauncher`.
    """

    def __init__(
        self,
        *,
        default_queue: str,
        silent_seconds: int = 90,
        inst_data: ConfigurableClassData | None = None,
        **options: Any,
    ) -> None:
        super().__init__(default_queue=default_queue, inst_data=inst_data, **options)
        self.silent_seconds = silent_seconds
        self._signs: dict[str, _Sign] = {}
        # Launcher and workers must declare the queue identically; the original class knows only its own declaration.
        self.celery.conf.task_queues = [
            Queue(default_queue, routing_key=f"{default_queue}.#", queue_arguments={"x-max-priority": MOST_PRIORITY})
        ]
        self.celery.conf.task_routes = {
            name: {"queue": default_queue, "routing_key": f"{default_queue}.{name}"}
            for name in (TASK_EXECUTE_JOB_NAME, TASK_RESUME_JOB_NAME)
        }

    @classmethod
    def config_type(cls) -> Any:
        """Return the schema of `run_launcher.config` in dagster.yaml."""
        seconds = Field(int, is_required=False, default_value=90, description="Seconds without heartbeat.")
        original: Any = super().config_type()
        return {**original, "silent_seconds": seconds}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData, config_value: Mapping[str, Any]
    ) -> WatchfulCeleryLauncher:
        """Return the launcher configured in dagster.yaml."""
        return cls(inst_data=inst_data, **config_value)

    @property
    def supports_resume_run(self) -> bool:
        """Return False: the work of a dead run is continued by the next run, through the task queue."""
        return False

    def terminate(self, run_id: str) -> bool:
        """Interrupt a run, or prevent it from starting; return whether there was anything to interrupt."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished or DAGSTER_CELERY_TASK_ID_TAG not in run.tags:
            return False
        # The original does not do this; without it an interrupted run would end as a failure.
        if run.status is not DagsterRunStatus.CANCELING:
            self._instance.report_run_canceling(run)
        return super().terminate(run_id)

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Report whether a worker is running ``run``, which has started and not ended."""
        task_id = run.tags.get(DAGSTER_CELERY_TASK_ID_TAG)
        if task_id is None:  # a fast worker started before the launcher stored the task's id
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        result: AsyncResult[Any] = self.celery.AsyncResult(task_id)
        state = result.state
        if state == "FAILURE":
            self._signs.pop(run.run_id, None)
            return CheckRunHealthResult(WorkerStatus.FAILED, f"Celery task failed: {result.info!r}")
        return self._by_signs(run.run_id, (state, repr(result.info)))

    def _by_signs(self, run_id: str, sign: object) -> CheckRunHealthResult:
        now = time.monotonic()
        last = self._signs.get(run_id)
        if last is None or last.sign != sign:
            self._signs[run_id] = _Sign(sign, now)
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        silent = now - last.seen_at
        if silent < self.silent_seconds:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        del self._signs[run_id]
        return CheckRunHealthResult(
            WorkerStatus.FAILED, f"no sign of life from its worker for {silent:.0f} s; the last was {sign}"
        )
