"""An intro says which reader its second reading was by; those that were read before keep none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context

from douban_pipeline.core.migration_steps import add_columns, add_index

revision = "0017"
down_revision = "0016"
release = "1.0.0rc1"


def upgrade() -> None:
    """Add what is missing."""
    own = f"{context.config.attributes['prefix']}douban_"
    add_columns(f"{own}intro", sa.Column("reader", sa.String(160)))
    add_index(f"{own}intro", f"ix_{own}intro_origin", "state", "model", "prompt_version", "reader")
