"""The first tables of the digest system."""

from __future__ import annotations

import sqlalchemy as sa

from douban_pipeline.core.column_types import BigId, JsonText, LongBlob, LongText, UtcDateTime
from douban_pipeline.core.migration_steps import add_index, create_table

revision = "0001"
down_revision = None
release = "0.2.0"

EMPTY = sa.text("''")
ZERO = sa.text("0")


def upgrade() -> None:
    """Create the tables that are missing."""
    create_table(
        "slot_run",
        sa.Column("run_id", BigId, primary_key=True, autoincrement=True),
        sa.Column("run_date", sa.Date, nullable=False),
        sa.Column("slot", sa.String(5), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("stage", sa.String(16), nullable=False, server_default=EMPTY),
        sa.Column("scheduled_at", UtcDateTime, nullable=False),
        sa.Column("window_start", UtcDateTime),
        sa.Column("window_end", UtcDateTime),
        sa.Column("extended_accounts", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("pushes", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("counters", JsonText, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("dagster_run_id", sa.String(64), nullable=False, server_default=EMPTY),
        sa.Column("lease_owner", sa.String(160), nullable=False, server_default=EMPTY),
        sa.Column("lease_until", UtcDateTime),
        sa.Column("started_at", UtcDateTime, nullable=False),
        sa.Column("finished_at", UtcDateTime),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("run_date", "slot", name="uq_digest_slot_run_slot"),
    )
    add_index("slot_run", "ix_digest_slot_run_state", "status", "run_date")
    create_table(
        "digest_account",
        sa.Column("mp_id", sa.String(100), primary_key=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("name", sa.String(300), nullable=False, server_default=EMPTY),
        sa.Column("synced_at", UtcDateTime),
        sa.Column("last_good_at", UtcDateTime),
        sa.Column("last_error", sa.String(500), nullable=False, server_default=EMPTY),
        sa.Column("last_error_at", UtcDateTime),
        sa.Column("followed", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("updated_at", UtcDateTime, nullable=False),
    )
    create_table(
        "content_item",
        sa.Column("content_item_id", BigId, primary_key=True, autoincrement=True),
        sa.Column("external_id", sa.String(191), nullable=False),
        sa.Column("url_hash", sa.String(64)),
        sa.Column("content_hash", sa.String(64)),
        sa.Column("mp_id", sa.String(100), nullable=False),
        sa.Column("mp_name", sa.String(300), nullable=False, server_default=EMPTY),
        sa.Column("title", sa.String(500), nullable=False, server_default=EMPTY),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("content_text", LongText),
        sa.Column("published_at", UtcDateTime),
        sa.Column("body_state", sa.String(16), nullable=False),
        sa.Column("body_reason", sa.String(300), nullable=False, server_default=EMPTY),
        sa.Column("body_attempts", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("body_checked_at", UtcDateTime),
        sa.Column("analyzed_status", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("analysis_error", sa.String(500), nullable=False, server_default=EMPTY),
        sa.Column("analysis_attempts", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("analysed_at", UtcDateTime),
        sa.Column("duplicate_of", BigId),
        sa.Column("run_id", BigId, nullable=False),
        sa.Column("claim_owner", sa.String(160), nullable=False, server_default=EMPTY),
        sa.Column("claim_until", UtcDateTime),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("external_id", name="uq_digest_content_external"),
        sa.UniqueConstraint("url_hash", name="uq_digest_content_url"),
    )
    add_index("content_item", "ix_digest_content_hash", "content_hash")
    add_index("content_item", "ix_digest_content_waiting", "analyzed_status", "published_at")
    add_index("content_item", "ix_digest_content_body", "body_state", "published_at")
    add_index("content_item", "ix_digest_content_account", "mp_id", "published_at")
    add_index("content_item", "ix_digest_content_run", "run_id")
    create_table(
        "analysis_result",
        sa.Column("analysis_id", BigId, primary_key=True, autoincrement=True),
        sa.Column("content_item_id", BigId, nullable=False),
        sa.Column("run_id", BigId, nullable=False),
        sa.Column("score", sa.Integer, nullable=False),
        sa.Column("has_opportunity", sa.Boolean, nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("suspicions", JsonText, nullable=False),
        sa.Column("truncated", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("model", sa.String(100), nullable=False),
        sa.Column("wire_model", sa.String(100), nullable=False, server_default=EMPTY),
        sa.Column("rubric_hash", sa.String(64), nullable=False),
        sa.Column("calls", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("prompt_tokens", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("completion_tokens", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("duration_ms", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("raw", JsonText, nullable=False),
        sa.Column("snapshot_id", BigId),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("content_item_id", name="uq_digest_analysis_item"),
    )
    add_index("analysis_result", "ix_digest_analysis_run", "run_id", "score")
    create_table(
        "opportunity",
        sa.Column("opportunity_id", BigId, primary_key=True, autoincrement=True),
        sa.Column("analysis_id", BigId, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("type", sa.String(100), nullable=False, server_default=EMPTY),
        sa.Column("title", sa.String(300), nullable=False, server_default=EMPTY),
        sa.Column("targets", JsonText, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("risk", sa.Text, nullable=False),
        sa.Column("horizon", sa.String(100), nullable=False, server_default=EMPTY),
        sa.UniqueConstraint("analysis_id", "position", name="uq_digest_opportunity_position"),
    )
    create_table(
        "daily_report",
        sa.Column("report_id", BigId, primary_key=True, autoincrement=True),
        sa.Column("report_date", sa.Date, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("digest_md", LongText, nullable=False),
        sa.Column("digest_json", JsonText, nullable=False),
        sa.Column("slots_done", JsonText, nullable=False),
        sa.Column("stats", JsonText, nullable=False),
        sa.Column("model", sa.String(100), nullable=False, server_default=EMPTY),
        sa.Column("wire_model", sa.String(100), nullable=False, server_default=EMPTY),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("report_date", name="uq_digest_report_date"),
    )
    create_table(
        "notification_log",
        sa.Column("id", BigId, primary_key=True, autoincrement=True),
        sa.Column("msg_uuid", sa.String(40), nullable=False),
        sa.Column("report_date", sa.Date, nullable=False),
        sa.Column("slot", sa.String(5), nullable=False),
        sa.Column("push_type", sa.String(16), nullable=False),
        sa.Column("channel", sa.String(16), nullable=False),
        sa.Column("target_url", sa.String(500), nullable=False),
        sa.Column("title", sa.String(300), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("payload_hash", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("lease_owner", sa.String(160), nullable=False, server_default=EMPTY),
        sa.Column("lease_until", UtcDateTime),
        sa.Column("next_attempt_at", UtcDateTime),
        sa.Column("response", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.Column("sent_at", UtcDateTime),
        sa.UniqueConstraint("msg_uuid", name="uq_digest_notification_uuid"),
        sa.UniqueConstraint("report_date", "slot", "push_type", "channel", name="uq_digest_notification_push"),
    )
    add_index("notification_log", "ix_digest_notification_due", "state", "next_attempt_at")
    create_table(
        "digest_snapshot",
        sa.Column("snapshot_id", BigId, primary_key=True, autoincrement=True),
        sa.Column("source", sa.String(32), nullable=False),
        sa.Column("key_hash", sa.String(64), nullable=False),
        sa.Column("request_key", sa.String(500), nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("body", LongBlob, nullable=False),
        sa.Column("parser_version", sa.String(32), nullable=False),
        sa.Column("fetched_at", UtcDateTime, nullable=False),
        sa.Column("seen_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("source", "key_hash", "sha256", name="uq_digest_snapshot_content"),
    )
    add_index("digest_snapshot", "ix_digest_snapshot_seen", "seen_at")
    create_table(
        "digest_gate",
        sa.Column("source", sa.String(32), primary_key=True),
        sa.Column("next_slot_at", UtcDateTime, nullable=False),
        sa.Column("interval_ms", sa.Integer, nullable=False),
        sa.Column("concurrency", sa.Integer, nullable=False),
        sa.Column("holders", JsonText, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("open_until", UtcDateTime),
        sa.Column("probe_owner", sa.String(160)),
        sa.Column("probe_until", UtcDateTime),
        sa.Column("failures", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("granted", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("reason", sa.String(500), nullable=False, server_default=sa.text("''")),
        sa.Column("changed_by", sa.String(64), nullable=False, server_default=sa.text("''")),
        sa.Column("requests_per_day", sa.Integer),
        sa.Column("tokens_per_minute", sa.Integer),
        sa.Column("tokens_per_day", sa.Integer),
        sa.Column("usage", JsonText, quote=True),
        sa.Column("updated_at", UtcDateTime, nullable=False),
    )
