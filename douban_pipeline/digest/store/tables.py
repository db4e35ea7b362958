"""The tables of the digest system. Their names are fixed; times are UTC."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Date,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    true,
)

from douban_pipeline.core.column_types import BigId, JsonText, LongText, count, key, moment, words
from douban_pipeline.core.platform_tables import MYSQL_OPTIONS, gate_table, snapshot_table

metadata = MetaData()

slot_run = Table(
    "slot_run",
    metadata,
    key("run_id"),
    Column("run_date", Date, nullable=False),
    Column("slot", String(5), nullable=False),
    Column("status", String(16), nullable=False),
    # Current stage: ingest, analyse, findings, report; empty once it has ended.
    words("stage", 16),
    moment("scheduled_at", nullable=False),
    moment("window_start"),
    moment("window_end"),
    # Accounts whose window is longer than usual, because they were not read for a longer time.
    count("extended_accounts"),
    # Whether its messages are sent; not if it was run too late or in a backfill.
    Column("pushes", Boolean, nullable=False, server_default=false()),
    Column("error", Text, nullable=False),
    Column("counters", JsonText, nullable=False),
    count("attempts"),
    words("dagster_run_id", 64),
    words("lease_owner", 160),
    moment("lease_until"),
    moment("started_at", nullable=False),
    moment("finished_at"),
    moment("updated_at", nullable=False),
    UniqueConstraint("run_date", "slot", name="uq_digest_slot_run_slot"),
    Index("ix_digest_slot_run_state", "status", "run_date"),
    **MYSQL_OPTIONS,
)

account = Table(
    "digest_account",
    metadata,
    Column("mp_id", String(100), primary_key=True),
    # werss, or feed for a source of the feeds system.
    Column("kind", String(16), nullable=False),
    words("name", 300),
    # When WeRSS last synced it with WeChat; no longer changes once the authorisation has expired.
    moment("synced_at"),
    moment("last_good_at"),
    words("last_error", 500),
    moment("last_error_at"),
    # False if WeRSS, or the settings, no longer list it.
    Column("followed", Boolean, nullable=False, server_default=true()),
    moment("updated_at", nullable=False),
    **MYSQL_OPTIONS,
)

content_item = Table(
    "content_item",
    metadata,
    key("content_item_id"),
    Column("external_id", String(191), nullable=False),
    # NULL if it has no address.
    Column("url_hash", String(64)),
    # NULL until there is a text.
    Column("content_hash", String(64)),
    Column("mp_id", String(100), nullable=False),
    words("mp_name", 300),
    words("title", 500),
    Column("url", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("content_text", LongText),
    moment("published_at"),
    Column("body_state", String(16), nullable=False),
    words("body_reason", 300),
    count("body_attempts"),
    moment("body_checked_at"),
    # 0 waiting, 1 in progress, 2 analysed, 3 failed (retried), 4 given up, 5 nothing to analyse, 6 a duplicate.
    count("analyzed_status"),
    words("analysis_error", 500),
    count("analysis_attempts"),
    moment("analysed_at"),
    Column("duplicate_of", BigId),
    # The slot that ingested it.
    Column("run_id", BigId, nullable=False),
    words("claim_owner", 160),
    moment("claim_until"),
    moment("created_at", nullable=False),
    moment("updated_at", nullable=False),
    UniqueConstraint("external_id", name="uq_digest_content_external"),
    UniqueConstraint("url_hash", name="uq_digest_content_url"),
    Index("ix_digest_content_hash", "content_hash"),
    Index("ix_digest_content_waiting", "analyzed_status", "published_at"),
    Index("ix_digest_content_body", "body_state", "published_at"),
    Index("ix_digest_content_account", "mp_id", "published_at"),
    Index("ix_digest_content_run", "run_id"),
    **MYSQL_OPTIONS,
)

analysis_result = Table(
    "analysis_result",
    metadata,
    key("analysis_id"),
    Column("content_item_id", BigId, nullable=False),
    # The slot that analysed it successfully; only this one may push it.
    Column("run_id", BigId, nullable=False),
    Column("score", Integer, nullable=False),
    Column("has_opportunity", Boolean, nullable=False),
    Column("summary", Text, nullable=False),
    # Why a person must check it before it may be pushed, such as instructions to the model in its text.
    Column("suspicions", JsonText, nullable=False),
    Column("truncated", Boolean, nullable=False, server_default=false()),
    Column("model", String(100), nullable=False),
    words("wire_model", 100),
    Column("rubric_hash", String(64), nullable=False),
    count("calls"),
    count("prompt_tokens"),
    count("completion_tokens"),
    count("duration_ms"),
    Column("raw", JsonText, nullable=False),
    Column("snapshot_id", BigId),
    moment("created_at", nullable=False),
    UniqueConstraint("content_item_id", name="uq_digest_analysis_item"),
    Index("ix_digest_analysis_run", "run_id", "score"),
    **MYSQL_OPTIONS,
)

opportunity = Table(
    "opportunity",
    metadata,
    key("opportunity_id"),
    Column("analysis_id", BigId, nullable=False),
    Column("position", Integer, nullable=False),
    words("type", 100),
    words("title", 300),
    Column("targets", JsonText, nullable=False),
    Column("reason", Text, nullable=False),
    Column("risk", Text, nullable=False),
    words("horizon", 100),
    UniqueConstraint("analysis_id", "position", name="uq_digest_opportunity_position"),
    **MYSQL_OPTIONS,
)

daily_report = Table(
    "daily_report",
    metadata,
    key("report_id"),
    Column("report_date", Date, nullable=False),
    # good: written by the model; plain: compiled without it; failed: could not be made, `reason` says why.
    Column("state", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("digest_md", LongText, nullable=False),
    Column("digest_json", JsonText, nullable=False),
    Column("slots_done", JsonText, nullable=False),
    Column("stats", JsonText, nullable=False),
    words("model", 100),
    words("wire_model", 100),
    moment("created_at", nullable=False),
    moment("updated_at", nullable=False),
    UniqueConstraint("report_date", name="uq_digest_report_date"),
    **MYSQL_OPTIONS,
)

notification_log = Table(
    "notification_log",
    metadata,
    key("id"),
    # sha1 of report_date, slot, push_type, channel and target_url, with separators.
    Column("msg_uuid", String(40), nullable=False),
    Column("report_date", Date, nullable=False),
    Column("slot", String(5), nullable=False),
    # finding, report, alert or undelivered.
    Column("push_type", String(16), nullable=False),
    Column("channel", String(16), nullable=False),
    Column("target_url", String(500), nullable=False),
    Column("title", String(300), nullable=False),
    Column("body", Text, nullable=False),
    Column("payload_hash", String(64), nullable=False),
    # pending, sending, sent, failed, unknown or dead.
    Column("state", String(16), nullable=False),
    count("attempts"),
    words("lease_owner", 160),
    moment("lease_until"),
    moment("next_attempt_at"),
    Column("response", Text),
    Column("error", Text),
    moment("created_at", nullable=False),
    moment("updated_at", nullable=False),
    moment("sent_at"),
    UniqueConstraint("msg_uuid", name="uq_digest_notification_uuid"),
    UniqueConstraint("report_date", "slot", "push_type", "channel", name="uq_digest_notification_push"),
    Index("ix_digest_notification_due", "state", "next_attempt_at"),
    **MYSQL_OPTIONS,
)

snapshot = snapshot_table(metadata, "digest_snapshot")
gate = gate_table(metadata, "digest_gate")
