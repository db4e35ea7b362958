"""Our tables keep every value as it was given, the same way on every engine, and stay out of the CMS's way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.exc import IntegrityError, StatementError
from sqlalchemy.schema import CreateTable

from douban_pipeline.core.column_types import OneDecimal
from douban_pipeline.demo.cms_schema import table_columns
from douban_pipeline.douban.store.tables import SHARDS, own_tables
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import dead_owner

MOMENT = datetime(2026, 3, 1, 12, 30, 59, 123456, tzinfo=UTC)


@pytest.fixture
def library(shared_library):
    return shared_library.renewed()


def gate(library, **given):
    row = {"next_slot_at": START, "interval_ms": 2000, "concurrency": 2, "holders": [], "state": "closed"}
    library.execute(sa.insert(library.tables.gate).values(**{"source": "douban", "updated_at": START, **row, **given}))
    return library.query(sa.select(library.tables.gate))[-1]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (MOMENT, MOMENT),
        (MOMENT.astimezone(timezone(timedelta(hours=8))), MOMENT),
        (datetime(1999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),) * 2,
        (None, None),
    ],
)
def test_moments_keep_their_microseconds_and_come_back_in_utc(library, given, kept):
    row = gate(library, open_until=given)
    assert row["open_until"] == kept
    assert kept is None or row["open_until"].utcoffset() == timedelta(0)


def test_a_moment_without_a_zone_is_refused(library):
    with pytest.raises(StatementError, match="give it a time zone"):
        gate(library, open_until=MOMENT.replace(tzinfo=None))


@pytest.mark.parametrize(
    "value", [{}, [], {"片名": "𠮷野家 🎬", "分": [1, 2.5, None, True], "'\"\\%:x": "<&>"}, ["长" * 100_000], "", 0]
)
def test_json_comes_back_as_it_was_given(library, value):
    assert gate(library, holders=value)["holders"] == value


def test_json_is_readable_where_it_lies(library):
    gate(library, holders={"b": "霸王别姬", "a": 1})
    assert library.query("SELECT holders FROM mac_douban_gate")[0]["holders"] == '{"a": 1, "b": "霸王别姬"}'


def test_a_raw_answer_may_be_large_and_hold_any_byte(library):
    body = bytes(range(256)) * 2000
    row = {"source": "douban", "key_hash": "k", "request_key": "1292052", "status": 200, "sha256": "s"}
    row |= {"body": body, "parser_version": "1", "fetched_at": START, "seen_at": START}
    library.execute(sa.insert(library.tables.snapshot).values(**row))
    assert library.query(sa.select(library.tables.snapshot))[0]["body"] == body


def test_text_compares_by_byte_unlike_the_cms(library):
    for source in ("Léon", "leon", "Leon", "LEON"):
        gate(library, source=source)
    assert len(library.query("SELECT source FROM mac_douban_gate WHERE source = 'leon'")) == 1
    with pytest.raises(IntegrityError):
        gate(library, source="leon")


@pytest.mark.parametrize(
    ("value", "kept"), [(Decimal("8.1"), "8.1"), (Decimal("0"), "0.0"), (Decimal("99.9"), "99.9"), (None, None)]
)
def test_a_score_has_one_place_on_every_engine(library, value, kept):
    metadata = sa.MetaData()
    table = sa.Table("score", metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("score", OneDecimal))
    with library.engine.begin() as connection:
        metadata.create_all(connection)
        connection.execute(sa.insert(table).values(score=value))
        found = connection.execute(sa.select(table.c.score)).scalar_one()
        metadata.drop_all(connection)
    assert (None if found is None else str(found)) == kept


def test_a_state_row_needs_little_and_starts_as_not_found(library):
    library.execute(sa.insert(library.tables.video).values(vod_id=4_294_967_295, shard=63))
    state = library.state(4_294_967_295)
    assert state["douban_review_status"] == "NOT_FOUND"
    assert (state["douban_id_locked"], state["intro_locked"], state["douban_sync_fail_count"]) == (False, False, 0)
    assert state["douban_next_sync_at"] is None


def test_an_owners_name_fits():
    longest = dead_owner("x" * 36).replace("@", "@" + "h" * 64)
    for table in (own_tables("mac_").task.c.lease_owner, own_tables("mac_").log.c.owner):
        assert len(longest) <= table.type.length


@pytest.mark.parametrize("prefix", ["mac_", "x_", ""])
def test_names_are_the_prefixs_own(prefix):
    tables = own_tables(prefix).metadata.tables
    assert all(name.startswith(f"{prefix}douban_") for name in tables)
    cms = {f"{prefix}{name}" for name in table_columns()}
    assert not cms & set(tables)
    indexes = [index.name for table in tables.values() for index in table.indexes]
    assert len(indexes) == len(set(indexes)), "SQLite names indexes per database"
    assert all(len(name) <= 64 for name in indexes)
    assert SHARDS == 64


@pytest.mark.parametrize("name", sorted(own_tables("mac_").metadata.tables))
def test_every_table_is_transactional_and_holds_any_character(name):
    ddl = str(CreateTable(own_tables("mac_").metadata.tables[name]).compile(dialect=mysql.dialect()))
    assert "ENGINE=InnoDB" in ddl
    assert "CHARSET=utf8mb4" in ddl
    assert "COLLATE utf8mb4_bin" in ddl
