"""Folders, icons, credentials and publishers' own gaps of sources; one story in several sources; hubs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from douban_pipeline.core.migration_steps import add_columns, add_index, create_table

revision = "0003"
down_revision = "0002"
release = "1.0.0rc1"

EMPTY = sa.text("''")
ZERO = sa.text("0")


def upgrade() -> None:
    """Add the columns and the table, and give every entry the story of its link."""
    add_columns(
        "feed_source",
        sa.Column("folder", sa.String(200)),
        sa.Column("favicon", sa.Text),
        sa.Column("credential", sa.String(64)),
        sa.Column("own_gap", sa.Integer),
        sa.Column("own_gap_from", sa.String(32)),
    )
    add_index("feed_source", "ix_feed_source_folder", "folder")
    add_columns("feed_entry", sa.Column("story_hash", sa.String(64), nullable=False, server_default=EMPTY))
    # The hash of a link in its canonical form, which most links have; others are separate stories until edited.
    op.execute("UPDATE feed_entry SET story_hash = link_hash WHERE story_hash = ''")
    add_index("feed_entry", "ix_feed_entry_story", "story_hash")
    create_table(
        "feed_websub",
        sa.Column("source_id", sa.String(64), primary_key=True),
        sa.Column("hub", sa.Text, nullable=False),
        sa.Column("topic", sa.Text, nullable=False),
        sa.Column("token", sa.String(64), nullable=False),
        sa.Column("secret", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.String(500), nullable=False, server_default=EMPTY),
        sa.Column("attempts", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("asked_at", sa.BigInteger, nullable=False, server_default=ZERO),
        sa.Column("lease_until", sa.BigInteger, nullable=False, server_default=ZERO),
        sa.Column("ask_at", sa.BigInteger, nullable=False, server_default=ZERO),
        sa.Column("last_push_at", sa.BigInteger, nullable=False, server_default=ZERO),
        sa.Column("pushes", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("pushed_entries", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("missed", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("token", name="uq_feed_websub_token"),
    )
    add_index("feed_websub", "ix_feed_websub_ask", "ask_at")
