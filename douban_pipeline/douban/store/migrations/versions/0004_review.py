"""Decisions that wait, are checked, and are taken back together; what a verdict was reached for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context, op

from douban_pipeline.core.column_types import UtcDateTime
from douban_pipeline.core.migration_steps import add_columns, add_index

revision = "0004"
down_revision = "0003"
release = "0.2.0"

EMPTY = sa.text("''")


def upgrade() -> None:
    """Add what is missing."""
    own = f"{context.config.attributes['prefix']}douban_"
    add_columns(f"{own}verdict", sa.Column("fingerprint", sa.String(length=32), server_default=EMPTY, nullable=False))
    add_columns(
        f"{own}decision",
        sa.Column("days", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("accept_conflicts", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("verdict_id", sa.BigInteger(), nullable=True),
        sa.Column("fingerprint", sa.String(length=32), server_default=EMPTY, nullable=False),
        sa.Column("checked_at", UtcDateTime(), nullable=True),
        sa.Column("batch_id", sa.String(length=64), server_default=EMPTY, nullable=False),
        sa.Column("task_id", sa.BigInteger(), nullable=True),
        sa.Column("run_after", UtcDateTime(), nullable=True),
    )
    add_index(f"{own}video", f"ix_{own}video_locked", "douban_id_locked", "douban_id_lock_time")
    add_index(f"{own}decision", f"ix_{own}decision_batch", "batch_id")
    add_index(f"{own}decision", f"ix_{own}decision_task", "task_id")
    add_index(f"{own}decision", f"ix_{own}decision_subject", "douban_id", "state")
    add_index(f"{own}log", f"ix_{own}log_decision", "decision_id")
    add_index(f"{own}log", f"ix_{own}log_operator", "operator", "prepared_at")
    add_index(f"{own}log", f"ix_{own}log_rules", "rule_version", "prepared_at")
    _note_reverted(f"{own}decision", f"{own}log")


def _note_reverted(decisions: str, log: str) -> None:
    """Mark decisions whose changes were reverted: earlier releases kept that with the changes only."""
    decision = sa.table(decisions, sa.column("decision_id"), sa.column("state", sa.String))
    change = sa.table(log, sa.column("decision_id"), sa.column("state", sa.String))
    undone = sa.select(change.c.decision_id).where(change.c.decision_id.is_not(None), change.c.state == "reverted")
    op.execute(sa.update(decision).where(decision.c.decision_id.in_(undone)).values(state="reverted"))
