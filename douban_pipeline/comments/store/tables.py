"""Tables of the comment system. Their names are fixed; times are in UTC; comment ids come from `comments.ids`."""

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

from douban_pipeline.core.column_types import ZERO, JsonText, UtcDateTime, big, count, key, link, moment, small, words
from douban_pipeline.core.platform_tables import MYSQL_OPTIONS

metadata = MetaData()

section = Table(
    "cmt_section",
    metadata,
    key("section_id"),
    # See `types.SectionType`; with the id of the object that the section belongs to.
    Column("type", Integer, nullable=False),
    big("object_id"),
    # User who made the object; 0 for nobody.
    link("owner_id"),
    words("title", 300),
    small("status"),
    count("attributes"),
    Column("settings", JsonText, nullable=False),
    # Ids of the pinned comments, topmost first.
    Column("pinned", JsonText, nullable=False),
    # Comments ever applied; roots shown; comments shown; comments not shown.
    count("total_count"),
    count("root_count"),
    count("visible_count"),
    count("hidden_count"),
    # The last ones assigned.
    count("floor_seq"),
    link("event_seq"),
    moment("created_at", nullable=False),
    moment("active_at", nullable=False),  # of its last event
    # Reference time of ages and windows in the heat of its comments: when they were last scored all together.
    moment("scored_at"),
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
    # 0 for a root; the dialog is the first reply to the root in the chain of replies that leads to this comment.
    link("parent_id"),
    link("root_id"),
    link("dialog_id"),
    # Of a root: replies at any depth, and those whose own status is NORMAL, regardless of the root's status.
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
    # Length of the text; level of the author at the time of writing.
    count("length"),
    small("level"),
    moment("created_at", nullable=False),
    moment("updated_at", nullable=False),
    Column("meta", JsonText, nullable=False),
    # Origin of an imported comment, such as mac_comment:17.
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
    # sha1 of the text without whitespace and case; used to find duplicates.
    words("content_hash", 40),
    # Whether its character bigrams are in `cmt_bigram`.
    Column("indexed", Boolean, nullable=False, server_default=false()),
    # Whether a model has judged it, see `comments.model_review`.
    Column("judged", Boolean, nullable=False, server_default=false()),
    Index("ix_cmt_content_indexed", "indexed", "comment_id"),
    **MYSQL_OPTIONS,
)

edit = Table(
    "cmt_edit",
    metadata,
    key("edit_id"),
    big("comment_id"),
    # The text that an edit replaced, and when.
    Column("content", Text, nullable=False),
    moment("created_at", nullable=False),
    Index("ix_cmt_edit_comment", "comment_id", "edit_id"),
    **MYSQL_OPTIONS,
)

bigram = Table(
    "cmt_bigram",
    metadata,
    # Two adjacent characters of a text encoded as a number, see `store.search_index`.
    Column("bigram", BigInteger, primary_key=True, autoincrement=False),
    Column("comment_id", BigInteger, primary_key=True, autoincrement=False),
    **MYSQL_OPTIONS,
)

vote = Table(
    "cmt_vote",
    metadata,
    Column("comment_id", BigInteger, primary_key=True, autoincrement=False),
    Column("voter", String(40), primary_key=True),
    # 1 like, -1 dislike, 0 withdrawn.
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
    # Assigned by the database, so that an event requested after another's response has a greater id.
    key("event_id"),
    Column("shard", SmallInteger, nullable=False),
    big("section_id"),
    # Serial number in the section, assigned when the event is applied.
    Column("seq", BigInteger),
    Column("kind", String(16), nullable=False),
    link("comment_id"),
    Column("actor", String(40), nullable=False),
    link("user_id"),
    small("actor_rank"),
    Column("payload", JsonText, nullable=False),
    # Idempotency key: the same request twice is one event.
    Column("request_key", String(64), nullable=False),
    small("state"),
    # Reason why it changed nothing; empty where it did.
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
    # Change of the number of shown comments.
    count("visible_change"),
    Column("undone", Boolean, nullable=False, server_default=false()),  # by a later entry
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
    # reply, mention, like (one per comment, with the last user who liked it), status or refused.
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
    Column("hour", UtcDateTime, primary_key=True),  # its start
    big("section_id"),
    # Number of times it was shown, and likes gained (withdrawn likes subtracted).
    count("shown"),
    count("liked"),
    Index("ix_cmt_impression_section", "section_id", "hour"),
    **MYSQL_OPTIONS,
)

view = Table(
    "cmt_view",
    metadata,
    # Who has seen a root, see `scoring.impressions`: a visitor's second look counts no more.
    Column("comment_id", BigInteger, primary_key=True, autoincrement=False),
    Column("viewer", String(40), primary_key=True),
    moment("seen_at", nullable=False),
    Index("ix_cmt_view_time", "seen_at"),
    **MYSQL_OPTIONS,
)

score = Table(
    "cmt_score",
    metadata,
    # One row per applied root, shown or not.
    Column("comment_id", BigInteger, primary_key=True, autoincrement=False),
    big("section_id"),
    # The score in millionths, rounded: lists sort by it, so that ties are the same everywhere.
    link("heat"),
    Column("score", Double, nullable=False, server_default=ZERO),
    # The parts of the score, and the rules that decided something.
    Column("parts", JsonText, nullable=False),
    Column("decisions", JsonText, nullable=False),
    words("variant", 64),
    words("version", 64),
    # NULL until the score was computed.
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
    # A condition over factors, and its decision: boost, sink, pin or exempt.
    Column("expression", Text, nullable=False),
    Column("decision", String(16), nullable=False),
    Column("amount", Double, nullable=False, server_default=ZERO),
    count("priority"),
    Column("stacks", Boolean, nullable=False, server_default=false()),
    # Names of rules, or kinds of decisions, that an exemption disables.
    Column("exempts", JsonText, nullable=False),
    # Where it applies: types or ids of sections; empty for everywhere.
    Column("scope", JsonText, nullable=False),
    # draft, active or retired.
    Column("state", String(16), nullable=False),
    # Preview, at the time of saving, of what the rule would move.
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
    # Names of variants with their weights and their differences.
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
    # Id of the CMS's comment, and of ours.
    big("number"),
    big("comment_id"),
    # The CMS's status, before and after: 1 shown, 0 hidden.
    Column("old_status", SmallInteger, nullable=False),
    Column("new_status", SmallInteger, nullable=False),
    # prepared, applied, skipped or undone.
    Column("state", String(16), nullable=False),
    words("operator", 64),
    moment("created_at", nullable=False),
    Index("ix_cmt_export_number", "number", "export_id"),
    Index("ix_cmt_export_batch", "batch", "export_id"),
    Index("ix_cmt_export_state", "state", "export_id"),
    **MYSQL_OPTIONS,
)

cms_status = Table(
    "cmt_cms_status",
    metadata,
    # Id of the CMS's comment; one without a row was last seen as it was imported.
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    # 1 shown, 0 hidden, -1 deleted; see `comments.cms_moderation`.
    Column("status", SmallInteger, nullable=False),
    # When it was first seen so.
    moment("seen_at", nullable=False),
    **MYSQL_OPTIONS,
)

node = Table(
    "cmt_node",
    metadata,
    # Node number of a process, part of the ids that it generates.
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
    # Fencing token, increased with every owner: writes of an earlier owner are refused.
    link("token"),
    moment("lease_until", nullable=False),
    **MYSQL_OPTIONS,
)

beat = Table(
    "cmt_beat",
    metadata,
    # Written by workers every second: its age at a read site is that site's replication lag.
    Column("name", String(32), primary_key=True),
    moment("beat_at", nullable=False),
    **MYSQL_OPTIONS,
)

mark = Table(
    "cmt_mark",
    metadata,
    # Progress of a job that continues at each run: a moment, a number, or both; see `store.marks`.
    Column("name", String(32), primary_key=True),
    moment("at"),
    link("number"),
    **MYSQL_OPTIONS,
)
