"""What reading needs: marks and content of entries, an index for each order, and numbers that Fever's readers use."""

from __future__ import annotations

import sqlalchemy as sa

from douban_pipeline.core.column_types import LongText
from douban_pipeline.core.migration_steps import add_columns, add_index, create_table

revision = "0004"
down_revision = "0003"
release = "1.0.0rc1"

ZERO = sa.text("0")


def upgrade() -> None:
    """Add columns, indexes and the table. What is stored counts as read: nobody wants a year of articles as unread."""
    add_columns(
        "feed_entry",
        sa.Column("unread", sa.SmallInteger, nullable=False, server_default=ZERO),
        sa.Column("starred", sa.SmallInteger, nullable=False, server_default=ZERO),
        sa.Column("content", LongText),
    )
    add_index("feed_entry", "ix_feed_entry_newest", "published_at", "entry_id")
    add_index("feed_entry", "ix_feed_entry_unread", "unread", "published_at", "entry_id")
    add_index("feed_entry", "ix_feed_entry_unread_of", "unread", "source_id", "published_at")
    add_index("feed_entry", "ix_feed_entry_starred", "starred", "published_at", "entry_id")
    add_index("feed_source", "ix_feed_source_title", "title", "source_id")
    create_table(
        "feed_number",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("name", sa.String(250), nullable=False),
        sa.UniqueConstraint("name", name="uq_feed_number_name"),
    )
