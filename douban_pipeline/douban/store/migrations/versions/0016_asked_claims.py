"""A claim on a waiting video says who asked its holder to hand it over."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context

from douban_pipeline.core.migration_steps import add_columns

revision = "0016"
down_revision = "0015"
release = "1.0.0rc1"


def upgrade() -> None:
    """Add what is missing."""
    claim = f"{context.config.attributes['prefix']}douban_claim"
    add_columns(claim, sa.Column("asked_by", sa.String(64), nullable=False, server_default=""))
