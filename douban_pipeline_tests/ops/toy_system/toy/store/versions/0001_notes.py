"""The first table."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create it."""
    op.create_table(
        "toy_note", sa.Column("note_id", sa.Integer, primary_key=True), sa.Column("text", sa.String(50), nullable=False)
    )
