"""The first tables of the feeds system."""

from __future__ import annotations

import sqlalchemy as sa

from douban_pipeline.core.column_types import BigId, JsonText, LongBlob, UtcDateTime
from douban_pipeline.core.migration_steps import add_index, create_table

revision = "0001"
down_revision = None
release = "0.2.0"

EMPTY = sa.text("''")
ZERO = sa.text("0")


def upgrade() -> None:
    """Create the tables that are missing."""
    create_table(
        "feed_source",
        sa.Column("source_id", sa.String(64), primary_key=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("url_hash", sa.String(64), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("title", sa.String(300), nullable=False, server_default=EMPTY),
        sa.Column("options", JsonText, nullable=False),
        sa.Column("manual_cadence", sa.String(2), nullable=False, server_default=sa.text("'P2'")),
        sa.Column("state", sa.String(16), nullable=False, server_default=sa.text("'active'")),
        sa.Column("state_reason", sa.String(500), nullable=False, server_default=EMPTY),
        sa.Column("etag", sa.String(500), nullable=False, server_default=EMPTY),
        sa.Column("last_modified", sa.String(100), nullable=False, server_default=EMPTY),
        sa.Column("body_hash", sa.String(64), nullable=False, server_default=EMPTY),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("kind", "url_hash", name="uq_feed_source_url"),
    )
    add_index("feed_source", "ix_feed_source_host", "host")
    create_table(
        "source_stats",
        sa.Column("source_id", sa.String(64), primary_key=True),
        sa.Column("source_type", sa.String(16), nullable=False, server_default=sa.text("'rss'")),
        sa.Column("frequency_type", sa.String(16), server_default=sa.text("'daily'")),
        sa.Column("cadence", sa.String(2), server_default=sa.text("'P2'")),
        sa.Column("avg_publish_hour", sa.Double),
        sa.Column("std_publish_hour", sa.Double),
        sa.Column("next_due_at", sa.BigInteger, server_default=ZERO),
        sa.Column("last_check_at", sa.BigInteger, server_default=ZERO),
        sa.Column("last_article_at", sa.BigInteger, server_default=ZERO),
        sa.Column("fail_count", sa.Integer, server_default=ZERO),
        sa.Column("backoff_until", sa.BigInteger, server_default=ZERO),
        sa.Column("last_error", sa.Text),
        sa.Column("check_count", sa.Integer, server_default=ZERO),
        sa.Column("hit_count", sa.Integer, server_default=ZERO),
        sa.Column("created_at", sa.BigInteger),
        sa.Column("updated_at", sa.BigInteger),
        sa.Column("known_count", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("mean_gap", sa.Double),
        sa.Column("error_kind", sa.String(100), nullable=False, server_default=EMPTY),
        sa.Column("why", JsonText),
        sa.Column("lease_token", sa.String(64), nullable=False, server_default=EMPTY),
        sa.Column("lease_until", sa.BigInteger, nullable=False, server_default=ZERO),
    )
    add_index("source_stats", "idx_source_stats_next_due", "next_due_at")
    add_index("source_stats", "idx_source_stats_cadence", "cadence")
    add_index("source_stats", "idx_source_stats_type", "source_type")
    add_index("source_stats", "idx_source_stats_type_due", "source_type", "next_due_at")
    create_table(
        "feed_entry",
        sa.Column("entry_id", BigId, primary_key=True, autoincrement=True),
        sa.Column("source_id", sa.String(64), nullable=False),
        sa.Column("guid_hash", sa.String(64), nullable=False),
        sa.Column("link_hash", sa.String(64), nullable=False, server_default=EMPTY),
        sa.Column("guid", sa.Text, nullable=False),
        sa.Column("link", sa.Text, nullable=False),
        sa.Column("title", sa.String(500), nullable=False, server_default=EMPTY),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("extra", JsonText),
        sa.Column("published_at", sa.BigInteger, nullable=False),
        sa.Column("dated", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("content_hash", sa.String(64), nullable=False),
        sa.Column("edits", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("found_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("source_id", "guid_hash", name="uq_feed_entry_guid"),
    )
    add_index("feed_entry", "ix_feed_entry_link", "source_id", "link_hash")
    add_index("feed_entry", "ix_feed_entry_published", "source_id", "published_at")
    add_index("feed_entry", "ix_feed_entry_found", "found_at")
    create_table(
        "feed_newcomer",
        sa.Column("newcomer_id", BigId, primary_key=True, autoincrement=True),
        sa.Column("source_id", sa.String(64), nullable=False),
        sa.Column("guid_hash", sa.String(64), nullable=False),
        sa.Column("remote_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(500), nullable=False),
        sa.Column("facts", JsonText, nullable=False),
        sa.Column("changed", sa.Boolean, nullable=False),
        sa.Column("seen_at", sa.BigInteger, nullable=False),
        sa.Column("taken_at", sa.BigInteger),
        sa.UniqueConstraint("source_id", "guid_hash", name="uq_feed_newcomer_video"),
    )
    add_index("feed_newcomer", "ix_feed_newcomer_waiting", "taken_at", "newcomer_id")
    create_table(
        "feed_poll",
        sa.Column("poll_id", BigId, primary_key=True, autoincrement=True),
        sa.Column("source_id", sa.String(64), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("status", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("new", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("updated", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("delay", sa.BigInteger),
        sa.Column("duration_ms", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("error", sa.String(500), nullable=False, server_default=EMPTY),
    )
    add_index("feed_poll", "ix_feed_poll_at", "at")
    add_index("feed_poll", "ix_feed_poll_source", "source_id", "at")
    create_table(
        "feed_cadence_count",
        sa.Column("at", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("counts", JsonText, nullable=False),
    )
    create_table(
        "feed_plan",
        sa.Column("name", sa.String(32), primary_key=True),
        sa.Column("content", JsonText, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    create_table(
        "feed_snapshot",
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
        sa.UniqueConstraint("source", "key_hash", "sha256", name="uq_feed_snapshot_content"),
    )
    add_index("feed_snapshot", "ix_feed_snapshot_seen", "seen_at")
    create_table(
        "feed_gate",
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
