"""Texts that their authors replaced, so that reviewers see what a comment said before."""

from __future__ import annotations

import sqlalchemy as sa

from douban_pipeline.core.column_types import BigId, UtcDateTime
from douban_pipeline.core.migration_steps import create_table

revision = "0008"
down_revision = "0007"
release = "1.0.0rc1"


def upgrade() -> None:
    """Add the table."""
    create_table(
        "cmt_edit",
        sa.Column("edit_id", BigId, primary_key=True, autoincrement=True),
        sa.Column("comment_id", sa.BigInteger, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Index("ix_cmt_edit_comment", "comment_id", "edit_id"),
    )
