"""When sections were scored, who saw which comments, and which comments are the staff's."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from douban_pipeline.core.column_types import UtcDateTime
from douban_pipeline.core.migration_steps import add_columns, add_index, create_table

revision = "0006"
down_revision = "0005"
release = "0.3.0"

_STAFF, _OPERATOR, _IMPORTED = 256, 3, "mac_comment:"
"""`Attribute.STAFF`, `Rank.OPERATOR` and `IMPORTED` of `comments.types` at this revision."""


def upgrade() -> None:
    """Add what is missing. A section was scored when its last score was; who published a comment is in its event."""
    add_columns("cmt_section", sa.Column("scored_at", UtcDateTime, nullable=True))
    create_table(
        "cmt_view",
        sa.Column("comment_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("viewer", sa.String(40), primary_key=True),
        sa.Column("seen_at", UtcDateTime, nullable=False),
    )
    add_index("cmt_view", "ix_cmt_view_time", "seen_at")
    op.execute(
        sa.text(
            "UPDATE cmt_section SET scored_at = "
            "(SELECT MAX(score_at) FROM cmt_score WHERE cmt_score.section_id = cmt_section.section_id)"
            " WHERE scored_at IS NULL"
        )
    )
    op.execute(
        sa.text(
            "UPDATE cmt_comment SET attributes = attributes | :staff WHERE comment_id IN (SELECT comment_id FROM "
            "cmt_event WHERE kind = 'publish' AND actor_rank >= :operator AND request_key NOT LIKE :imported)"
        ).bindparams(staff=_STAFF, operator=_OPERATOR, imported=f"{_IMPORTED}%")
    )
