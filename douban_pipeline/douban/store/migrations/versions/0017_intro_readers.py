"""An intro says which reader its second reading was by; those that were read before keep none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context

from douban_pipeline.core.migration_steps import add_columns

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Add what is missing."""
    intro = f"{context.config.attributes['prefix']}douban_intro"
    add_columns(intro, sa.Column("reader", sa.String(160)))
