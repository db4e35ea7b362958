"""Hashes of posters, for telling whose picture is whose."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context

from douban_pipeline.core.column_types import UtcDateTime
from douban_pipeline.core.migration_steps import add_index, create_table

revision = "0011"
down_revision = "0010"
release = "0.2.0"


def upgrade() -> None:
    """Add what is missing."""
    poster = f"{context.config.attributes['prefix']}douban_poster"
    create_table(
        poster,
        sa.Column("owner", sa.String(32), primary_key=True),
        sa.Column("address", sa.String(500), nullable=False),
        sa.Column("hashes", sa.String(255), nullable=False),
        sa.Column("first_hash", sa.String(36), nullable=False),
        sa.Column("fetched_at", UtcDateTime(), nullable=False),
    )
    add_index(poster, f"ix_{poster}_first_hash", "first_hash")
