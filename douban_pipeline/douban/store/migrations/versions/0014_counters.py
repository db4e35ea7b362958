"""What the HTTP service counts in all its processes together, and the logins that have ended."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context

from douban_pipeline.core.column_types import UtcDateTime
from douban_pipeline.core.migration_steps import add_index, create_table

revision = "0014"
down_revision = "0013"
release = "0.3.0"


def upgrade() -> None:
    """Add what is missing."""
    counter = f"{context.config.attributes['prefix']}douban_counter"
    create_table(
        counter,
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("ends_at", UtcDateTime(), nullable=False),
    )
    add_index(counter, f"ix_{counter}_ends", "ends_at")
