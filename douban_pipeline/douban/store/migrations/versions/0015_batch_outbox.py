"""Batches that reviewers decided in the service, until they were reported to Dagster."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context

from douban_pipeline.core.column_types import UtcDateTime
from douban_pipeline.core.migration_steps import create_table

revision = "0015"
down_revision = "0014"
release = "0.4.0"


def upgrade() -> None:
    """Add what is missing."""
    create_table(
        f"{context.config.attributes['prefix']}douban_batch_outbox",
        sa.Column("batch_id", sa.String(64), primary_key=True),
        sa.Column("reviewer", sa.String(64), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
    )
