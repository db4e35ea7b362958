"""Our tables are the same on every engine and stay out of the CMS's way."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.exc import IntegrityError
from sqlalchemy.schema import CreateTable

from douban_pipeline.demo.cms_schema import table_columns
from douban_pipeline.douban.store.tables import SHARDS, own_tables
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import dead_owner


def gate(library, **given):
    row = {"next_slot_at": START, "interval_ms": 2000, "concurrency": 2, "holders": [], "state": "closed"}
    library.execute(sa.insert(library.tables.gate).values(**{"source": "douban", "updated_at": START, **row, **given}))
    return library.query(sa.select(library.tables.gate))[-1]


def test_text_compares_by_byte_unlike_the_cms(library):
    for source in ("Léon", "leon", "Leon", "LEON"):
        gate(library, source=source)
    assert len(library.query("SELECT source FROM mac_douban_gate WHERE source = 'leon'")) == 1
    with pytest.raises(IntegrityError):
        gate(library, source="leon")


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
