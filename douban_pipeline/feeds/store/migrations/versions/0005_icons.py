"""Icons of sources, which readers show."""

from __future__ import annotations

import sqlalchemy as sa

from douban_pipeline.core.column_types import LongText
from douban_pipeline.core.migration_steps import create_table

revision = "0005"
down_revision = "0004"
release = "1.0.0rc1"


def upgrade() -> None:
    """Add the table."""
    create_table(
        "feed_icon",
        sa.Column("icon_hash", sa.String(64), primary_key=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("data", LongText, nullable=False),
        sa.Column("asked_at", sa.BigInteger, nullable=False),
    )
