"""What Douban calls the subjects of linked videos, for other systems to read.

Filled with the titles of the candidates that confirmed links were chosen from; of other links, the next sync tells it.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context, op

from douban_pipeline.core.column_types import UtcDateTime
from douban_pipeline.core.migration_steps import create_table

revision = "0012"
down_revision = "0011"
release = "0.3.0"


def upgrade() -> None:
    """Add what is missing."""
    own = f"{context.config.attributes['prefix']}douban_"
    create_table(
        f"{own}subject",
        sa.Column("douban_id", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("title", sa.String(300), nullable=False),
        sa.Column("changed_at", UtcDateTime(), nullable=False),
    )
    _fill(own)


def _fill(own: str) -> None:
    subject = sa.table(f"{own}subject", *map(sa.column, ("douban_id", "title", "changed_at")))
    video = sa.table(f"{own}video", *map(sa.column, ("vod_id", "vod_douban_id", "douban_review_status")))
    names = ("vod_id", "douban_id", "title", "created_at")
    candidate = sa.table(f"{own}review_candidate", *map(sa.column, names), sa.column("fetched", sa.Boolean))
    titles = (
        sa.select(candidate.c.douban_id, sa.func.max(candidate.c.title), sa.func.max(candidate.c.created_at))
        .join(video, sa.and_(video.c.vod_id == candidate.c.vod_id, video.c.vod_douban_id == candidate.c.douban_id))
        .where(video.c.douban_review_status == "CONFIRMED", candidate.c.fetched, candidate.c.title != "")
        # An upgrade that was interrupted here is repeated.
        .where(~sa.exists().where(subject.c.douban_id == candidate.c.douban_id))
        .group_by(candidate.c.douban_id)
    )
    op.execute(sa.insert(subject).from_select(["douban_id", "title", "changed_at"], titles))
