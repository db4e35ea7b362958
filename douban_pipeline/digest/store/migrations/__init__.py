"""Alembic migrations of the digest system's tables."""

from __future__ import annotations

from pathlib import Path

from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.digest.store.tables import metadata

TREE = MigrationTree(
    folder=Path(__file__).parent,
    version_table="digest_version",
    metadata=metadata,
    misplaced="restore that table, or set DOUBAN_PIPELINE_DIGEST_DATABASE_URL to where the digest's tables are",
    system="digest",
    option=" --system digest",
)
"""The migrations; `MigrationTree.upgrade` creates the tables or brings them up to date."""
