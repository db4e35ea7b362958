"""Who decided which title a video is: what a person decided, no run changes."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the column."""
    op.execute("ALTER TABLE tmdb.vod_match ADD COLUMN decided_by text")
