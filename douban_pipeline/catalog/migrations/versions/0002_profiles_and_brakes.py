"""Profiles and strata of verdicts, candidates known from a search alone, and brakes on strata."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import context, op

from douban_pipeline.catalog.types import JsonText, UtcDateTime

revision = "0002"
down_revision = "0001"

OPTIONS: Any = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mysql_row_format": "DYNAMIC",
}


def upgrade() -> None:
    """Add what is missing: servers without transactions for DDL keep what an upgrade did before it was cut off."""
    own = f"{context.config.attributes['prefix']}douban_"
    _add(
        f"{own}verdict",
        sa.Column("profile", sa.String(length=16), server_default=sa.text("'plan'"), nullable=False),
        sa.Column("strata", JsonText(), nullable=True),
        sa.Column("crowded", sa.Boolean(), server_default=sa.text("0"), nullable=False),
    )
    _add(
        f"{own}review_candidate",
        sa.Column("fetched", sa.Boolean(), server_default=sa.text("1"), nullable=False),
    )
    if sa.inspect(op.get_bind()).has_table(f"{own}brake"):
        return
    op.create_table(
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
        **OPTIONS,
    )


def _add(table: str, *columns: sa.Column[Any]) -> None:
    present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)}
    for column in columns:
        if column.name not in present:
            op.add_column(table, column)
