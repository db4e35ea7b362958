"""Ids that a web search found, and decisions that came in a spreadsheet, are told from others.

Of links that were made before, the archive says which search answered first: those of a web search become
``ai_search``. Where it does not say, they stay ``auto``. No release before noted how a decision was handed in: those
stay ``person``.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context, op

from douban_pipeline.core.migration_steps import add_columns

revision = "0006"
down_revision = "0005"
release = "0.2.0"

WEB_SEARCHES = ("searxng", "bocha")


def upgrade() -> None:
    """Add what is missing."""
    own = f"{context.config.attributes['prefix']}douban_"
    add_columns(f"{own}decision", sa.Column("imported", sa.Boolean(), server_default=sa.false(), nullable=False))
    _tell_web_searches(own)


def _tell_web_searches(own: str) -> None:
    video = sa.table(f"{own}video", sa.column("vod_id"), sa.column("douban_id_source", sa.String))
    log = sa.table(f"{own}log", *map(sa.column, ("vod_id", "verdict_id")), *_texts("action", "state"))
    verdict = sa.table(f"{own}verdict", sa.column("verdict_id"), *_texts("snapshots"))
    snapshot = sa.table(f"{own}snapshot", sa.column("snapshot_id"), *_texts("source"))
    # A list of numbers as JSON, those of the searches first. Read without functions for JSON, which old servers lack.
    inside = sa.func.nullif(sa.func.replace(sa.func.replace(verdict.c.snapshots, "[", ""), "]", ""), "")
    if context.get_context().dialect.name == "sqlite":
        first = sa.cast(inside, sa.Integer)  # as far as it is a number
    else:
        first = sa.cast(sa.func.substring_index(inside, ",", 1), sa.BigInteger)
    named = (
        sa.select(log.c.vod_id)
        .join(verdict, verdict.c.verdict_id == log.c.verdict_id)
        .join(snapshot, snapshot.c.snapshot_id == first)
        .where(log.c.action == "link", log.c.state == "applied", snapshot.c.source.in_(WEB_SEARCHES))
    )
    op.execute(
        sa.update(video)
        .where(video.c.douban_id_source == "auto", video.c.vod_id.in_(named))
        .values(douban_id_source="ai_search")
    )


def _texts(*names: str) -> list[sa.ColumnClause[str]]:
    return [sa.column(name, sa.String) for name in names]
