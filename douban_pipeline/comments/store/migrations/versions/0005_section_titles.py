"""Titles of sections from Douban, and the progress of updating them."""

from __future__ import annotations

import sqlalchemy as sa

from douban_pipeline.core.column_types import UtcDateTime
from douban_pipeline.core.migration_steps import add_columns, create_table

revision = "0005"
down_revision = "0004"
release = "0.3.0"


def upgrade() -> None:
    """Add what is missing; existing titles are the site's own."""
    add_columns(
        "cmt_section",
        sa.Column("title_douban_id", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("titled_at", UtcDateTime, nullable=True),
    )
    create_table(
        "cmt_mark",
        sa.Column("name", sa.String(32), primary_key=True),
        sa.Column("at", UtcDateTime, nullable=True),
        sa.Column("number", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    )
