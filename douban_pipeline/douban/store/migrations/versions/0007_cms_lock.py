"""A decision says whether it is meant although the site locked the row."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context

from douban_pipeline.core.migration_steps import add_columns

revision = "0007"
down_revision = "0006"
release = "0.2.0"


def upgrade() -> None:
    """Add what is missing."""
    own = f"{context.config.attributes['prefix']}douban_"
    column: sa.Column[bool] = sa.Column("override_cms_lock", sa.Boolean(), server_default=sa.false(), nullable=False)
    add_columns(f"{own}decision", column)
