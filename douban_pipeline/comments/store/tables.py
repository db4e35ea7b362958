"""The tables of the comment system. Their names are fixed; moments are UTC; ids of comments are `comments.ids`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

from douban_pipeline.core.column_types import BigId, JsonText, UtcDateTime
from douban_pipeline.core.platform_tables import MYSQL_OPTIONS

metadata = MetaData()

EMPTY = text("''")
ZERO = text("0")


def _id(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


def _link(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=ZERO)


def _words(name: str, most: int) -> Column[str]:
    return Column(name, String(most), nullable=False, server_default=EMPTY)


def _count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=ZERO)


def _small(name: str) -> Column[int]:
    return Column(name, SmallInteger, nullable=False, server_default=ZERO)


def _moment(name: str, **options: Any) -> Column[Any]:
    return Column(name, UtcDateTime, **options)


section = Table(
    "cmt_section",
    metadata,
    Column("section_id", BigId, primary_key=True, autoincrement=True),
    # As `types.SectionType`, and the id of what it belongs to.
    Column("type", Integer, nullable=False),
    _id("object_id"),
    # Who made what is commented on; 0 for nobody.
    _link("owner_id"),
    _words("title", 300),
    _small("status"),
    _count("attributes"),
    Column("settings", JsonText, nullable=False),
    # Ids of the comments on top, the first one first.
    Column("pinned", JsonText, nullable=False),
    # Comments that were ever applied; roots that are shown; comments that are shown; comments that are not.
    _count("total_count"),
    _count("root_count"),
    _count("visible_count"),
    _count("hidden_count"),
    # The last floor and the last event's serial that were given.
    _count("floor_seq"),
    _link("event_seq"),
    _moment("created_at", nullable=False),
    # When something last happened in it.
    _moment("active_at", nullable=False),
    UniqueConstraint("type", "object_id", name="uq_cmt_section_object"),
    Index("ix_cmt_section_active", "active_at"),
    **MYSQL_OPTIONS,
)

comment = Table(
    "cmt_comment",
    metadata,
    Column("comment_id", BigInteger, primary_key=True, autoincrement=False),
    _id("section_id"),
    # 0 for a guest, whose name is in `meta`.
    _link("publisher_id"),
    # 0 for a root; the dialog is the first reply to the root of those that lead here.
    _link("parent_id"),
    _link("root_id"),
    _link("dialog_id"),
    # Of a root: replies of any depth, and those of them whose own status is NORMAL, whatever the root's is.
    _count("child_total"),
    _count("child_visible"),
    _count("like_count"),
    _count("dislike_count"),
    _count("report_count"),
    _small("status"),
    _small("status_rank"),
    _words("status_actor", 40),
    _count("attributes"),
    Column("floor", Integer, nullable=False),
    # Of the text, and of its author when it was written.
    _count("length"),
    _small("level"),
    _moment("created_at", nullable=False),
    _moment("updated_at", nullable=False),
    Column("meta", JsonText, nullable=False),
    # Where it was taken from, such as mac_comment:17.
    Column("source_key", String(64)),
    UniqueConstraint("source_key", name="uq_cmt_comment_source"),
    UniqueConstraint("section_id", "floor", name="uq_cmt_comment_floor"),
    Index("ix_cmt_comment_time", "section_id", "root_id", "status", "comment_id"),
    Index("ix_cmt_comment_floors", "section_id", "root_id", "status", "floor"),
    Index("ix_cmt_comment_likes", "section_id", "root_id", "status", "like_count", "comment_id"),
    Index("ix_cmt_comment_dialog", "dialog_id", "status", "comment_id"),
    Index("ix_cmt_comment_publisher", "publisher_id", "comment_id"),
    Index("ix_cmt_comment_status", "status", "comment_id"),
    **MYSQL_OPTIONS,
)

content = Table(
    "cmt_content",
    metadata,
    Column("comment_id", BigInteger, primary_key=True, autoincrement=False),
    Column("content", Text, nullable=False),
    # sha1 of the text without blanks and case, by which doubles are found.
    _words("content_hash", 40),
    # Whether its pairs of characters are in `cmt_bigram`.
    Column("indexed", Boolean, nullable=False, server_default=false()),
    # Whether a model has judged it, see `comments.model_review`.
    Column("judged", Boolean, nullable=False, server_default=false()),
    Index("ix_cmt_content_indexed", "indexed", "comment_id"),
    **MYSQL_OPTIONS,
)

bigram = Table(
    "cmt_bigram",
    metadata,
    # Two neighbouring characters of a text as a number, see `store.search_index`.
    Column("bigram", BigInteger, primary_key=True, autoincrement=False),
    Column("comment_id", BigInteger, primary_key=True, autoincrement=False),
    **MYSQL_OPTIONS,
)

vote = Table(
    "cmt_vote",
    metadata,
    Column("comment_id", BigInteger, primary_key=True, autoincrement=False),
    Column("voter", String(40), primary_key=True),
    # 1 like, -1 dislike, 0 taken back.
    _small("value"),
    _moment("updated_at", nullable=False),
    Index("ix_cmt_vote_voter", "voter", "updated_at"),
    **MYSQL_OPTIONS,
)

report = Table(
    "cmt_report",
    metadata,
    Column("comment_id", BigInteger, primary_key=True, autoincrement=False),
    Column("reporter", String(40), primary_key=True),
    _words("reason", 32),
    _words("detail", 300),
    Column("withdrawn", Boolean, nullable=False, server_default=false()),
    _moment("created_at", nullable=False),
    Index("ix_cmt_report_time", "created_at"),
    **MYSQL_OPTIONS,
)

event = Table(
    "cmt_event",
    metadata,
    # Given by the database, so that what was asked for after another's answer comes after it.
    Column("event_id", BigId, primary_key=True, autoincrement=True),
    Column("shard", SmallInteger, nullable=False),
    _id("section_id"),
    # Serial in the section, given when it is applied.
    Column("seq", BigInteger),
    Column("kind", String(16), nullable=False),
    _link("comment_id"),
    Column("actor", String(40), nullable=False),
    _link("user_id"),
    _small("actor_rank"),
    Column("payload", JsonText, nullable=False),
    # The same request twice is one event.
    Column("request_key", String(64), nullable=False),
    _small("state"),
    # Why it changed nothing; empty where it did.
    _words("refusal", 200),
    _moment("created_at", nullable=False),
    _moment("applied_at"),
    UniqueConstraint("request_key", name="uq_cmt_event_request"),
    UniqueConstraint("section_id", "seq", name="uq_cmt_event_seq"),
    Index("ix_cmt_event_waiting", "state", "shard", "event_id"),
    Index("ix_cmt_event_comment", "comment_id", "event_id"),
    **MYSQL_OPTIONS,
)

moderation = Table(
    "cmt_moderation",
    metadata,
    Column("moderation_id", BigId, primary_key=True, autoincrement=True),
    _id("event_id"),
    _id("section_id"),
    _id("comment_id"),
    Column("action", String(16), nullable=False),
    Column("old_status", SmallInteger, nullable=False),
    Column("old_rank", SmallInteger, nullable=False),
    _words("old_actor", 40),
    Column("new_status", SmallInteger, nullable=False),
    Column("new_rank", SmallInteger, nullable=False),
    Column("actor", String(40), nullable=False),
    _words("reason", 300),
    _words("batch", 64),
    # By how much the count of shown comments changed.
    _count("visible_change"),
    # Whether a later entry took it back.
    Column("undone", Boolean, nullable=False, server_default=false()),
    _moment("created_at", nullable=False),
    UniqueConstraint("event_id", "comment_id", name="uq_cmt_moderation_event"),
    Index("ix_cmt_moderation_comment", "comment_id", "moderation_id"),
    Index("ix_cmt_moderation_batch", "batch"),
    **MYSQL_OPTIONS,
)

notice = Table(
    "cmt_notice",
    metadata,
    Column("notice_id", BigId, primary_key=True, autoincrement=True),
    _id("user_id"),
    # reply, mention, like (one a comment, of who liked it last), status or refused.
    Column("kind", String(16), nullable=False),
    _id("comment_id"),
    _id("section_id"),
    _words("actor", 40),
    Column("seen", Boolean, nullable=False, server_default=false()),
    _moment("created_at", nullable=False),
    UniqueConstraint("user_id", "comment_id", "kind", name="uq_cmt_notice_once"),
    Index("ix_cmt_notice_user", "user_id", "seen", "notice_id"),
    **MYSQL_OPTIONS,
)

impression = Table(
    "cmt_impression",
    metadata,
    Column("comment_id", BigInteger, primary_key=True, autoincrement=False),
    # Beginning of the hour.
    Column("hour", UtcDateTime, primary_key=True),
    _id("section_id"),
    # How often it was shown, and how many likes it gained (those taken back subtracted).
    _count("shown"),
    _count("liked"),
    Index("ix_cmt_impression_section", "section_id", "hour"),
    **MYSQL_OPTIONS,
)

score = Table(
    "cmt_score",
    metadata,
    # Of every root that was applied, shown or not.
    Column("comment_id", BigInteger, primary_key=True, autoincrement=False),
    _id("section_id"),
    # A million times the score, rounded: lists are in this order, so that equal is equal everywhere.
    _link("heat"),
    Column("score", Double, nullable=False, server_default=ZERO),
    # Part by part what the score is made of, and which rules decided what.
    Column("parts", JsonText, nullable=False),
    Column("decisions", JsonText, nullable=False),
    _words("variant", 64),
    _words("version", 64),
    # NULL until it was computed.
    _moment("score_at"),
    Index("ix_cmt_score_heat", "section_id", "heat", "comment_id"),
    Index("ix_cmt_score_age", "score_at"),
    **MYSQL_OPTIONS,
)

rule = Table(
    "cmt_rule",
    metadata,
    Column("rule_id", BigId, primary_key=True, autoincrement=True),
    Column("name", String(100), nullable=False),
    Column("revision", Integer, nullable=False),
    # A condition over factors, and what follows: boost, sink, pin or exempt.
    Column("expression", Text, nullable=False),
    Column("decision", String(16), nullable=False),
    Column("amount", Double, nullable=False, server_default=ZERO),
    _count("priority"),
    Column("stacks", Boolean, nullable=False, server_default=false()),
    # Names of rules, or kinds of decisions, that an exemption switches off.
    Column("exempts", JsonText, nullable=False),
    # Where it holds: types or ids of sections; empty for everywhere.
    Column("scope", JsonText, nullable=False),
    # draft, active or retired.
    Column("state", String(16), nullable=False),
    # What it would have moved when it was saved.
    Column("what_if", JsonText, nullable=False),
    _words("author", 64),
    _words("reason", 300),
    _moment("created_at", nullable=False),
    _moment("active_from"),
    _moment("retired_at"),
    UniqueConstraint("name", "revision", name="uq_cmt_rule_revision"),
    Index("ix_cmt_rule_state", "state", "priority"),
    **MYSQL_OPTIONS,
)

experiment = Table(
    "cmt_experiment",
    metadata,
    Column("experiment_id", BigId, primary_key=True, autoincrement=True),
    Column("name", String(100), nullable=False),
    Column("salt", String(64), nullable=False),
    # Names of variants with their weights and what differs in them.
    Column("variants", JsonText, nullable=False),
    Column("scope", JsonText, nullable=False),
    # draft, running or ended.
    Column("state", String(16), nullable=False),
    _words("author", 64),
    _moment("created_at", nullable=False),
    _moment("started_at"),
    _moment("ended_at"),
    UniqueConstraint("name", name="uq_cmt_experiment_name"),
    **MYSQL_OPTIONS,
)

export = Table(
    "cmt_export",
    metadata,
    Column("export_id", BigId, primary_key=True, autoincrement=True),
    Column("batch", String(64), nullable=False),
    # Of the CMS's comment, and of ours.
    _id("number"),
    _id("comment_id"),
    # Columns of the CMS that differ, before and after.
    Column("old_values", JsonText, nullable=False),
    Column("new_values", JsonText, nullable=False),
    # prepared, applied, skipped or undone.
    Column("state", String(16), nullable=False),
    _words("operator", 64),
    _moment("created_at", nullable=False),
    Index("ix_cmt_export_number", "number", "export_id"),
    Index("ix_cmt_export_batch", "batch", "export_id"),
    Index("ix_cmt_export_state", "state", "export_id"),
    **MYSQL_OPTIONS,
)

node = Table(
    "cmt_node",
    metadata,
    # Number of a process in the ids that it hands out.
    Column("node", SmallInteger, primary_key=True, autoincrement=False),
    _words("owner", 160),
    _moment("lease_until", nullable=False),
    **MYSQL_OPTIONS,
)

shard = Table(
    "cmt_shard",
    metadata,
    Column("shard", SmallInteger, primary_key=True, autoincrement=False),
    _words("owner", 160),
    # Grows with every owner: what an earlier one still wants to write is refused.
    _link("token"),
    _moment("lease_until", nullable=False),
    **MYSQL_OPTIONS,
)

beat = Table(
    "cmt_beat",
    metadata,
    # Written by workers every second: its age at a read site is how far that site is behind.
    Column("name", String(32), primary_key=True),
    _moment("beat_at", nullable=False),
    **MYSQL_OPTIONS,
)
