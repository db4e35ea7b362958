"""Builds a worker host's Celery app; the app itself is `douban_pipeline.ops.celery_app`.

Broker, backend, queue and all other options come from the `run_launcher` of ``$DAGSTER_HOME/dagster.yaml``, which the
daemon uses as well; `dagster_celery.app` would ignore that file.
"""

from __future__ import annotations

import importlib
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Any

from celery import Celery  # type: ignore[import-untyped]
from celery.signals import task_postrun, task_prerun, worker_init  # type: ignore[import-untyped]
from dagster_celery.tasks import create_execute_job_task, create_resume_job_task

from douban_pipeline.dagster_kit.celery_launcher import WatchfulCeleryLauncher
from douban_pipeline.dagster_kit.internals import InstanceRef
from douban_pipeline.dagster_kit.worker_host import WorkerHostError

BEAT_SECONDS = 15.0
"""Interval of a run's heartbeats, in seconds; well below the launcher's `silent_seconds`."""

logger = logging.getLogger(__name__)


def build_app(dagster_home: str, *, check_host: Callable[[], Iterable[str]], preload: Iterable[str]) -> Celery:
    """Return the Celery app for the instance in ``dagster_home``.

    Args:
        dagster_home: Folder of the instance's dagster.yaml.
        check_host: Called when a worker starts; returns warnings for the log, and raises `WorkerHostError`, which stops
            the worker, if this host would do harm.
        preload: Modules imported by a worker after the check: each run is a fork of it and shares the loaded modules.

    Raises:
        WorkerHostError: Its dagster.yaml does not launch runs by Celery.
    """
    launcher = InstanceRef.from_dir(dagster_home).run_launcher if dagster_home else None
    if not isinstance(launcher, WatchfulCeleryLauncher):
        raise WorkerHostError(
            f"DAGSTER_HOME is {dagster_home or 'not set'}, and its dagster.yaml must launch runs by Celery: "
            "take deploy/celery/dagster.yaml, the same file on every host"
        )
    create_execute_job_task(launcher.celery)
    create_resume_job_task(launcher.celery)

    def begin(**_: Any) -> None:
        try:
            for warning in check_host():
                logger.warning(warning)
        except WorkerHostError as error:
            raise SystemExit(f"This host cannot work: {error}") from None
        for module in preload:
            importlib.import_module(module)

    worker_init.connect(begin, weak=False)  # nothing else keeps a reference to it
    return launcher.celery


class Beat:
    """Heartbeat of a task: renews its state while its process lives, so that the launcher sees it is alive.

    Args:
        task: The running task.
        task_id: Its id.
        seconds: Interval of the heartbeats.
    """

    def __init__(self, task: Any, task_id: str, seconds: float = BEAT_SECONDS) -> None:
        self._task, self._task_id, self._seconds = task, task_id, seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="beat", daemon=True)

    def start(self) -> None:
        """Start the heartbeat."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the heartbeat; a last one may still be in transit."""
        self._ended.set()

    def _renew(self) -> None:
        beats = 0
        while not self._ended.wait(self._seconds):
            beats += 1
            sign = {"pid": os.getpid(), "hostname": socket.gethostname(), "beat": beats}
            try:
                self._task.backend.store_result(self._task_id, sign, "STARTED")
            except Exception:  # any error of the backend's client: the next heartbeat may succeed
                logger.exception("could not send a heartbeat")


_beats: dict[str, Beat] = {}


@task_prerun.connect
def _begin_beat(task_id: str, task: Any, **_: Any) -> None:
    _beats[task_id] = Beat(task, task_id)
    _beats[task_id].start()


@task_postrun.connect
def _end_beat(task_id: str, **_: Any) -> None:
    beat = _beats.pop(task_id, None)
    if beat is not None:
        beat.stop()
