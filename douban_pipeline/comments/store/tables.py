"""The tables of the comment system. Their names are fixed; moments are UTC; ids of comments are `comments.ids`."""

from __future__ import annotations

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
)

from douban_pipeline.core.column_types import JsonText, UtcDateTime
from douban_pipeline.core.columns import ZERO, big, count, key, link, moment, small, words
from douban_pipeline.core.platform_tables import MYSQL_OPTIONS

metadata = MetaData()

section = Table(
    "cmt_section",
    metadata,
    key("section_id"),
    # As `types.SectionType`, and the id of what it belongs to.
    Column("type", Integer, nullable=False),
    big("object_id"),
    # Who made what is commented on; 0 for nobody.
    link("owner_id"),
    words("title", 300),
    small("status"),
    count("attributes"),
    Column("settings", JsonText, nullable=False),
    # Ids of the comments on top, the first one first.
    Column("pinned", JsonText, nullable=False),
    # Comments that were ever applied; roots that are shown; comments that are shown; comments that are not.
    count("total_count"),
    count("root_count"),
    count("visible_count"),
    count("hidden_count"),
    # The last floor and the last event's serial that were given.
    count("floor_seq"),
    link("event_seq"),
    moment("created_at", nullable=False),
    # When something last happened in it.
    moment("active_at", nullable=False),
    # The Douban subject that the title is of, and since when; 0 where the site gave it, or there is none.
    link("title_douban_id"),
    moment("titled_at"),
    UniqueConstraint("type", "object_id", name="uq_cmt_section_object"),
    Index("ix_cmt_section_active", "active_at"),
    **MYSQL_OPTIONS,
)

comment = Table(
    "cmt_comment",
    metadata,
    Column("comment_id", BigInteger, primary_key=True, autoincrement=False),
    big("section_id"),
    # 0 for a guest, whose name is in `meta`.
    link("publisher_id"),
    # 0 for a root; the dialog is the first reply to the root of those that lead here.
    link("parent_id"),
    link("root_id"),
    link("dialog_id"),
    # Of a root: replies of any depth, and those of them whose own status is NORMAL, whatever the root's is.
    count("child_total"),
    count("child_visible"),
    count("like_count"),
    count("dislike_count"),
    count("report_count"),
    small("status"),
    small("status_rank"),
    words("status_actor", 40),
    count("attributes"),
    Column("floor", Integer, nullable=False),
    # Of the text, and of its author when it was written.
    count("length"),
    small("level"),
    moment("created_at", nullable=False),
    moment("updated_at", nullable=False),
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
    words("content_hash", 40),
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
    small("value"),
    moment("updated_at", nullable=False),
    Index("ix_cmt_vote_voter", "voter", "updated_at"),
    **MYSQL_OPTIONS,
)

report = Table(
    "cmt_report",
    metadata,
    Column("comment_id", BigInteger, primary_key=True, autoincrement=False),
    Column("reporter", String(40), primary_key=True),
    words("reason", 32),
    words("detail", 300),
    Column("withdrawn", Boolean, nullable=False, server_default=false()),
    moment("created_at", nullable=False),
    Index("ix_cmt_report_time", "created_at"),
    **MYSQL_OPTIONS,
)

event = Table(
    "cmt_event",
    metadata,
    # Given by the database, so that what was asked for after another's answer comes after it.
    key("event_id"),
    Column("shard", SmallInteger, nullable=False),
    big("section_id"),
    # Serial in the section, given when it is applied.
    Column("seq", BigInteger),
    Column("kind", String(16), nullable=False),
    link("comment_id"),
    Column("actor", String(40), nullable=False),
    link("user_id"),
    small("actor_rank"),
    Column("payload", JsonText, nullable=False),
    # The same request twice is one event.
    Column("request_key", String(64), nullable=False),
    small("state"),
    # Why it changed nothing; empty where it did.
    words("refusal", 200),
    moment("created_at", nullable=False),
    moment("applied_at"),
    UniqueConstraint("request_key", name="uq_cmt_event_request"),
    UniqueConstraint("section_id", "seq", name="uq_cmt_event_seq"),
    Index("ix_cmt_event_waiting", "state", "shard", "event_id"),
    Index("ix_cmt_event_comment", "comment_id", "event_id"),
    **MYSQL_OPTIONS,
)

moderation = Table(
    "cmt_moderation",
    metadata,
    key("moderation_id"),
    big("event_id"),
    big("section_id"),
    big("comment_id"),
    Column("action", String(16), nullable=False),
    Column("old_status", SmallInteger, nullable=False),
    Column("old_rank", SmallInteger, nullable=False),
    words("old_actor", 40),
    Column("new_status", SmallInteger, nullable=False),
    Column("new_rank", SmallInteger, nullable=False),
    Column("actor", String(40), nullable=False),
    words("reason", 300),
    words("batch", 64),
    # By how much the count of shown comments changed.
    count("visible_change"),
    # Whether a later entry took it back.
    Column("undone", Boolean, nullable=False, server_default=false()),
    moment("created_at", nullable=False),
    UniqueConstraint("event_id", "comment_id", name="uq_cmt_moderation_event"),
    Index("ix_cmt_moderation_comment", "comment_id", "moderation_id"),
    Index("ix_cmt_moderation_batch", "batch"),
    **MYSQL_OPTIONS,
)

notice = Table(
    "cmt_notice",
    metadata,
    key("notice_id"),
    big("user_id"),
    # reply, mention, like (one a comment, of who liked it last), status or refused.
    Column("kind", String(16), nullable=False),
    big("comment_id"),
    big("section_id"),
    words("actor", 40),
    Column("seen", Boolean, nullable=False, server_default=false()),
    moment("created_at", nullable=False),
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
    big("section_id"),
    # How often it was shown, and how many likes it gained (those taken back subtracted).
    count("shown"),
    count("liked"),
    Index("ix_cmt_impression_section", "section_id", "hour"),
    **MYSQL_OPTIONS,
)

score = Table(
    "cmt_score",
    metadata,
    # Of every root that was applied, shown or not.
    Column("comment_id", BigInteger, primary_key=True, autoincrement=False),
    big("section_id"),
    # A million times the score, rounded: lists are in this order, so that equal is equal everywhere.
    link("heat"),
    Column("score", Double, nullable=False, server_default=ZERO),
    # Part by part what the score is made of, and which rules decided what.
    Column("parts", JsonText, nullable=False),
    Column("decisions", JsonText, nullable=False),
    words("variant", 64),
    words("version", 64),
    # NULL until it was computed.
    moment("score_at"),
    Index("ix_cmt_score_heat", "section_id", "heat", "comment_id"),
    Index("ix_cmt_score_age", "score_at"),
    **MYSQL_OPTIONS,
)

rule = Table(
    "cmt_rule",
    metadata,
    key("rule_id"),
    Column("name", String(100), nullable=False),
    Column("revision", Integer, nullable=False),
    # A condition over factors, and what follows: boost, sink, pin or exempt.
    Column("expression", Text, nullable=False),
    Column("decision", String(16), nullable=False),
    Column("amount", Double, nullable=False, server_default=ZERO),
    count("priority"),
    Column("stacks", Boolean, nullable=False, server_default=false()),
    # Names of rules, or kinds of decisions, that an exemption switches off.
    Column("exempts", JsonText, nullable=False),
    # Where it holds: types or ids of sections; empty for everywhere.
    Column("scope", JsonText, nullable=False),
    # draft, active or retired.
    Column("state", String(16), nullable=False),
    # What it would have moved when it was saved.
    Column("what_if", JsonText, nullable=False),
    words("author", 64),
    words("reason", 300),
    moment("created_at", nullable=False),
    moment("active_from"),
    moment("retired_at"),
    UniqueConstraint("name", "revision", name="uq_cmt_rule_revision"),
    Index("ix_cmt_rule_state", "state", "priority"),
    **MYSQL_OPTIONS,
)

experiment = Table(
    "cmt_experiment",
    metadata,
    key("experiment_id"),
    Column("name", String(100), nullable=False),
    Column("salt", String(64), nullable=False),
    # Names of variants with their weights and what differs in them.
    Column("variants", JsonText, nullable=False),
    Column("scope", JsonText, nullable=False),
    # draft, running or ended.
    Column("state", String(16), nullable=False),
    words("author", 64),
    moment("created_at", nullable=False),
    moment("started_at"),
    moment("ended_at"),
    UniqueConstraint("name", name="uq_cmt_experiment_name"),
    **MYSQL_OPTIONS,
)

export = Table(
    "cmt_export",
    metadata,
    key("export_id"),
    Column("batch", String(64), nullable=False),
    # Of the CMS's comment, and of ours.
    big("number"),
    big("comment_id"),
    # Columns of the CMS that differ, before and after.
    Column("old_values", JsonText, nullable=False),
    Column("new_values", JsonText, nullable=False),
    # prepared, applied, skipped or undone.
    Column("state", String(16), nullable=False),
    words("operator", 64),
    moment("created_at", nullable=False),
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
    words("owner", 160),
    moment("lease_until", nullable=False),
    **MYSQL_OPTIONS,
)

shard = Table(
    "cmt_shard",
    metadata,
    Column("shard", SmallInteger, primary_key=True, autoincrement=False),
    words("owner", 160),
    # Grows with every owner: what an earlier one still wants to write is refused.
    link("token"),
    moment("lease_until", nullable=False),
    **MYSQL_OPTIONS,
)

beat = Table(
    "cmt_beat",
    metadata,
    # Written by workers every second: its age at a read site is how far that site is behind.
    Column("name", String(32), primary_key=True),
    moment("beat_at", nullable=False),
    **MYSQL_OPTIONS,
)

mark = Table(
    "cmt_mark",
    metadata,
    # How far something has come that goes on at each run: a moment, a number, or both; see `comments.titling`.
    Column("name", String(32), primary_key=True),
    moment("at"),
    link("number"),
    **MYSQL_OPTIONS,
)
