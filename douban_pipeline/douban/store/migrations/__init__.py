"""Alembic migrations of our own tables. They never touch a table of the CMS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, Table, column, func, inspect, select, text
from sqlalchemy import table as sql_table
from sqlalchemy.schema import DropTable

from douban_pipeline.core.database import LOCK_WAIT_SECONDS, DatabaseError, reading
from douban_pipeline.douban.store.migrations.steps import Shape
from douban_pipeline.douban.store.tables import own_tables


def version_table(prefix: str) -> str:
    """Return the name of the table in which Alembic notes the version."""
    return f"{prefix}douban_version"


def config_for(prefix: str) -> Config:
    """Return Alembic's configuration for tables under ``prefix``."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["prefix"] = prefix
    return config


def upgrade(engine: Engine, prefix: str) -> tuple[str | None, str]:
    """Create our tables or bring them up to date; safe to repeat.

    Returns:
        The version before (``None`` when there were no tables) and after.

    Raises:
        DatabaseError: Tables of our names hold rows but no version is noted, the version is a newer release's, or
            another process is upgrading.
    """
    config = config_for(prefix)
    with engine.begin() as connection, alone(connection, prefix):
        before = known(_current(connection, prefix), prefix)
        if before is None:
            for table in _interrupted_start(connection, prefix):
                table.drop(connection)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    return before, head(prefix)


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """What an upgrade would do: the version before (``None``: no tables) and after, and its statements as SQL."""

    before: str | None
    after: str
    sql: str


def plan(engine: Engine, prefix: str) -> MigrationPlan:
    """Return what `upgrade` would do to the database as it is, and change nothing.

    Raises:
        DatabaseError: It would refuse.
    """
    config = config_for(prefix)
    config.output_buffer = statements = StringIO()
    with reading(engine) as connection:
        before = known(_current(connection, prefix), prefix)
        leftovers = _interrupted_start(connection, prefix) if before is None else []
        config.attributes["dialect"] = connection.dialect.name
        gone = frozenset(table.name for table in leftovers)
        config.attributes["shape"] = Shape.read(connection, prefix, without=gone)
        for table in leftovers:
            statements.write(f"{DropTable(table).compile(dialect=connection.dialect)};\n\n".lstrip())
    command.upgrade(config, f"{before or 'base'}:head", sql=True)
    return MigrationPlan(before, head(prefix), statements.getvalue().strip())


@contextmanager
def alone(connection: Connection, prefix: str) -> Iterator[None]:
    """Let one process at a time change our tables; on SQLite the transaction that writes does that.

    Raises:
        DatabaseError: Another process is at it.
    """
    if connection.dialect.name == "sqlite":
        yield
        return
    name = {"name": f"{connection.engine.url.database}.{version_table(prefix)}"[:64], "seconds": LOCK_WAIT_SECONDS}
    if connection.execute(text("SELECT GET_LOCK(:name, :seconds)"), name).scalar() != 1:
        raise DatabaseError("another process is upgrading or restoring our tables: wait for it to end and try again")
    try:
        yield
    finally:
        connection.execute(text("SELECT RELEASE_LOCK(:name)"), name)


def _interrupted_start(connection: Connection, prefix: str) -> list[Table]:
    """Return the empty tables that a first upgrade left when it was killed; MySQL cannot roll back DDL."""
    present = set(inspect(connection).get_table_names())
    leftovers = [table for table in own_tables(prefix).metadata.sorted_tables if table.name in present]
    for table in leftovers:
        if connection.execute(select(func.count()).select_from(table)).scalar_one():
            raise DatabaseError(
                f"{table.name} holds rows, but {version_table(prefix)} notes no version: restore that table, or "
                "set DOUBAN_PIPELINE_TABLE_PREFIX to the prefix of the CMS's tables"
            )
    return leftovers


def current(engine: Engine, prefix: str) -> str | None:
    """Return the version of our tables in the database, ``None`` when there are none."""
    with reading(engine) as connection:
        return _current(connection, prefix)


def _current(connection: Connection, prefix: str) -> str | None:
    name = version_table(prefix)
    if not inspect(connection).has_table(name):
        return None
    return connection.execute(select(column("version_num")).select_from(sql_table(name))).scalar()


@cache
def head(prefix: str) -> str:
    """Return the newest version that this release knows."""
    revision = ScriptDirectory.from_config(config_for(prefix)).get_current_head()
    assert revision is not None
    return revision


@cache
def versions(prefix: str) -> tuple[str, ...]:
    """Return every version that this release knows, the oldest first."""
    return tuple(script.revision for script in ScriptDirectory.from_config(config_for(prefix)).walk_revisions())[::-1]


def known(version: str | None, prefix: str) -> str | None:
    """Return ``version``.

    Raises:
        DatabaseError: It is one that this release does not know: a newer one's.
    """
    if version is not None and version not in versions(prefix):
        raise DatabaseError(
            f"our tables are at version {version}, this release knows none after {head(prefix)}: it is older than "
            "the one that made them. Install that release again; there is no way back but a backup of before"
        )
    return version
