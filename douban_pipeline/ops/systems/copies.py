"""Backs up and restores the tables of any system of the registry as rows, from any database into any database.

File format: gzip; the header of `ops.backup`; one line of JSON per table (``["table", name, columns]``) and per row
(the values); a last line that marks it as complete.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from alembic import command
from sqlalchemy import (
    Connection,
    Engine,
    Integer,
    MetaData,
    Table,
    Text,
    cast,
    delete,
    func,
    insert,
    inspect,
    select,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.schema import DropTable
from sqlalchemy.types import UserDefinedType

from douban_pipeline import __version__
from douban_pipeline.core.database import reading
from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.core.ui.language import said
from douban_pipeline.ops.backup import BackupHeader, backup_stream, lines_of, verify_backup, whole_file
from douban_pipeline.ops.client_programs import OperatingError
from douban_pipeline.ops.systems.registry import Installed

ENDING = "jsonl"
_AT_ONCE = 500
_KINDS: dict[str, tuple[type, Callable[[str], Any]]] = {
    "moment": (datetime, datetime.fromisoformat),
    "day": (date, date.fromisoformat),
    "number": (Decimal, Decimal),
    "uuid": (UUID, UUID),
}
"""Types that JSON lacks, by their name in a line, with their parser. A datetime is also a date, so it comes first."""


@dataclass(frozen=True, slots=True)
class SystemRestore:
    """A restore as it would be performed now; ``refusals`` contains the reasons against it."""

    header: BackupHeader
    version: str | None
    rows: dict[str, int]
    refusals: tuple[str, ...]


def save_system(there: Installed, path: Path, now: datetime) -> tuple[BackupHeader, int]:
    """Write a consistent copy of a system's rows to ``path``; return its header and the number of rows.

    The file is replaced only by a complete one.

    Raises:
        OperatingError: There is nothing to save, or the file cannot be written.
        DatabaseError: The tables are of a newer release.
    """
    version = there.tree.known(there.tree.current(there.engine))
    if version is None:
        raise OperatingError(
            said(
                f"{there.name} 的表不存在：没有可备份的",
                f"the tables of {there.name} do not exist: there is nothing to save",
            )
        )
    header = BackupHeader("", version, __version__, now, None, there.name)
    count = 0
    with _one_moment(there.engine) as connection, whole_file(path) as target, backup_stream(target, header) as packed:
        for table in _present(connection, there.tree):
            names = [column.name for column in table.columns]
            packed.write(_line(["table", table.name, names]))
            for row in connection.execution_options(yield_per=_AT_ONCE).execute(select(table)):
                packed.write(_line([_packed(value) for value in row]))
                count += 1
    return header, count


def plan_system_restore(there: Installed, path: Path, *, replace: bool) -> SystemRestore:
    """Read a backup completely, check the system's tables, and return what a restore would do; nothing is changed.

    Raises:
        OperatingError: The file is not a complete backup of ours.
    """
    header = verify_backup(path)
    with reading(there.engine) as connection:
        present = _present(connection, there.tree)
        rows = {
            table.name: int(connection.execute(select(func.count()).select_from(table)).scalar_one())
            for table in present
        }
        leased = list(there.system.leased_by(connection)) if present else []
    refusals = []
    if header.version not in there.tree.versions:
        refusals.append(
            said(
                f"备份是版本 {header.version}：请安装发行版 {header.release} 或更新的",
                f"the backup is of version {header.version}: install release {header.release} or a later one",
            )
        )
    if leased:
        refusals.append(
            said(
                f"有 {len(leased)} 个运行正在进行：请停止 Dagster 的守护进程，等它们结束",
                f"{len(leased)} runs are under way: stop Dagster's daemon, wait until they have ended",
            )
        )
    held = {name: count for name, count in rows.items() if count}
    if held and not replace:
        shown = ", ".join(f"{name} {count}" for name, count in sorted(held.items())[:3])
        refusals.append(
            said(
                f"这些表里有数据（{shown} …）：加 --replace 用备份取代",
                f"the tables hold rows ({shown} …): add --replace to replace them with the backup",
            )
        )
    return SystemRestore(header, there.tree.current(there.engine), rows, tuple(refusals))


def restore_system(
    there: Installed, path: Path, now: datetime, *, replace: bool, keep_in: Path | None
) -> SystemRestore:
    """Replace a system's tables by the backup in ``path``, all rows in one transaction.

    Tables of another version are first recreated empty; if that is interrupted, the restore can be repeated.

    Args:
        there: The system.
        path: A file written by `save_system`.
        now: The current time.
        replace: Whether rows may be replaced.
        keep_in: File for a backup of the current rows, if there are any.

    Raises:
        OperatingError: The restore is refused, or the current rows cannot be backed up.
    """
    plan = plan_system_restore(there, path, replace=replace)
    if plan.refusals:
        raise OperatingError(said("没有恢复：", "not restored: ") + said("；", "; ").join(plan.refusals))
    if keep_in is not None and any(plan.rows.values()):
        keep_in.parent.mkdir(parents=True, exist_ok=True)
        save_system(there, keep_in, now)
    if plan.version != plan.header.version:
        _make_anew(there, plan.header.version)
    with there.engine.begin() as connection:
        tables = {table.name: table for table in _present(connection, there.tree)}
        for table in reversed(tables.values()):
            connection.execute(delete(table))
        _read_back(connection, tables, path)
        if connection.dialect.name == "postgresql":
            for table in tables.values():
                _count_on(connection, table)
    return plan


def _make_anew(there: Installed, version: str) -> None:
    config = there.tree.config()
    with there.engine.begin() as connection, there.tree.alone(connection):
        there.tree.ensure_schema(connection)
        # The version first: MySQL commits each DROP, and without a version nothing uses what is left of the tables.
        connection.execute(DropTable(Table(there.tree.version_table, MetaData(there.tree.schema)), if_exists=True))
        for table in reversed(_present(connection, there.tree)):
            connection.execute(DropTable(table))
        config.attributes["connection"] = connection
        command.upgrade(config, version)


def _read_back(connection: Connection, tables: dict[str, Table], path: Path) -> None:
    table: Table | None = None
    names: list[str] = []
    rows: list[dict[str, Any]] = []

    def store() -> None:
        if table is not None and rows:
            connection.execute(insert(table), rows)
        rows.clear()

    for line in lines_of(path):
        given = json.loads(line)
        if _begins_table(given):
            store()
            table, names = tables[given[1]], given[2]
        else:
            rows.append(dict(zip(names, map(_unpacked, given), strict=True)))
            if len(rows) == _AT_ONCE:
                store()
    store()


def _begins_table(line: list[Any]) -> bool:
    """Return whether a line is a table's. A row's first value may be "table" too, but no value of a row is a list."""
    return line[:1] == ["table"] and isinstance(line[-1], list)


def _count_on(connection: Connection, table: Table) -> None:
    """Set the sequences of a table to continue after the restored rows."""
    for column in table.primary_key.columns:
        if isinstance(column.type, Integer) and column.server_default is not None:
            highest = select(func.max(column)).scalar_subquery()
            sequence = func.pg_get_serial_sequence(table.fullname, column.name)
            connection.execute(select(func.setval(sequence, func.coalesce(highest, 1))))


def _one_moment(engine: Engine) -> Any:
    level = {} if engine.dialect.name == "sqlite" else {"isolation_level": "REPEATABLE READ"}
    return reading(engine.execution_options(**level))


def _present(connection: Connection, tree: MigrationTree) -> list[Table]:
    """Return a system's existing tables as reflected from the database, referenced tables first."""
    names = set(inspect(connection).get_table_names(tree.schema))
    ours = [table.name for table in tree.metadata.sorted_tables if table.name in names]
    metadata = MetaData(tree.schema)
    found = [Table(name, metadata, autoload_with=connection) for name in ours]
    for column in (column for table in found for column in table.columns if isinstance(column.type, JSONB)):
        column.type = _JsonText()
    return found


class _JsonText(UserDefinedType[str]):
    """A ``jsonb`` as its text: numbers keep their digits, and SQL's NULL differs from JSON's ``null``."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Return the type's name in SQL."""
        return "JSONB"

    def bind_expression(self, bindvalue: Any) -> Any:
        """Return the expression with which the database parses the text."""
        return cast(type_coerce(bindvalue, Text), JSONB)

    def column_expression(self, colexpr: Any) -> Any:
        """Return the expression with which the database produces the text."""
        return cast(type_coerce(colexpr, JSONB), Text)


def _line(values: list[Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _packed(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return {"bytes": base64.b64encode(bytes(value)).decode()}
    for kind, (of, _) in _KINDS.items():
        if isinstance(value, of):
            return {kind: value.isoformat() if isinstance(value, date) else str(value)}
    return value


def _unpacked(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    [(kind, given)] = value.items()
    if kind == "bytes":
        return base64.b64decode(given)
    return _KINDS[kind][1](given)
