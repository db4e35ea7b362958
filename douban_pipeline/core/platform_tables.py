"""Tables that several systems have: the archive of answers, the gates of sources, the counts of the service."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, String, Table, UniqueConstraint

from douban_pipeline.core.column_types import JsonText, LongBlob, count, key, link, moment, words

MYSQL_OPTIONS: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mysql_row_format": "DYNAMIC",
}


def snapshot_table(metadata: MetaData, name: str) -> Table:
    """Return the table of a system's archive, see `core.archive`: one row per raw answer."""
    return Table(
        name,
        metadata,
        key("snapshot_id"),
        Column("source", String(32), nullable=False),
        Column("key_hash", String(64), nullable=False),
        Column("request_key", String(500), nullable=False),
        Column("status", Integer, nullable=False),
        Column("sha256", String(64), nullable=False),
        Column("body", LongBlob, nullable=False),
        Column("parser_version", String(32), nullable=False),
        moment("fetched_at", nullable=False),
        moment("seen_at", nullable=False),
        UniqueConstraint("source", "key_hash", "sha256", name=f"uq_{name}_content"),
        # SQLite names indexes per database, so the table's name is part of the index's.
        Index(f"ix_{name}_seen", "seen_at"),
        **MYSQL_OPTIONS,
    )


def gate_table(metadata: MetaData, name: str) -> Table:
    """Return the table of a system's gates, see `core.gate`: one row per source."""
    return Table(
        name,
        metadata,
        Column("source", String(32), primary_key=True),
        moment("next_slot_at", nullable=False),
        Column("interval_ms", Integer, nullable=False),
        Column("concurrency", Integer, nullable=False),
        Column("holders", JsonText, nullable=False),
        Column("state", String(16), nullable=False),
        moment("open_until"),
        Column("probe_owner", String(160)),
        moment("probe_until"),
        count("failures"),
        link("granted"),
        words("reason", 500),
        # The person who opened or closed it by hand; empty if it changed automatically.
        words("changed_by", 64),
        # Limits that only some sources have.
        Column("requests_per_day", Integer),
        Column("tokens_per_minute", Integer),
        Column("tokens_per_day", Integer),
        # Calls admitted, succeeded and failed, and tokens: per minute for an hour, and for today.
        Column("usage", JsonText, quote=True),
        moment("updated_at", nullable=False),
        **MYSQL_OPTIONS,
    )


def counter_table(metadata: MetaData, name: str) -> Table:
    """Return the table of the service's counts, see `core.counters`: one row per name, which is kept as a hash."""
    return Table(
        name,
        metadata,
        Column("name", String(64), primary_key=True),
        Column("number", BigInteger, nullable=False),
        moment("ends_at", nullable=False),
        Index(f"ix_{name}_ends", "ends_at"),
        **MYSQL_OPTIONS,
    )
