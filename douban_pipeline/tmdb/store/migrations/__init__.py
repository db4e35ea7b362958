"""Alembic migrations of the schema ``tmdb``, whose version is stored in it."""

from __future__ import annotations

from pathlib import Path

from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.tmdb.store.tables import SCHEMA, metadata

TREE = MigrationTree(
    folder=Path(__file__).parent,
    version_table="version",
    metadata=metadata,
    misplaced="something else made it; move it, or name another database in DOUBAN_PIPELINE_TMDB_DATABASE_URL",
    schema=SCHEMA,
    system="tmdb",
    option=" --system tmdb",
)
"""The migrations; `MigrationTree.upgrade` creates the schema and its tables or brings them up to date."""
