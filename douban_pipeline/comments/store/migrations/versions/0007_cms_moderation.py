"""What the CMS was last seen to show, hide or have deleted of the comments imported from it."""

from __future__ import annotations

import sqlalchemy as sa

from douban_pipeline.core.column_types import UtcDateTime
from douban_pipeline.core.migration_steps import create_table

revision = "0007"
down_revision = "0006"
release = "0.3.0"


def upgrade() -> None:
    """Add the table; a comment without a row was last seen as it was imported."""
    create_table(
        "cmt_cms_status",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("status", sa.SmallInteger, nullable=False),
        sa.Column("seen_at", UtcDateTime, nullable=False),
    )
