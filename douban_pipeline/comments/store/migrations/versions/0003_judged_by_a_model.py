"""A flag for texts that a model has judged."""

from __future__ import annotations

import sqlalchemy as sa

from douban_pipeline.core.migration_steps import add_columns

revision = "0003"
down_revision = "0002"
release = "0.2.0"


def upgrade() -> None:
    """Add the flag; existing texts are too old to be sent to a model."""
    add_columns("cmt_content", sa.Column("judged", sa.Boolean, nullable=False, server_default=sa.false()))
