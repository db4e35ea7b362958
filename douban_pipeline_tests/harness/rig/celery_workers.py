"""Celery workers of a `DagsterStack`, each a process as on a host of its own, and the broker between them."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import uuid
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import yaml
from celery import Celery  # type: ignore[import-untyped]
from sqlalchemy import make_url

from douban_pipeline_tests.harness.rig.dagster_stack import PROJECT, START_SECONDS
from douban_pipeline_tests.harness.rig.processes import Process, RigError

REDIS = ("DOUBAN_TEST_REDIS_URL", "redis://127.0.0.1:6379/9")
RABBITMQ = ("DOUBAN_TEST_RABBITMQ_URL", "amqp://guest:guest@127.0.0.1:5672//")
"""Variables that name a broker, and what they default to. Of Redis a database that nobody else uses."""

CONFIGURATION = PROJECT / "deploy" / "celery" / "dagster.yaml"
_RECEIVED = re.compile(r"Task execute_job\[([^\]]+)\] received")
_ALONE = ("--without-gossip", "--without-mingle")
_PORTS = {"redis": 6379, "amqp": 5672}


def broker_url(broker: tuple[str, str]) -> str:
    """Return the address of a broker (`REDIS`, `RABBITMQ`), as the environment has it.

    Raises:
        RigError: It does not answer; the message names the variable.
    """
    variable, default = broker
    address = os.environ.get(variable) or default
    url = make_url(address)
    try:
        port = url.port or _PORTS[url.drivername]
        socket.create_connection((url.host or "127.0.0.1", port), timeout=2).close()
    except (OSError, KeyError) as error:
        shown = url.render_as_string(hide_password=True)
        raise RigError(f"{shown} does not answer ({error!r}); {variable} names another broker") from error
    return address


class Host(Protocol):
    """What a worker needs to know of the instance: a `DagsterStack`, or less."""

    @property
    def home(self) -> Path:
        """Its `DAGSTER_HOME`."""

    @property
    def environment(self) -> Mapping[str, str]:
        """All of a process's environment."""


class CeleryWorkers:
    """Workers on a queue of their own; give `changes` and `environment` to the stack, then start it, then them."""

    def __init__(
        self,
        broker: str,
        backend: str = "",
        *,
        silent_seconds: int = 90,
        monitoring: Mapping[str, Any] | None = None,
        concurrency: Mapping[str, Any] | None = None,
    ) -> None:
        self.queue = f"douban_rig_{uuid.uuid4().hex[:8]}"
        self.environment = {"DAGSTER_CELERY_BROKER": broker, "DAGSTER_CELERY_BACKEND": backend or broker}
        written = yaml.safe_load(CONFIGURATION.read_text())
        launcher, own = written["run_launcher"], {"default_queue": self.queue, "silent_seconds": silent_seconds}
        launcher["config"] |= own
        launcher["config"]["config_source"]["result_expires"] = 600
        self.changes: dict[str, Any] = {
            "run_launcher": launcher,
            "run_monitoring": {**written["run_monitoring"], **(monitoring or {})},
            "concurrency": {**written["concurrency"], **(concurrency or {})},
        }
        self.workers: dict[str, Process] = {}
        self.logs: dict[str, Path] = {}

    def start(self, host: Host, *names: str, slots: int = 1) -> None:
        """Start workers that each take on ``slots`` runs at a time; return once all listen at the queue.

        Raises:
            RigError: One did not start.
        """
        for name in names:
            self.logs[name] = host.home / "output" / f"{name}.log"
            command = [sys.executable, "-m", "celery", "-A", "douban_pipeline.ops.celery_app", "worker"]
            self.workers[name] = Process(
                name,
                [*command, "-n", f"{name}@{self.queue}", "-c", str(slots), *_ALONE, "--loglevel", "INFO"],
                log=self.logs[name],
                environment=host.environment,
                directory=host.home,
            ).start()
        for name in names:
            self.workers[name].wait_until(partial(self._listens, name), seconds=START_SECONDS)

    def _listens(self, name: str) -> bool:
        return f"{name}@{self.queue} ready." in self.logs[name].read_text(errors="replace")

    def tasks_of(self, name: str) -> list[str]:
        """Return the ids of the tasks that a worker took on, in that order."""
        return _RECEIVED.findall(self.logs[name].read_text(errors="replace"))

    def stop(self) -> None:
        """Let the workers end what they are at, and take the queue away; safe to repeat."""
        for process in self.workers.values():
            if process.alive:
                os.kill(process.pid, signal.SIGTERM)
        for process in self.workers.values():
            process.stop()
        if self.workers:
            self.workers.clear()
            self._drop_queue()

    def _drop_queue(self) -> None:
        with Celery(broker=self.environment["DAGSTER_CELERY_BROKER"]).connection_for_write() as connection:
            channel = connection.default_channel
            channel.queue_delete(self.queue)
            redis = getattr(channel, "client", None)
            if redis is not None:  # kombu leaves behind where the queue hung
                redis.delete(f"_kombu.binding.{self.queue}", f"_kombu.binding_permanent.{self.queue}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Stop them."""
        self.stop()
