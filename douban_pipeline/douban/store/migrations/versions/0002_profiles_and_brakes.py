"""Profiles and strata of verdicts, candidates known from a search alone, and brakes on strata."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context

from douban_pipeline.core.column_types import JsonText, UtcDateTime
from douban_pipeline.core.migration_steps import add_columns, create_table

revision = "0002"
down_revision = "0001"
release = "0.2.0"


def upgrade() -> None:
    """Add what is missing."""
    own = f"{context.config.attributes['prefix']}douban_"
    add_columns(
        f"{own}verdict",
        sa.Column("profile", sa.String(length=16), server_default=sa.text("'plan'"), nullable=False),
        sa.Column("strata", JsonText(), nullable=True),
        sa.Column("crowded", sa.Boolean(), server_default=sa.text("0"), nullable=False),
    )
    add_columns(
        f"{own}review_candidate",
        sa.Column("fetched", sa.Boolean(), server_default=sa.text("1"), nullable=False),
    )
    create_table(
        f"{own}brake",
        sa.Column("stratum", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.String(length=500), server_default=sa.text("''"), nullable=False),
        sa.Column("lower_bound", sa.Double(), nullable=False),
        sa.Column("target", sa.Double(), nullable=False),
        sa.Column("labels", sa.Integer(), nullable=False),
        sa.Column("pulled_at", UtcDateTime(), nullable=False),
        sa.Column("lifted_at", UtcDateTime(), nullable=True),
        sa.Column("lifted_by", sa.String(length=64), server_default=sa.text("''"), nullable=False),
        sa.Column("lift_note", sa.String(length=500), server_default=sa.text("''"), nullable=False),
        sa.PrimaryKeyConstraint("stratum"),
    )
