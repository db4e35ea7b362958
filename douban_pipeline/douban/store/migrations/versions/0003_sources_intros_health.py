"""Budgets and counters of the gate, intros by a language model, known people, alerts, and samples of health."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context

from douban_pipeline.core.column_types import BigId, JsonText, UtcDateTime
from douban_pipeline.core.migration_steps import add_columns, add_index, create_table

revision = "0003"
down_revision = "0002"
release = "0.2.0"

EMPTY = sa.text("''")
ZERO = sa.text("0")


def upgrade() -> None:
    """Add what is missing."""
    own = f"{context.config.attributes['prefix']}douban_"
    add_columns(f"{own}task", sa.Column("started_at", UtcDateTime(), nullable=True))
    add_columns(
        f"{own}gate",
        sa.Column("changed_by", sa.String(length=64), server_default=EMPTY, nullable=False),
        sa.Column("requests_per_day", sa.Integer(), nullable=True),
        sa.Column("tokens_per_minute", sa.Integer(), nullable=True),
        sa.Column("tokens_per_day", sa.Integer(), nullable=True),
        sa.Column("usage", JsonText(), nullable=True, quote=True),
    )
    add_index(f"{own}verdict", f"ix_{own}verdict_mix", "created_at", "verdict", instead_of=f"ix_{own}verdict_created")
    add_index(f"{own}snapshot", f"ix_{own}snapshot_seen", "seen_at")
    create_table(
        f"{own}intro",
        sa.Column("intro_id", BigId, autoincrement=True, nullable=False),
        sa.Column("vod_id", sa.BigInteger(), nullable=False),
        sa.Column("shard", sa.SmallInteger(), nullable=False),
        sa.Column("douban_id", sa.BigInteger(), server_default=ZERO, nullable=False),
        sa.Column("task_id", sa.BigInteger(), nullable=True),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.String(length=500), server_default=EMPTY, nullable=False),
        sa.Column("violations", JsonText(), nullable=True),
        sa.Column("intro_text", sa.Text(), nullable=True),
        sa.Column("model", sa.String(length=128), server_default=EMPTY, nullable=False),
        sa.Column("provider", sa.String(length=64), server_default=EMPTY, nullable=False),
        sa.Column("prompt_version", sa.String(length=32), nullable=False),
        sa.Column("fact_sheet", JsonText(), nullable=True),
        sa.Column("fact_sheet_hash", sa.String(length=64), nullable=False),
        sa.Column("cost_usd", sa.Double(), server_default=ZERO, nullable=False),
        sa.Column("prompt_tokens", sa.Integer(), server_default=ZERO, nullable=False),
        sa.Column("completion_tokens", sa.Integer(), server_default=ZERO, nullable=False),
        sa.Column("snapshot_id", sa.BigInteger(), nullable=True),
        sa.Column("change_id", sa.BigInteger(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("intro_id"),
    )
    add_index(f"{own}intro", f"ix_{own}intro_video", "vod_id", "intro_id")
    add_index(f"{own}intro", f"ix_{own}intro_created", "created_at", "state")
    add_index(f"{own}intro", f"ix_{own}intro_change", "change_id")
    create_table(
        f"{own}intro_mark",
        sa.Column("mark", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("intro_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("mark", "intro_id"),
    )
    add_index(f"{own}intro_mark", f"ix_{own}intro_mark_intro", "intro_id")
    create_table(
        f"{own}person",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("seen_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    create_table(
        f"{own}alert",
        sa.Column("alert_id", BigId, autoincrement=True, nullable=False),
        sa.Column("cause", sa.String(length=190), nullable=False),
        sa.Column("open_key", sa.String(length=190), nullable=True),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.Column("times", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("first_at", UtcDateTime(), nullable=False),
        sa.Column("last_at", UtcDateTime(), nullable=False),
        sa.Column("sent_at", UtcDateTime(), nullable=True),
        sa.Column("send_error", sa.String(length=500), server_default=EMPTY, nullable=False),
        sa.Column("ended_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("alert_id"),
        sa.UniqueConstraint("open_key"),
    )
    add_index(f"{own}alert", f"ix_{own}alert_first", "first_at")
    create_table(
        f"{own}health",
        sa.Column("sampled_at", UtcDateTime(), nullable=False),
        sa.Column("figures", JsonText(), nullable=False),
        sa.PrimaryKeyConstraint("sampled_at"),
    )
