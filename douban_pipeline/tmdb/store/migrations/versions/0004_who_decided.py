"""The person who decided a video's title; runs do not change a person's decision."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
release = "0.2.0"


def upgrade() -> None:
    """Add the column."""
    op.execute("ALTER TABLE tmdb.vod_match ADD COLUMN decided_by text")
