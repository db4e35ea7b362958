"""The code location of TMDB: its jobs on services of a test, and what a run and the store say."""

from __future__ import annotations

from typing import Any

import dagster as dg

from douban_pipeline.tmdb.definitions import build_defs
from douban_pipeline.tmdb.services import TmdbServices
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore


def exchange(path: str, body: dict[str, Any], **query: str) -> dict[str, Any]:
    return {"path": path, "query": query, "status": 200, "body": body}


def run(
    services: TmdbServices, instance: dg.DagsterInstance, job: str, day: str = "", **config: Any
) -> dg.ExecuteInProcessResult:
    defs = build_defs(settings=services.settings, resource_overrides={"services": services})
    ops = {name: {"config": values} for name, values in config.items()}
    partition = {"partition_key": day} if day else {}
    found = defs.get_repository_def().get_job(job)
    return found.execute_in_process(
        instance=instance, raise_on_error=False, run_config={"ops": ops} if ops else {}, **partition
    )


def metadata(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    [event] = result.get_asset_materialization_events()
    return {name: value.value for name, value in event.materialization.metadata.items()}


def execute(store: PostgresTmdbStore, statement: str) -> list[tuple[Any, ...]]:
    with store.transaction() as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []
