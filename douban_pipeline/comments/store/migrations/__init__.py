"""Alembic migrations of the comment system's tables."""

from __future__ import annotations

from pathlib import Path

from douban_pipeline.comments.store import moderator_tables
from douban_pipeline.core.migrations import MigrationTree

TREE = MigrationTree(
    folder=Path(__file__).parent,
    version_table="cmt_version",
    metadata=moderator_tables.metadata,
    misplaced="restore that table, or set DOUBAN_PIPELINE_COMMENTS_DATABASE_URL to where the comments' tables are",
    system="comments",
    option=" --system comments",
)
"""The migrations; `MigrationTree.upgrade` creates the tables or brings them up to date."""
