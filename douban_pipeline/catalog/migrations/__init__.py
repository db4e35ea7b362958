"""Alembic migrations of our own tables. They never touch a table of the CMS."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, func, inspect, select

from douban_pipeline.catalog.database import DatabaseError
from douban_pipeline.catalog.tables import own_tables


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
        DatabaseError: Tables of our names hold rows but no version is noted.
    """
    config = config_for(prefix)
    before = current(engine, prefix)
    if before is None:
        _clear_interrupted_start(engine, prefix)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    return before, head(prefix)


def _clear_interrupted_start(engine: Engine, prefix: str) -> None:
    """Drop the empty tables that a first upgrade left when it was killed; MySQL cannot roll back DDL."""
    present = set(inspect(engine).get_table_names())
    leftovers = [table for table in own_tables(prefix).metadata.sorted_tables if table.name in present]
    with engine.begin() as connection:
        for table in leftovers:
            if connection.execute(select(func.count()).select_from(table)).scalar_one():
                raise DatabaseError(
                    f"{table.name} holds rows, but {version_table(prefix)} notes no version: restore that table, or "
                    "set DOUBAN_PIPELINE_TABLE_PREFIX to the prefix of the CMS's tables"
                )
        for table in leftovers:
            table.drop(connection)


def current(engine: Engine, prefix: str) -> str | None:
    """Return the version of our tables in the database, ``None`` when there are none."""
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": version_table(prefix)})
        return context.get_current_revision()


def head(prefix: str) -> str:
    """Return the newest version that this release knows."""
    revision = ScriptDirectory.from_config(config_for(prefix)).get_current_head()
    assert revision is not None
    return revision
