"""Dagster's processes on the library of a measure: their environment, and a stack in which nothing starts by itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from douban_pipeline.douban.settings import Settings, variable
from douban_pipeline_tests.harness.rig.dagster_stack import LOCATION, REPOSITORY, DagsterStack, Storage

FREE = {
    "douban_requests_per_minute": 60_000,
    "search_requests_per_minute": 60_000,
    "douban_concurrency": 5,
    "search_concurrency": 3,
}
"""Settings under which the gate lets everything through at once."""

_INSTIGATORS = """
    query Instigators($selector: RepositorySelector!) {
      repositoryOrError(repositorySelector: $selector) {
        __typename
        ... on Repository {
          sensors { name sensorState { id status } }
          schedules { name scheduleState { id status } }
        }
      }
    }"""
_STOP_SENSOR = "mutation Stop($id: String!) { stopSensor(id: $id) { __typename } }"
_STOP_SCHEDULE = "mutation Stop($id: String!) { stopRunningSchedule(id: $id) { __typename } }"


def pipeline_environment(settings: Settings, home: Path, **changes: Any) -> dict[str, str]:
    """Return the variables under which another process works with ``settings``, in a home of its own.

    Args:
        settings: What this process works with; only what is no default is handed on.
        home: The other process's `DOUBAN_PIPELINE_HOME`.
        changes: Settings that are to be others there.
    """
    values = {name: getattr(settings, name) for name in settings.model_fields_set} | changes | {"home": home}
    values["database_url"] = SecretStr(settings.library_url)
    return {variable(name): _written(value) for name, value in values.items()}


def _written(value: Any) -> str:
    """Return a setting as it is written into the environment."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ",".join(f"{name}={item}" for name, item in value.items())
    if isinstance(value, (tuple, frozenset)):
        return ",".join(map(str, sorted(value) if isinstance(value, frozenset) else value))
    return str(value)


@contextmanager
def quiet_stack(
    home: Path, environment: Mapping[str, str], *, storage: Storage, changes: Mapping[str, Any] | None = None
) -> Iterator[DagsterStack]:
    """Run a stack whose sensors and schedules are switched off, so that only what is asked for is launched."""
    with DagsterStack(home, environment, storage=storage, changes=changes, daemon=False) as stack:
        stop_instigators(stack)
        try:
            stack.daemon.start()
            yield stack
        finally:
            stack.daemon.stop()


def stop_instigators(stack: DagsterStack, but: Collection[str] = ()) -> None:
    """Switch off every sensor and schedule that runs, as people do in the UI; those named in ``but`` go on."""
    selector = {"repositoryLocationName": LOCATION, "repositoryName": REPOSITORY}
    found = stack.ask(_INSTIGATORS, {"selector": selector})["repositoryOrError"]
    for kind, state, mutation in (
        ("sensors", "sensorState", _STOP_SENSOR),
        ("schedules", "scheduleState", _STOP_SCHEDULE),
    ):
        for item in found[kind]:
            if item[state]["status"] == "RUNNING" and item["name"] not in but:
                stack.ask(mutation, {"id": item[state]["id"]})
