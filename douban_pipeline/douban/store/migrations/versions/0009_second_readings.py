"""An intro keeps what its second reading found each sentence to rest on."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context

from douban_pipeline.core.column_types import JsonText
from douban_pipeline.core.migration_steps import add_columns

revision = "0009"
down_revision = "0008"
release = "0.2.0"


def upgrade() -> None:
    """Add what is missing."""
    intro = f"{context.config.attributes['prefix']}douban_intro"
    add_columns(intro, sa.Column("reading", JsonText()), sa.Column("reading_snapshot_id", sa.BigInteger()))
