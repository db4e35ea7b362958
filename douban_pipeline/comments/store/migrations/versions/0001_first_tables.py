"""The first tables of the comment system."""

from __future__ import annotations

import sqlalchemy as sa

from douban_pipeline.core.column_types import BigId, JsonText, UtcDateTime
from douban_pipeline.core.migration_steps import add_index, create_table

revision = "0001"
down_revision = None
release = "0.2.0"

EMPTY = sa.text("''")
ZERO = sa.text("0")


def upgrade() -> None:
    """Create what is missing."""
    create_table(
        "cmt_section",
        sa.Column("section_id", BigId, primary_key=True, autoincrement=True),
        sa.Column("type", sa.Integer, nullable=False),
        sa.Column("object_id", sa.BigInteger, nullable=False),
        sa.Column("owner_id", sa.BigInteger, nullable=False, server_default=ZERO),
        sa.Column("title", sa.String(300), nullable=False, server_default=EMPTY),
        sa.Column("status", sa.SmallInteger, nullable=False, server_default=ZERO),
        sa.Column("attributes", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("settings", JsonText, nullable=False),
        sa.Column("pinned", JsonText, nullable=False),
        sa.Column("total_count", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("root_count", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("visible_count", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("hidden_count", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("floor_seq", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("event_seq", sa.BigInteger, nullable=False, server_default=ZERO),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("active_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("type", "object_id", name="uq_cmt_section_object"),
    )
    add_index("cmt_section", "ix_cmt_section_active", "active_at")
    create_table(
        "cmt_comment",
        sa.Column("comment_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("section_id", sa.BigInteger, nullable=False),
        sa.Column("publisher_id", sa.BigInteger, nullable=False, server_default=ZERO),
        sa.Column("parent_id", sa.BigInteger, nullable=False, server_default=ZERO),
        sa.Column("root_id", sa.BigInteger, nullable=False, server_default=ZERO),
        sa.Column("dialog_id", sa.BigInteger, nullable=False, server_default=ZERO),
        sa.Column("child_total", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("child_visible", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("like_count", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("dislike_count", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("report_count", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("status", sa.SmallInteger, nullable=False, server_default=ZERO),
        sa.Column("status_rank", sa.SmallInteger, nullable=False, server_default=ZERO),
        sa.Column("status_actor", sa.String(40), nullable=False, server_default=EMPTY),
        sa.Column("attributes", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("floor", sa.Integer, nullable=False),
        sa.Column("length", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("level", sa.SmallInteger, nullable=False, server_default=ZERO),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.Column("meta", JsonText, nullable=False),
        sa.Column("source_key", sa.String(64)),
        sa.UniqueConstraint("section_id", "floor", name="uq_cmt_comment_floor"),
        sa.UniqueConstraint("source_key", name="uq_cmt_comment_source"),
    )
    add_index("cmt_comment", "ix_cmt_comment_dialog", "dialog_id", "status", "comment_id")
    add_index("cmt_comment", "ix_cmt_comment_floors", "section_id", "root_id", "status", "floor")
    add_index("cmt_comment", "ix_cmt_comment_likes", "section_id", "root_id", "status", "like_count", "comment_id")
    add_index("cmt_comment", "ix_cmt_comment_publisher", "publisher_id", "comment_id")
    add_index("cmt_comment", "ix_cmt_comment_status", "status", "comment_id")
    add_index("cmt_comment", "ix_cmt_comment_time", "section_id", "root_id", "status", "comment_id")
    create_table(
        "cmt_content",
        sa.Column("comment_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("content_hash", sa.String(40), nullable=False, server_default=EMPTY),
    )
    create_table(
        "cmt_vote",
        sa.Column("comment_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("voter", sa.String(40), primary_key=True),
        sa.Column("value", sa.SmallInteger, nullable=False, server_default=ZERO),
        sa.Column("updated_at", UtcDateTime, nullable=False),
    )
    add_index("cmt_vote", "ix_cmt_vote_voter", "voter", "updated_at")
    create_table(
        "cmt_report",
        sa.Column("comment_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("reporter", sa.String(40), primary_key=True),
        sa.Column("reason", sa.String(32), nullable=False, server_default=EMPTY),
        sa.Column("detail", sa.String(300), nullable=False, server_default=EMPTY),
        sa.Column("withdrawn", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("created_at", UtcDateTime, nullable=False),
    )
    add_index("cmt_report", "ix_cmt_report_time", "created_at")
    create_table(
        "cmt_event",
        sa.Column("event_id", BigId, primary_key=True, autoincrement=True),
        sa.Column("shard", sa.SmallInteger, nullable=False),
        sa.Column("section_id", sa.BigInteger, nullable=False),
        sa.Column("seq", sa.BigInteger),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("comment_id", sa.BigInteger, nullable=False, server_default=ZERO),
        sa.Column("actor", sa.String(40), nullable=False),
        sa.Column("user_id", sa.BigInteger, nullable=False, server_default=ZERO),
        sa.Column("actor_rank", sa.SmallInteger, nullable=False, server_default=ZERO),
        sa.Column("payload", JsonText, nullable=False),
        sa.Column("request_key", sa.String(64), nullable=False),
        sa.Column("state", sa.SmallInteger, nullable=False, server_default=ZERO),
        sa.Column("refusal", sa.String(200), nullable=False, server_default=EMPTY),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("applied_at", UtcDateTime),
        sa.UniqueConstraint("request_key", name="uq_cmt_event_request"),
        sa.UniqueConstraint("section_id", "seq", name="uq_cmt_event_seq"),
    )
    add_index("cmt_event", "ix_cmt_event_comment", "comment_id", "event_id")
    add_index("cmt_event", "ix_cmt_event_waiting", "state", "shard", "event_id")
    create_table(
        "cmt_moderation",
        sa.Column("moderation_id", BigId, primary_key=True, autoincrement=True),
        sa.Column("event_id", sa.BigInteger, nullable=False),
        sa.Column("section_id", sa.BigInteger, nullable=False),
        sa.Column("comment_id", sa.BigInteger, nullable=False),
        sa.Column("action", sa.String(16), nullable=False),
        sa.Column("old_status", sa.SmallInteger, nullable=False),
        sa.Column("old_rank", sa.SmallInteger, nullable=False),
        sa.Column("old_actor", sa.String(40), nullable=False, server_default=EMPTY),
        sa.Column("new_status", sa.SmallInteger, nullable=False),
        sa.Column("new_rank", sa.SmallInteger, nullable=False),
        sa.Column("actor", sa.String(40), nullable=False),
        sa.Column("reason", sa.String(300), nullable=False, server_default=EMPTY),
        sa.Column("batch", sa.String(64), nullable=False, server_default=EMPTY),
        sa.Column("visible_change", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("undone", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("event_id", "comment_id", name="uq_cmt_moderation_event"),
    )
    add_index("cmt_moderation", "ix_cmt_moderation_batch", "batch")
    add_index("cmt_moderation", "ix_cmt_moderation_comment", "comment_id", "moderation_id")
    create_table(
        "cmt_notice",
        sa.Column("notice_id", BigId, primary_key=True, autoincrement=True),
        sa.Column("user_id", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("comment_id", sa.BigInteger, nullable=False),
        sa.Column("section_id", sa.BigInteger, nullable=False),
        sa.Column("actor", sa.String(40), nullable=False, server_default=EMPTY),
        sa.Column("seen", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("user_id", "comment_id", "kind", name="uq_cmt_notice_once"),
    )
    add_index("cmt_notice", "ix_cmt_notice_user", "user_id", "seen", "notice_id")
    create_table(
        "cmt_impression",
        sa.Column("comment_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("hour", UtcDateTime, primary_key=True),
        sa.Column("section_id", sa.BigInteger, nullable=False),
        sa.Column("shown", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("liked", sa.Integer, nullable=False, server_default=ZERO),
    )
    add_index("cmt_impression", "ix_cmt_impression_section", "section_id", "hour")
    create_table(
        "cmt_score",
        sa.Column("comment_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("section_id", sa.BigInteger, nullable=False),
        sa.Column("heat", sa.BigInteger, nullable=False, server_default=ZERO),
        sa.Column("score", sa.Double, nullable=False, server_default=ZERO),
        sa.Column("parts", JsonText, nullable=False),
        sa.Column("decisions", JsonText, nullable=False),
        sa.Column("variant", sa.String(64), nullable=False, server_default=EMPTY),
        sa.Column("version", sa.String(64), nullable=False, server_default=EMPTY),
        sa.Column("score_at", UtcDateTime),
    )
    add_index("cmt_score", "ix_cmt_score_age", "score_at")
    add_index("cmt_score", "ix_cmt_score_heat", "section_id", "heat", "comment_id")
    create_table(
        "cmt_rule",
        sa.Column("rule_id", BigId, primary_key=True, autoincrement=True),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("expression", sa.Text, nullable=False),
        sa.Column("decision", sa.String(16), nullable=False),
        sa.Column("amount", sa.Double, nullable=False, server_default=ZERO),
        sa.Column("priority", sa.Integer, nullable=False, server_default=ZERO),
        sa.Column("stacks", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("exempts", JsonText, nullable=False),
        sa.Column("scope", JsonText, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("what_if", JsonText, nullable=False),
        sa.Column("author", sa.String(64), nullable=False, server_default=EMPTY),
        sa.Column("reason", sa.String(300), nullable=False, server_default=EMPTY),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("active_from", UtcDateTime),
        sa.Column("retired_at", UtcDateTime),
        sa.UniqueConstraint("name", "revision", name="uq_cmt_rule_revision"),
    )
    add_index("cmt_rule", "ix_cmt_rule_state", "state", "priority")
    create_table(
        "cmt_experiment",
        sa.Column("experiment_id", BigId, primary_key=True, autoincrement=True),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("salt", sa.String(64), nullable=False),
        sa.Column("variants", JsonText, nullable=False),
        sa.Column("scope", JsonText, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("author", sa.String(64), nullable=False, server_default=EMPTY),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("started_at", UtcDateTime),
        sa.Column("ended_at", UtcDateTime),
        sa.UniqueConstraint("name", name="uq_cmt_experiment_name"),
    )
    create_table(
        "cmt_node",
        sa.Column("node", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("owner", sa.String(160), nullable=False, server_default=EMPTY),
        sa.Column("lease_until", UtcDateTime, nullable=False),
    )
    create_table(
        "cmt_shard",
        sa.Column("shard", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("owner", sa.String(160), nullable=False, server_default=EMPTY),
        sa.Column("token", sa.BigInteger, nullable=False, server_default=ZERO),
        sa.Column("lease_until", UtcDateTime, nullable=False),
    )
    create_table(
        "cmt_beat",
        sa.Column("name", sa.String(32), primary_key=True),
        sa.Column("beat_at", UtcDateTime, nullable=False),
    )
