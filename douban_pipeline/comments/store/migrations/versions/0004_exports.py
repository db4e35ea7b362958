"""Log of what was written back into the CMS's own table of comments."""

from __future__ import annotations

import sqlalchemy as sa

from douban_pipeline.core.column_types import BigId, JsonText, UtcDateTime
from douban_pipeline.core.migration_steps import create_table

revision = "0004"
down_revision = "0003"
release = "0.2.0"


def upgrade() -> None:
    """Add the table."""
    create_table(
        "cmt_export",
        sa.Column("export_id", BigId, primary_key=True, autoincrement=True),
        sa.Column("batch", sa.String(64), nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("comment_id", sa.BigInteger, nullable=False),
        sa.Column("old_values", JsonText, nullable=False),
        sa.Column("new_values", JsonText, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("operator", sa.String(64), nullable=False, server_default=sa.text("''")),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Index("ix_cmt_export_number", "number", "export_id"),
        sa.Index("ix_cmt_export_batch", "batch", "export_id"),
        sa.Index("ix_cmt_export_state", "state", "export_id"),
    )
