"""A decision is applied by one run at a time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context

from douban_pipeline.core.column_types import UtcDateTime
from douban_pipeline.core.migration_steps import add_columns, add_index

revision = "0008"
down_revision = "0007"
release = "0.2.0"


def upgrade() -> None:
    """Add what is missing."""
    decision = f"{context.config.attributes['prefix']}douban_decision"
    add_columns(decision, sa.Column("lease_owner", sa.String(160)), sa.Column("lease_until", UtcDateTime()))
    add_index(decision, f"ix_{decision}_lease", "lease_owner")
