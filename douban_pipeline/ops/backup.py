"""Backs up the tables of any system as rows: consistent, from any database, to be restored into any database."""

from __future__ import annotations

import base64
import json
from contextlib import AbstractContextManager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Double, Engine, Float, MetaData, Table, Text, cast, inspect, select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import UserDefinedType

from douban_pipeline import __version__
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import OperatingError
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.core.platform import Platform
from douban_pipeline.core.system import System
from douban_pipeline.ops.backup_file import BackupHeader, backup_stream, whole_file

_AT_ONCE = 500
_KINDS: dict[str, type] = {"moment": datetime, "day": date, "number": Decimal, "uuid": UUID}
"""Types that JSON lacks, by their name in a line. A datetime is also a date, so it comes first."""


def back_up(system: System, services: Platform, path: Path, now: datetime) -> tuple[BackupHeader, int]:
    """Write a consistent copy of a system's rows to ``path``; return its header and the number of rows.

    The file is replaced only by a complete one. Tables of an earlier release are saved unchanged, so that a backup can
    be taken before an upgrade.

    Tables of a newer release are saved as completely: it noted their names.

    Raises:
        OperatingError: There is nothing to save, or the file cannot be written.
        DatabaseError: The tables are of a newer release, which noted no names and may have more of them.
    """
    tree, operations = services.tree, system.operations()
    count = 0
    with _one_moment(services.engine) as connection:
        # Without a version they were restored only partly, or damaged; a copy may still be useful.
        version = tree.version_if_complete(connection) or ""
        known = not version or version in tree.versions
        newest = operations.newest_write(connection, services) if known else None
        tables = present_tables(connection, tree)
        if not tables:
            raise OperatingError(
                terminal_text("the tables of {system} do not exist: there is nothing to save").format(
                    system=system.name
                )
            )
        release = __version__ if known else tree.noted_release(connection)
        header = BackupHeader(prefix_of(tree), version, release, now, newest, system.name)
        with whole_file(path) as target, backup_stream(target, header) as packed:
            for table in tables:
                packed.write(_line(["table", table.name, [column.name for column in table.columns]]))
                for row in connection.execution_options(yield_per=_AT_ONCE).execute(select(table)):
                    packed.write(_line([_packed(value) for value in row]))
                    count += 1
    return header, count


def prefix_of(tree: MigrationTree) -> str:
    """Return the prefix of a system's tables, if it is configured."""
    return str(dict(tree.attributes).get("prefix", ""))


def label_of(system: System, tree: MigrationTree) -> str:
    """Return the beginning of the names of a system's backups: its tables' prefix, or its name."""
    return prefix_of(tree) or f"{system.name}-"


def present_tables(connection: Connection, tree: MigrationTree) -> list[Table]:
    """Return a system's existing tables as reflected from the database, referenced tables first.

    Those of a newer release that it noted are among them.
    """
    names = tree.table_names(connection) & set(inspect(connection).get_table_names(tree.schema))
    metadata = MetaData(tree.schema)
    for name in sorted(names):
        Table(name, metadata, autoload_with=connection)
    found = [table for table in metadata.sorted_tables if table.name in names]
    for column in (column for table in found for column in table.columns):
        if isinstance(column.type, JSONB):
            column.type = _JsonText()
        elif isinstance(column.type, Float):
            column.type = Double()  # a reflected one of MySQL returns decimals, which lose digits
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


def _one_moment(engine: Engine) -> AbstractContextManager[Connection]:
    level = {} if engine.dialect.name == "sqlite" else {"isolation_level": "REPEATABLE READ"}
    return reading(engine.execution_options(**level))


def _line(values: list[Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _packed(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return {"bytes": base64.b64encode(bytes(value)).decode()}
    for kind, of in _KINDS.items():
        if isinstance(value, of):
            return {kind: value.isoformat() if isinstance(value, date) else str(value)}
    return value
