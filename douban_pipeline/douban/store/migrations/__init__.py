"""Alembic migrations of our own tables. They never touch a table of the CMS."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from douban_pipeline.core.migrations import MigrationTree
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
        misplaced="restore that table, or set DOUBAN_PIPELINE_TABLE_PREFIX to the prefix of the CMS's tables",
        system="douban",
        next_job="initialise_library",
        makes_file=False,
    )
