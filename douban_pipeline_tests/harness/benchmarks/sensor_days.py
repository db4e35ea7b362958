"""Days of sensors in minutes: the daemon's own loop over the real sensors, on a clock that is moved on."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import dagster as dg
from dagster._core.remote_representation.code_location import CodeLocation
from dagster._core.storage.schedules.sql_schedule_storage import SqlScheduleStorage
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster._daemon.sensor import execute_sensor_iteration

from douban_pipeline.dagster_kit.resources import keep_connections
from douban_pipeline_tests.harness.rig.dagster_stack import LOCATION, DagsterStack
from douban_pipeline_tests.harness.rig.processes import RigError

ASKED_ANEW = timedelta(hours=1)
"""How often the code server evaluates a sensor; in between the daemon is given its last answer."""


class _Clock:
    """What Dagster's daemon takes for the time."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def moment(self) -> datetime:
        return self.now

    def timestamp(self) -> float:
        return self.now.timestamp()


class _Remembered:
    """The evaluations of a code location, each asked for again when the last one is old."""

    def __init__(self, location: CodeLocation, clock: _Clock) -> None:
        self._evaluate, self._clock = location.get_sensor_execution_data, clock
        self._answers: dict[str, tuple[datetime, Any]] = {}

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        name = str(named.get("name") or arguments[2])
        kept = self._answers.get(name)
        if kept is None or self._clock.now - kept[0] >= ASKED_ANEW:
            kept = self._answers[name] = (self._clock.now, self._evaluate(*arguments, **named))
        return kept[1]


def let_sensors_look(stack: DagsterStack, instance: dg.DagsterInstance, moments: Iterable[datetime]) -> int:
    """Let the sensor daemon look at the running stack's sensors at each of ``moments``; return how often it did.

    Everything is the daemon's own: which sensor is due, its tick, its cursor, its runs, and what is purged. Only the
    code server is not asked at every look (`ASKED_ANEW`), nor the storage which tables it has.
    """
    target = WorkspaceFileTarget([str(stack.home / "workspace.yaml")])
    clock, looks = _Clock(), 0
    logger = logging.getLogger("douban_pipeline_tests.harness.benchmarks.sensor_days")
    with WorkspaceProcessContext(instance, target) as workspace:
        location = workspace.create_request_context().get_code_location(LOCATION)
        remembered = mock.patch.object(location, "get_sensor_execution_data", _Remembered(location, clock))
        with _moved(clock), _hurried(instance), remembered:
            for clock.now in moments:
                for _ in execute_sensor_iteration(workspace, logger, None, None):
                    pass
                looks += 1
    return looks


@contextmanager
def _hurried(instance: dg.DagsterInstance) -> Iterator[None]:
    """Spare a week in minutes what takes most of a look: a connection for every statement, and a look at the schema."""
    keep_connections(instance)
    storage = instance.schedule_storage
    if not isinstance(storage, SqlScheduleStorage) or not storage.has_instigators_table():
        raise RigError("sensors can only be hurried on SQLite or PostgreSQL, with Dagster's newest tables")
    with (
        mock.patch.object(storage, "_has_instigators_table", return_value=True),
        mock.patch.object(storage, "has_secondary_index_table", return_value=storage.has_secondary_index_table()),
    ):
        yield


@contextmanager
def _moved(clock: _Clock) -> Iterator[None]:
    """Have Dagster take its time from ``clock``, where its own tests have it frozen."""
    with (
        mock.patch("dagster._time._mockable_get_current_datetime", new=clock.moment),
        mock.patch("dagster._time._mockable_get_current_timestamp", new=clock.timestamp),
    ):
        yield
