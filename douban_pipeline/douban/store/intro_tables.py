"""Tables of synopses by the language model: answers, their marks, and the people a text may name."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    SmallInteger,
    String,
    Table,
    Text,
)

from douban_pipeline.core.column_types import JsonText
from douban_pipeline.core.columns import ZERO, big, count, key, link, moment, words
from douban_pipeline.douban.store.table_maker import TableMaker


@dataclass(frozen=True, slots=True)
class IntroTables:
    """Tables of synopses by the language model."""

    intro: Table
    intro_mark: Table
    person: Table


def intro_tables(maker: TableMaker) -> IntroTables:
    """Return these tables as ``maker`` names them."""
    table, index = maker.table, maker.index

    intro = table(
        "intro",
        key("intro_id"),
        big("vod_id"),
        Column("shard", SmallInteger, nullable=False),
        link("douban_id"),
        Column("task_id", BigInteger),
        Column("run_id", String(64), nullable=False),
        Column("state", String(16), nullable=False),
        words("reason", 500),
        Column("violations", JsonText),
        Column("intro_text", Text),
        words("model", 128),
        words("provider", 64),
        Column("prompt_version", String(32), nullable=False),
        Column("fact_sheet", JsonText),
        Column("fact_sheet_hash", String(64), nullable=False),
        Column("cost_usd", Double, nullable=False, server_default=ZERO),
        count("prompt_tokens"),
        count("completion_tokens"),
        Column("snapshot_id", BigInteger),
        # What the second reading found each sentence to rest on, and the answer that says so.
        Column("reading", JsonText),
        Column("reading_snapshot_id", BigInteger),
        Column("change_id", BigInteger),
        moment("created_at", nullable=False),
        index("intro_video", "vod_id", "intro_id"),
        index("intro_created", "created_at", "state"),
        index("intro_change", "change_id"),
    )
    intro_mark = table(
        "intro_mark",
        # The smallest hashes of an intro's pieces: texts that share some are compared in full.
        Column("mark", BigInteger, primary_key=True, autoincrement=False),
        Column("intro_id", BigInteger, primary_key=True, autoincrement=False),
        index("intro_mark_intro", "intro_id"),
    )
    person = table(
        "person",
        Column("name", String(64), primary_key=True),
        moment("seen_at", nullable=False),
    )
    return IntroTables(intro, intro_mark, person)
