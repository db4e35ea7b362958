"""Alembic migrations of our own tables. They never touch a table of the CMS."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path

from alembic.config import Config
from sqlalchemy import Connection, Engine

from douban_pipeline.core.migrations import MigrationPlan, MigrationTree
from douban_pipeline.douban.store.tables import own_tables


def version_table(prefix: str) -> str:
    """Return the name of the table in which Alembic notes the version."""
    return f"{prefix}douban_version"


@cache
def tree_of(prefix: str) -> MigrationTree:
    """Return the migrations of tables under ``prefix``."""
    return MigrationTree(
        folder=Path(__file__).parent,
        version_table=version_table(prefix),
        metadata=own_tables(prefix).metadata,
        owns=lambda name: name.startswith(f"{prefix}douban_"),
        misplaced="restore that table, or set DOUBAN_PIPELINE_TABLE_PREFIX to the prefix of the CMS's tables",
        attributes=(("prefix", prefix),),
        system="douban",
        next_job="initialise_library",
        makes_file=False,
    )


def config_for(prefix: str) -> Config:
    """Return Alembic's configuration for tables under ``prefix``."""
    return tree_of(prefix).config()


def upgrade(engine: Engine, prefix: str) -> tuple[str | None, str]:
    """Create our tables or bring them up to date; see `MigrationTree.upgrade`."""
    return tree_of(prefix).upgrade(engine)


def plan(engine: Engine, prefix: str) -> MigrationPlan:
    """Return what `upgrade` would do; see `MigrationTree.plan`."""
    return tree_of(prefix).plan(engine)


def alone(connection: Connection, prefix: str) -> AbstractContextManager[None]:
    """Let one process at a time change our tables; see `MigrationTree.alone`."""
    return tree_of(prefix).alone(connection)


def current(engine: Engine, prefix: str) -> str | None:
    """Return the version of our tables in the database, ``None`` when there are none."""
    return tree_of(prefix).current(engine)


def head(prefix: str) -> str:
    """Return the newest version that this release knows."""
    return tree_of(prefix).head


def versions(prefix: str) -> tuple[str, ...]:
    """Return every version that this release knows, the oldest first."""
    return tree_of(prefix).versions


def known(version: str | None, prefix: str) -> str | None:
    """Return ``version``; see `MigrationTree.known`."""
    return tree_of(prefix).known(version)
