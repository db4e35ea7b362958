"""Restores a system's tables from a backup."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from alembic import command
from sqlalchemy import Connection, Integer, MetaData, Table, delete, func, insert, select
from sqlalchemy.exc import OperationalError, ProgrammingError
from sqlalchemy.schema import DropTable

from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import OperatingError
from douban_pipeline.core.grants import MYSQL, missing_table_grants
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.core.platform import Platform
from douban_pipeline.core.system import System
from douban_pipeline.ops.backup import back_up, prefix_of, present_tables
from douban_pipeline.ops.backup_file import BackupHeader, holds_sql, lines_of, verify_backup

_ROWS, _BYTES = 500, 8 << 20
"""Most rows of one statement, and the length of their lines above which it is sent earlier."""
_NAMED = 3
"""How many of a list a refusal names."""
_PARSERS: dict[str, Callable[[str], Any]] = {
    "bytes": base64.b64decode,
    "moment": datetime.fromisoformat,
    "day": date.fromisoformat,
    "number": Decimal,
    "uuid": UUID,
}
"""Parsers of the values that JSON lacks, by their name in a line."""


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """A restore as it would be performed now.

    Attributes:
        header: The header of the backup.
        version: Version of the present tables; None without one.
        rows: Number of rows of the present tables, by name.
        losses: Lines on what is recorded now and not in the backup.
        refusals: Reasons against the restore.
    """

    header: BackupHeader
    version: str | None
    rows: dict[str, int]
    losses: tuple[str, ...]
    refusals: tuple[str, ...]


def plan_restore(
    system: System, services: Platform, path: Path, *, replace: bool, keep_in: Path | None = None
) -> RestorePlan:
    """Read a backup completely, check the system's tables, and return what a restore would do; nothing is changed.

    Args:
        system: The system.
        services: Its services.
        path: A backup of it.
        replace: Whether rows may be replaced.
        keep_in: File for a backup of the current rows, if they are kept.

    Raises:
        OperatingError: The file is not a complete backup of ours.
        DatabaseError: The tables are of a newer release that did not note which they are.
    """
    header, tree, operations = verify_backup(path), services.tree, system.operations()
    with reading(services.engine) as connection:
        version = tree.version_if_complete(connection)
        present = present_tables(connection, tree)
        rows = {
            table.name: int(connection.execute(select(func.count()).select_from(table)).scalar_one())
            for table in present
        }
        newer = version is not None and version not in tree.versions
        losses = (
            (_unread(tree.noted_release(connection)),)
            if newer
            else tuple(operations.losses(connection, services, header.newest_write))
        )
    owners = _owners(system, services) if present else []
    refusals = _file_refusals(header, tree, path, services.engine.dialect.name)
    if owners:
        named = ", ".join(owners[:_NAMED])
        refusals.append(
            terminal_text(
                "runs are under way ({named}): stop Dagster's daemon, wait until they have ended, and try again"
            ).format(named=named)
        )
    if version == tree.head and (lacking := missing_table_grants(services.engine, tree.metadata.sorted_tables)):
        refusals.append(
            terminal_text("this account lacks {named}").format(named=", ".join(lacking[:_NAMED]))
            + terminal_text(": ")
            + terminal_text("run what {command} prints, as the database's owner").format(
                command=f"`douban-pipeline grants{system.option}`"
            )
        )
    if keep_in is not None and any(rows.values()) and (folder := _unwritable(keep_in.parent)):
        refusals.append(
            terminal_text(
                "the present tables cannot be kept, this user may not write to {folder}; --no-keep goes on without"
            ).format(folder=folder)
        )
    held = {name: count for name, count in rows.items() if count}
    if held and not replace:
        shown = ", ".join(f"{name} {count}" for name, count in sorted(held.items())[:_NAMED])
        refusals.append(
            terminal_text("our tables hold rows ({shown} …): add --replace to replace them with the backup").format(
                shown=shown
            )
        )
    return RestorePlan(header, version, rows, losses, tuple(refusals))


def _unwritable(folder: Path) -> Path | None:
    """Return the folder, or the nearest one above it that exists, if this user may not write there."""
    present = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    return None if present.is_dir() and os.access(present, os.W_OK | os.X_OK) else present


def _unread(release: str) -> str:
    return terminal_text(
        "the present tables are of release {release}: what they record since the backup is not counted here, and is in "
        "the copy that is kept"
    ).format(release=release)


def _owners(system: System, services: Platform) -> list[str]:
    """Return who holds leases; nobody holds any in tables of an earlier release that had none."""
    try:
        with reading(services.engine) as connection:
            return list(system.operations().leased_by(connection, services))
    except (OperationalError, ProgrammingError):
        return []


def _file_refusals(header: BackupHeader, tree: MigrationTree, path: Path, dialect: str) -> list[str]:
    refusals, prefix = [], prefix_of(tree)
    if header.prefix != prefix:
        refusals.append(
            terminal_text(
                "the backup is of tables under {prefix!r}, DOUBAN_PIPELINE_TABLE_PREFIX is {prefix_2!r}"
            ).format(prefix=header.prefix, prefix_2=prefix)
        )
    if not header.version:
        refusals.append(
            terminal_text("the backup names no version of its tables: it was made after an interrupted restore")
        )
    elif header.version not in tree.versions:
        refusals.append(
            terminal_text(
                "the backup is of version {version}, the newest of this release is {head}: install "
                "release {release} or a later one"
            ).format(version=header.version, head=tree.head, release=header.release)
        )
    if dialect not in MYSQL and holds_sql(path):
        refusals.append(terminal_text("the backup is SQL, which is for MariaDB and MySQL"))
    return refusals


def restore(
    system: System, services: Platform, path: Path, now: datetime, *, replace: bool, keep_in: Path | None
) -> RestorePlan:
    """Replace a system's tables by the backup in ``path``.

    All rows are replaced in one transaction. Tables of another version are first made anew, and a file of SQL makes
    them itself: if that is interrupted, they have no version, every command and run refuses to use them, and the
    restore can be repeated.

    Args:
        system: The system.
        services: Its services.
        path: A backup of it.
        now: The current time.
        replace: Whether rows may be replaced.
        keep_in: File for a backup of the current rows, if there are any.

    Raises:
        OperatingError: The restore is refused, the current rows cannot be backed up, or it failed.
    """
    with services.engine.begin() as connection, services.tree.alone(connection):
        plan = plan_restore(system, services, path, replace=replace, keep_in=keep_in)
        if plan.refusals:
            raise OperatingError(terminal_text("not restored: ") + terminal_text("; ").join(plan.refusals))
        if keep_in is not None and any(plan.rows.values()):
            _keep(system, services, keep_in, now)
        if holds_sql(path):
            _run_sql(connection, services.tree, path)
        else:
            if plan.version != plan.header.version:
                _make_anew(connection, services.tree, plan.header.version)
            _replace_rows(connection, services.tree, path)
    restored = services.tree.current(services.engine)
    if restored != plan.header.version:
        noted = plan.header.version
        raise OperatingError(
            terminal_text("restored tables note version {restored}, the backup {noted}").format(
                restored=restored, noted=noted
            )
        )
    return plan


def _keep(system: System, services: Platform, path: Path, now: datetime) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        back_up(system, services, path, now)
    except OperatingError as error:
        raise OperatingError(
            terminal_text(
                "not restored: the present tables cannot be kept ({error}); --no-keep goes on without"
            ).format(error=error)
        ) from error


def _drop_all(connection: Connection, tree: MigrationTree) -> None:
    # The version first: MySQL commits each DROP, and without a version nothing uses what is left of the tables. It
    # holds the names of a newer release's tables, so these are read before.
    tables = present_tables(connection, tree)
    connection.execute(DropTable(Table(tree.version_table, MetaData(tree.schema)), if_exists=True))
    for table in reversed(tables):
        connection.execute(DropTable(table))


def _make_anew(connection: Connection, tree: MigrationTree, version: str) -> None:
    config = tree.config()
    tree.ensure_schema(connection)
    _drop_all(connection, tree)
    config.attributes["connection"] = connection
    command.upgrade(config, version)


def _replace_rows(connection: Connection, tree: MigrationTree, path: Path) -> None:
    tables = {table.name: table for table in present_tables(connection, tree)}
    for table in reversed(tables.values()):
        connection.execute(delete(table))
    _read_back(connection, tables, path)
    if connection.dialect.name == "postgresql":
        for table in tables.values():
            _count_on(connection, table)


def _read_back(connection: Connection, tables: dict[str, Table], path: Path) -> None:
    table: Table | None = None
    names: list[str] = []
    rows: list[dict[str, Any]] = []
    length = 0

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
            length += len(line)
        if len(rows) == _ROWS or length > _BYTES:
            store()
            length = 0
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


def _unpacked(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    [(kind, given)] = value.items()
    return _PARSERS[kind](given)


def _run_sql(connection: Connection, tree: MigrationTree, path: Path) -> None:
    """Run a backup that MariaDB's or MySQL's own program wrote for an earlier release.

    A statement ends with a line; a line break within a text is written as an escape. The tables' version comes last.
    """
    _drop_all(connection, tree)
    driver: Any = connection.connection
    statement: list[bytes] = []
    try:
        with driver.cursor() as cursor:
            for line in lines_of(path):
                if not statement and (line.startswith(b"--") or not line.strip()):
                    continue
                statement.append(line)
                if line.rstrip().endswith(b";"):
                    cursor.execute(b"".join(statement).decode())
                    statement.clear()
    except connection.dialect.loaded_dbapi.Error as error:
        raise OperatingError(
            terminal_text(
                "the restore failed: {error}. Our tables are incomplete now, and nothing runs on "
                "them: fix the cause and restore again with --replace"
            ).format(error=error)
        ) from error
