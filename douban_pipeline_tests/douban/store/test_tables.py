"""Our tables are the same on every engine and stay out of the CMS's way."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.exc import IntegrityError
from sqlalchemy.schema import CreateTable

from douban_pipeline.douban.store.tables import own_tables
from douban_pipeline_tests.harness.fixtures.clocks import START


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


@pytest.mark.parametrize("name", sorted(own_tables("mac_").metadata.tables))
def test_every_table_is_transactional_and_holds_any_character(name):
    ddl = str(CreateTable(own_tables("mac_").metadata.tables[name]).compile(dialect=mysql.dialect()))
    assert "ENGINE=InnoDB" in ddl
    assert "CHARSET=utf8mb4" in ddl
    assert "COLLATE utf8mb4_bin" in ddl
