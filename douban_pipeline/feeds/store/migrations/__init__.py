"""Alembic migrations of the feeds system's tables."""

from __future__ import annotations

from pathlib import Path

from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.feeds.store.tables import metadata

TREE = MigrationTree(
    folder=Path(__file__).parent,
    version_table="feed_version",
    metadata=metadata,
    misplaced="restore that table, or set DOUBAN_PIPELINE_FEEDS_DATABASE_URL to where the feeds' tables are",
    system="feeds",
    option=" --system feeds",
)
"""The migrations; `MigrationTree.upgrade` creates the tables or brings them up to date."""
