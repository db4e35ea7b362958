"""The tables of the feeds system. Their names are fixed; times are whole seconds since 1970.

`source_stats` has the names, columns and indexes of the plan, and some additional columns.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Double,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
    true,
)
from sqlalchemy.sql.operators import OperatorType
from sqlalchemy.types import TypeDecorator, TypeEngine

from douban_pipeline.core.column_types import ZERO, JsonText, LenientJson, LongText, count, key, small, words
from douban_pipeline.core.platform_tables import MYSQL_OPTIONS, gate_table, snapshot_table

NEVER_DUE = 253_402_300_799
"""`next_due_at` of a source that is not polled: the end of the year 9999."""

metadata = MetaData()


class LenientNumber(TypeDecorator[Any]):
    """A number of which one damaged row must not stop the others: text, which SQLite stores in any column, reads as
    ``missing``."""

    impl = BigInteger
    cache_ok = True

    def __init__(self, kind: type[TypeEngine[Any]] = BigInteger, missing: int | None = 0) -> None:
        super().__init__()
        self.kind, self.missing = kind, missing

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Use the given kind of number."""
        return dialect.type_descriptor(self.kind())

    def coerce_compared_value(self, op: OperatorType | None, value: Any) -> TypeEngine[Any]:
        """Compare as numbers are."""
        return self.kind().coerce_compared_value(op, value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Return the number; NULL stays ``None``."""
        return self.missing if isinstance(value, str | bytes) else value


def _moment(name: str, **options: Any) -> Column[int]:
    return Column(name, LenientNumber(), **options)


def _count(name: str, **options: Any) -> Column[int]:
    return Column(name, LenientNumber(Integer), server_default=ZERO, **options)


source = Table(
    "feed_source",
    metadata,
    Column("source_id", String(64), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("url", Text, nullable=False),
    Column("url_hash", String(64), nullable=False),
    Column("host", String(255), nullable=False),
    words("title", 300),
    # None when read: the row is damaged, and the source is set aside.
    Column("options", LenientJson, nullable=False),
    Column("manual_cadence", String(2), nullable=False, server_default=text("'P2'")),
    Column("state", String(16), nullable=False, server_default=text("'active'")),
    words("state_reason", 500),
    words("etag", 500),
    words("last_modified", 100),
    words("body_hash", 64),
    _moment("created_at", nullable=False),
    _moment("updated_at", nullable=False),
    # What was published and not read: `types.Gap`; NULL for nothing.
    Column("gap", LenientJson),
    # What is known of the source's clock: `clock_skew.SourceClock`.
    Column("clock", LenientJson),
    # Where people put it; NULL for no folder.
    Column("folder", String(200)),
    # Name of the credentials with which it is asked; the secrets stand in a file. NULL for none.
    Column("credential", String(64)),
    # Seconds that its publisher wants between two polls, and where that is written; NULL for nothing.
    Column("own_gap", Integer),
    Column("own_gap_from", String(32)),
    UniqueConstraint("kind", "url_hash", name="uq_feed_source_url"),
    Index("ix_feed_source_host", "host"),
    Index("ix_feed_source_folder", "folder"),
    Index("ix_feed_source_title", "title", "source_id"),
    **MYSQL_OPTIONS,
)

stats = Table(
    "source_stats",
    metadata,
    Column("source_id", String(64), primary_key=True),
    Column("source_type", String(16), nullable=False, server_default=text("'rss'")),
    Column("frequency_type", String(16), server_default=text("'daily'")),
    Column("cadence", String(2), server_default=text("'P2'")),
    Column("avg_publish_hour", LenientNumber(Double, None)),
    Column("std_publish_hour", LenientNumber(Double, None)),
    _moment("next_due_at", server_default=ZERO),
    _moment("last_check_at", server_default=ZERO),
    _moment("last_article_at", server_default=ZERO),
    _count("fail_count"),
    _moment("backoff_until", server_default=ZERO),
    Column("last_error", Text),
    _count("check_count"),
    _count("hit_count"),
    _moment("created_at"),
    _moment("updated_at"),
    # Not in the plan: further columns for the schedule, and the lease.
    _count("known_count", nullable=False),
    Column("mean_gap", LenientNumber(Double, None)),
    words("error_kind", 100),
    Column("why", LenientJson),
    words("lease_token", 64),
    _moment("lease_until", nullable=False, server_default=ZERO),
    Index("idx_source_stats_next_due", "next_due_at"),
    Index("idx_source_stats_cadence", "cadence"),
    Index("idx_source_stats_type", "source_type"),
    Index("idx_source_stats_type_due", "source_type", "next_due_at"),
    **MYSQL_OPTIONS,
)

entry = Table(
    "feed_entry",
    metadata,
    key("entry_id"),
    Column("source_id", String(64), nullable=False),
    Column("guid_hash", String(64), nullable=False),
    words("link_hash", 64),
    Column("guid", Text, nullable=False),
    Column("link", Text, nullable=False),
    words("title", 500),
    Column("summary", Text, nullable=False),
    Column("extra", JsonText),
    _moment("published_at", nullable=False),
    # False if the source gave no time, so that the time of finding is used instead.
    Column("dated", Boolean, nullable=False, server_default=true()),
    Column("content_hash", String(64), nullable=False),
    count("edits"),
    _moment("found_at", nullable=False),
    _moment("updated_at", nullable=False),
    # Equal for entries of several sources that are one story; empty for an entry without a link.
    words("story_hash", 64),
    # The reader's marks, 0 or 1. What was stored before there were any counts as read.
    small("unread"),
    small("starred"),
    # The article as HTML of its source, not yet safe to show; NULL if the summary says it all. Last, because databases
    # that keep long texts elsewhere then read the columns before it without it.
    Column("content", LongText),
    UniqueConstraint("source_id", "guid_hash", name="uq_feed_entry_guid"),
    Index("ix_feed_entry_link", "source_id", "link_hash"),
    Index("ix_feed_entry_published", "source_id", "published_at"),
    Index("ix_feed_entry_found", "found_at"),
    Index("ix_feed_entry_story", "story_hash"),
    # An index for each order in which entries are paged; the key makes it whole where it is not part of every index.
    Index("ix_feed_entry_newest", "published_at", "entry_id"),
    Index("ix_feed_entry_unread", "unread", "published_at", "entry_id"),
    Index("ix_feed_entry_unread_of", "unread", "source_id", "published_at"),
    Index("ix_feed_entry_starred", "starred", "published_at", "entry_id"),
    **MYSQL_OPTIONS,
)

newcomer = Table(
    "feed_newcomer",
    metadata,
    key("newcomer_id"),
    Column("source_id", String(64), nullable=False),
    Column("guid_hash", String(64), nullable=False),
    Column("remote_id", String(64), nullable=False),
    Column("name", String(500), nullable=False),
    Column("facts", JsonText, nullable=False),
    Column("changed", Boolean, nullable=False),
    _moment("seen_at", nullable=False),
    # NULL until the library's intake has read it.
    _moment("taken_at"),
    UniqueConstraint("source_id", "guid_hash", name="uq_feed_newcomer_video"),
    Index("ix_feed_newcomer_waiting", "taken_at", "newcomer_id"),
    **MYSQL_OPTIONS,
)

poll = Table(
    "feed_poll",
    metadata,
    key("poll_id"),
    Column("source_id", String(64), nullable=False),
    Column("host", String(255), nullable=False),
    _moment("at", nullable=False),
    Column("outcome", String(16), nullable=False),
    count("status"),
    count("new"),
    count("updated"),
    Column("delay", BigInteger),
    count("duration_ms"),
    words("error", 500),
    Index("ix_feed_poll_at", "at"),
    Index("ix_feed_poll_source", "source_id", "at"),
    **MYSQL_OPTIONS,
)

cadence_count = Table(
    "feed_cadence_count",
    metadata,
    _moment("at", primary_key=True, autoincrement=False),
    Column("counts", JsonText, nullable=False),
    **MYSQL_OPTIONS,
)

plan = Table(
    "feed_plan",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("content", JsonText, nullable=False),
    _moment("at", nullable=False),
    **MYSQL_OPTIONS,
)

snapshot = snapshot_table(metadata, "feed_snapshot")
gate = gate_table(metadata, "feed_gate")
