"""Bigram index of the comment search: the bigram table, and a flag for texts that are indexed."""

from __future__ import annotations

import sqlalchemy as sa

from douban_pipeline.core.migration_steps import add_columns, add_index, create_table

revision = "0002"
down_revision = "0001"
release = "0.2.0"


def upgrade() -> None:
    """Add what is missing; existing texts are added to the index by the asset `comment_search_index`."""
    create_table(
        "cmt_bigram",
        sa.Column("bigram", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("comment_id", sa.BigInteger, primary_key=True, autoincrement=False),
    )
    add_columns("cmt_content", sa.Column("indexed", sa.Boolean, nullable=False, server_default=sa.false()))
    add_index("cmt_content", "ix_cmt_content_indexed", "indexed", "comment_id")
