"""A long history of runs in little time: a real run, copied within Dagster's storage under other ids and times."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.storage.event_log.schema import (
    AssetCheckExecutionsTable,
    AssetEventTagsTable,
    SqlEventLogStorageTable,
)
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.runs.schema import RunsTable, RunTagsTable
from dagster._core.storage.runs.sql_run_storage import SqlRunStorage
from sqlalchemy import Connection, Table, func, insert, select, update

from douban_pipeline_tests.harness.rig.processes import RigError

_WRITTEN_AT = {
    RunsTable: ("create_timestamp", "update_timestamp"),
    SqlEventLogStorageTable: ("timestamp",),
    AssetEventTagsTable: ("event_timestamp",),
    AssetCheckExecutionsTable: ("create_timestamp", "evaluation_event_timestamp"),
}


def clone_runs(instance: dg.DagsterInstance, run_id: str, moments: Iterable[datetime]) -> list[str]:
    """Copy a finished run once for each of ``moments``, with all that Dagster keeps of it; return the new ids.

    The copies differ in their id and in when they were; what tells of times within an event stays.

    Raises:
        RigError: Dagster's storage is not SQLite or PostgreSQL.
    """
    runs, events = instance.run_storage, instance.event_log_storage
    if not isinstance(runs, SqlRunStorage) or not isinstance(events, SqlEventLogStorage):
        raise RigError("runs can only be copied in SQLite or PostgreSQL")
    captured = Path(instance.storage_directory()) / run_id
    with runs.connect() as connection:
        run_rows, tag_rows = _rows(connection, RunsTable, run_id), _rows(connection, RunTagsTable, run_id)
    with events.index_connection() as connection:
        event_rows = _rows(connection, SqlEventLogStorageTable, run_id)
        check_rows = _rows(connection, AssetCheckExecutionsTable, run_id)
        event_ids = [row["id"] for row in event_rows]
        query = select(AssetEventTagsTable).where(AssetEventTagsTable.c.event_id.in_(event_ids))
        event_tags = [dict(row) for row in connection.execute(query).mappings()]
    made: list[str] = []
    for moment in moments:
        clone = str(uuid.uuid4())
        changed = _Copy(run_id, clone, moment.astimezone(UTC))
        with runs.connect() as connection:
            connection.execute(insert(RunsTable), changed.rows(RunsTable, run_rows))
            if tag_rows:
                connection.execute(insert(RunTagsTable), changed.rows(RunTagsTable, tag_rows))
        with events.index_connection() as connection:
            new_ids = _insert_events(connection, changed.rows(SqlEventLogStorageTable, event_rows))
            ids = dict(zip(event_ids, new_ids, strict=True))
            if event_tags:
                tags = changed.rows(AssetEventTagsTable, event_tags)
                connection.execute(
                    insert(AssetEventTagsTable), [{**row, "event_id": ids[row["event_id"]]} for row in tags]
                )
            if check_rows:
                connection.execute(
                    insert(AssetCheckExecutionsTable), changed.rows(AssetCheckExecutionsTable, check_rows)
                )
        if isinstance(events, SqliteEventLogStorage):
            _copy_shard(events, run_id, clone)
        if captured.is_dir():
            shutil.copytree(captured, captured.with_name(clone))
        made.append(clone)
    return made


class _Copy:
    """How rows of one run become rows of another."""

    def __init__(self, run_id: str, clone: str, moment: datetime) -> None:
        self.run_id, self.clone, self.moment = run_id, clone, moment

    def rows(self, table: Table, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        stamps: dict[str, Any] = dict.fromkeys(_WRITTEN_AT.get(table, ()), self.moment.replace(tzinfo=None))
        if table is RunsTable:
            stamps |= dict.fromkeys(("start_time", "end_time"), self.moment.timestamp())
        return [
            {
                name: value.replace(self.run_id, self.clone) if isinstance(value, str) else value
                for name, value in {**row, **stamps}.items()
                if name != "id"
            }
            for row in rows
        ]


def _rows(connection: Connection, table: Table, run_id: str) -> list[dict[str, Any]]:
    query = select(table).where(table.c.run_id == run_id).order_by(table.c.id)
    return [dict(row) for row in connection.execute(query).mappings()]


def _insert_events(connection: Connection, rows: list[dict[str, Any]]) -> list[int]:
    if not rows:
        return []
    table = SqlEventLogStorageTable
    statement = insert(table).returning(table.c.id, sort_by_parameter_order=True)
    return list(connection.execute(statement, rows).scalars())


def _copy_shard(storage: SqliteEventLogStorage, run_id: str, clone: str) -> None:
    table = SqlEventLogStorageTable
    shutil.copyfile(storage.path_for_shard(run_id), storage.path_for_shard(clone))
    with storage.run_connection(clone) as connection:
        connection.execute(update(table).values(run_id=clone, event=func.replace(table.c.event, run_id, clone)))
