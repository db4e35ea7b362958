"""The tables of the first release."""

import sqlalchemy as sa
from alembic import context

from douban_pipeline.core.column_types import BigId, JsonText, LongBlob, UtcDateTime
from douban_pipeline.core.migration_steps import add_index, create_table

revision = "0001"
down_revision = None
release = "0.1.0"


def upgrade() -> None:
    """Create our tables."""
    own = f"{context.config.attributes['prefix']}douban_"
    create_table(
        f"{own}decision",
        sa.Column("decision_id", BigId, autoincrement=True, nullable=False),
        sa.Column("vod_id", sa.BigInteger(), nullable=False),
        sa.Column("shard", sa.SmallInteger(), nullable=False),
        sa.Column("action", sa.String(length=32), nullable=False),
        sa.Column("douban_id", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("lock", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.Column("reviewer", sa.String(length=64), nullable=False),
        sa.Column("note", sa.String(length=500), server_default=sa.text("''"), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("state_reason", sa.String(length=500), server_default=sa.text("''"), nullable=False),
        sa.Column("pending_key", sa.String(length=96), nullable=True),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("settled_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("decision_id"),
        sa.UniqueConstraint("pending_key"),
    )
    add_index(f"{own}decision", f"ix_{own}decision_pending", "state", "shard")
    add_index(f"{own}decision", f"ix_{own}decision_video", "vod_id", "decision_id")
    create_table(
        f"{own}gate",
        sa.Column("source", sa.String(length=32), nullable=False),
        sa.Column("next_slot_at", UtcDateTime(), nullable=False),
        sa.Column("interval_ms", sa.Integer(), nullable=False),
        sa.Column("concurrency", sa.Integer(), nullable=False),
        sa.Column("holders", JsonText(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("open_until", UtcDateTime(), nullable=True),
        sa.Column("probe_owner", sa.String(length=160), nullable=True),
        sa.Column("probe_until", UtcDateTime(), nullable=True),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("granted", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("reason", sa.String(length=500), server_default=sa.text("''"), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("source"),
    )
    create_table(
        f"{own}log",
        sa.Column("change_id", BigId, autoincrement=True, nullable=False),
        sa.Column("vod_id", sa.BigInteger(), nullable=False),
        sa.Column("shard", sa.SmallInteger(), nullable=False),
        sa.Column("action", sa.String(length=32), nullable=False),
        sa.Column("old_values", JsonText(), nullable=False),
        sa.Column("new_values", JsonText(), nullable=False),
        sa.Column("state_old", JsonText(), nullable=False),
        sa.Column("state_new", JsonText(), nullable=False),
        sa.Column("reason", sa.String(length=500), server_default=sa.text("''"), nullable=False),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("operator", sa.String(length=64), nullable=False),
        sa.Column("batch_id", sa.String(length=64), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("owner", sa.String(length=160), server_default=sa.text("''"), nullable=False),
        sa.Column("rule_version", sa.String(length=32), server_default=sa.text("''"), nullable=False),
        sa.Column("task_id", sa.BigInteger(), nullable=True),
        sa.Column("verdict_id", sa.BigInteger(), nullable=True),
        sa.Column("decision_id", sa.BigInteger(), nullable=True),
        sa.Column("snapshot_id", sa.BigInteger(), nullable=True),
        sa.Column("reverts_change_id", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("state_reason", sa.String(length=500), server_default=sa.text("''"), nullable=False),
        sa.Column("prepared_at", UtcDateTime(), nullable=False),
        sa.Column("applied_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("change_id"),
    )
    add_index(f"{own}log", f"ix_{own}log_applied", "applied_at")
    add_index(f"{own}log", f"ix_{own}log_batch", "batch_id")
    add_index(f"{own}log", f"ix_{own}log_reverts", "reverts_change_id")
    add_index(f"{own}log", f"ix_{own}log_run", "run_id")
    add_index(f"{own}log", f"ix_{own}log_state", "state", "prepared_at")
    add_index(f"{own}log", f"ix_{own}log_video", "vod_id", "change_id")
    create_table(
        f"{own}review_candidate",
        sa.Column("candidate_id", BigId, autoincrement=True, nullable=False),
        sa.Column("verdict_id", sa.BigInteger(), nullable=False),
        sa.Column("vod_id", sa.BigInteger(), nullable=False),
        sa.Column("rank", sa.SmallInteger(), nullable=False),
        sa.Column("douban_id", sa.BigInteger(), nullable=False),
        sa.Column("title", sa.String(length=255), server_default=sa.text("''"), nullable=False),
        sa.Column("year", sa.Integer(), nullable=True),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("points", JsonText(), nullable=True),
        sa.Column("rejects", JsonText(), nullable=True),
        sa.Column("conflicts", JsonText(), nullable=True),
        sa.Column("facts", JsonText(), nullable=True),
        sa.Column("snapshot_id", sa.BigInteger(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("candidate_id"),
        sa.UniqueConstraint("verdict_id", "rank", name=f"uq_{own}candidate_rank"),
    )
    add_index(f"{own}review_candidate", f"ix_{own}candidate_video", "vod_id", "verdict_id")
    create_table(
        f"{own}snapshot",
        sa.Column("snapshot_id", BigId, autoincrement=True, nullable=False),
        sa.Column("source", sa.String(length=32), nullable=False),
        sa.Column("key_hash", sa.String(length=64), nullable=False),
        sa.Column("request_key", sa.String(length=500), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column(
            "body",
            LongBlob,
            nullable=False,
        ),
        sa.Column("parser_version", sa.String(length=32), nullable=False),
        sa.Column("fetched_at", UtcDateTime(), nullable=False),
        sa.Column("seen_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("snapshot_id"),
        sa.UniqueConstraint("source", "key_hash", "sha256", name=f"uq_{own}snapshot_content"),
    )
    add_index(f"{own}snapshot", f"ix_{own}snapshot_latest", "source", "key_hash", "seen_at")
    create_table(
        f"{own}task",
        sa.Column("task_id", BigId, autoincrement=True, nullable=False),
        sa.Column("vod_id", sa.BigInteger(), nullable=False),
        sa.Column("shard", sa.SmallInteger(), nullable=False),
        sa.Column("task_type", sa.String(length=24), nullable=False),
        sa.Column("stage", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("open_key", sa.String(length=48), nullable=True),
        sa.Column("priority", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("run_after", UtcDateTime(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("lease_owner", sa.String(length=160), nullable=True),
        sa.Column("lease_until", UtcDateTime(), nullable=True),
        sa.Column("last_error", sa.String(length=500), server_default=sa.text("''"), nullable=False),
        sa.Column("payload", JsonText(), nullable=True),
        sa.Column("run_id", sa.String(length=64), server_default=sa.text("''"), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("task_id"),
        sa.UniqueConstraint("open_key"),
    )
    add_index(f"{own}task", f"ix_{own}task_finished", "finished_at")
    add_index(f"{own}task", f"ix_{own}task_lease", "lease_owner")
    add_index(f"{own}task", f"ix_{own}task_queue", "status", "run_after", "priority")
    add_index(f"{own}task", f"ix_{own}task_shard", "shard", "stage", "status")
    add_index(f"{own}task", f"ix_{own}task_video", "vod_id", "task_type", "status")
    create_table(
        f"{own}verdict",
        sa.Column("verdict_id", BigId, autoincrement=True, nullable=False),
        sa.Column("vod_id", sa.BigInteger(), nullable=False),
        sa.Column("shard", sa.SmallInteger(), nullable=False),
        sa.Column("task_id", sa.BigInteger(), nullable=False),
        sa.Column("verdict", sa.String(length=16), nullable=False),
        sa.Column("douban_id", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("lead", sa.Double(), nullable=True),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.Column("source_healthy", sa.Boolean(), nullable=False),
        sa.Column("rejects", JsonText(), nullable=True),
        sa.Column("reasons", JsonText(), nullable=True),
        sa.Column("explanation", sa.String(length=500), server_default=sa.text("''"), nullable=False),
        sa.Column("facts", JsonText(), nullable=True),
        sa.Column("snapshots", JsonText(), nullable=True),
        sa.Column("rule_version", sa.String(length=32), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("state_reason", sa.String(length=500), server_default=sa.text("''"), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("verdict_id"),
    )
    add_index(f"{own}verdict", f"ix_{own}verdict_created", "created_at")
    add_index(f"{own}verdict", f"ix_{own}verdict_pending", "state", "verdict")
    add_index(f"{own}verdict", f"ix_{own}verdict_video", "vod_id", "verdict_id")
    create_table(
        f"{own}video",
        sa.Column("vod_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("type_id", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("vod_time", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("vod_douban_id", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("shard", sa.SmallInteger(), nullable=False),
        sa.Column("fingerprint", sa.String(length=32), server_default=sa.text("''"), nullable=False),
        sa.Column("douban_id_locked", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.Column("douban_id_lock_time", UtcDateTime(), nullable=True),
        sa.Column("douban_id_source", sa.String(length=32), server_default=sa.text("''"), nullable=False),
        sa.Column("douban_id_confidence", sa.Double(), nullable=True),
        sa.Column("douban_review_status", sa.String(length=16), server_default=sa.text("'NOT_FOUND'"), nullable=False),
        sa.Column("douban_review_reason", sa.String(length=500), server_default=sa.text("''"), nullable=False),
        sa.Column("douban_ignore_until", UtcDateTime(), nullable=True),
        sa.Column("douban_last_sync_at", UtcDateTime(), nullable=True),
        sa.Column("douban_next_sync_at", UtcDateTime(), nullable=True),
        sa.Column("douban_sync_fail_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("douban_last_fail_at", UtcDateTime(), nullable=True),
        sa.Column("douban_last_fail_reason", sa.String(length=500), server_default=sa.text("''"), nullable=False),
        sa.Column("intro_locked", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.Column("intro_lock_time", UtcDateTime(), nullable=True),
        sa.Column("intro_ai_source", sa.String(length=64), server_default=sa.text("''"), nullable=False),
        sa.Column("intro_ai_last_at", UtcDateTime(), nullable=True),
        sa.Column("intro_ai_fail_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("intro_ai_last_fail_at", UtcDateTime(), nullable=True),
        sa.Column("intro_ai_last_fail_reason", sa.String(length=500), server_default=sa.text("''"), nullable=False),
        sa.PrimaryKeyConstraint("vod_id"),
    )
    add_index(f"{own}video", f"ix_{own}video_due", "douban_next_sync_at", "type_id")
    add_index(f"{own}video", f"ix_{own}video_intro", "intro_locked", "intro_ai_last_at")
    add_index(f"{own}video", f"ix_{own}video_shard", "shard", "douban_next_sync_at")
    add_index(f"{own}video", f"ix_{own}video_status", "douban_review_status", "douban_next_sync_at")
    add_index(f"{own}video", f"ix_{own}video_subject", "vod_douban_id")
    add_index(f"{own}video", f"ix_{own}video_synced", "douban_last_sync_at")
    add_index(f"{own}video", f"ix_{own}video_time", "vod_time")
