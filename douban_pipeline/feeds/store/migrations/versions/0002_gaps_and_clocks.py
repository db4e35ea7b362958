"""What was left unread of a source, and what is known of its clock."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from douban_pipeline.core.column_types import JsonText
from douban_pipeline.core.migration_steps import add_columns

revision = "0002"
down_revision = "0001"
release = "0.3.0"


def upgrade() -> None:
    """Add the columns, and correct times of publication that lie after the entry was found."""
    add_columns("feed_source", sa.Column("gap", JsonText), sa.Column("clock", JsonText))
    # Such times were read in the wrong zone. A video's time is that of its last episode, found later than the video.
    op.execute(
        "UPDATE feed_entry SET published_at = found_at WHERE published_at > found_at AND source_id NOT LIKE 'maccms-%'"
    )
