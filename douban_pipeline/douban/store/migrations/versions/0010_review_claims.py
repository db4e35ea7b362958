"""Who looks at a waiting video on the served review sheet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context

from douban_pipeline.core.column_types import UtcDateTime
from douban_pipeline.core.migration_steps import add_index, create_table

revision = "0010"
down_revision = "0009"
release = "0.2.0"


def upgrade() -> None:
    """Add what is missing."""
    claim = f"{context.config.attributes['prefix']}douban_claim"
    create_table(
        claim,
        sa.Column("vod_id", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("holder", sa.String(64), nullable=False),
        sa.Column("reviewer", sa.String(64), nullable=False, server_default=sa.text("''")),
        sa.Column("until", UtcDateTime(), nullable=False),
    )
    add_index(claim, f"ix_{claim}_holder", "holder")
    add_index(claim, f"ix_{claim}_until", "until")
