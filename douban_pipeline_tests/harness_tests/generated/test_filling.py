"""A database is filled with a generated library once, wholly, and never on top of another."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import inspect, text

from douban_pipeline.core.database import open_engine
from douban_pipeline.demo.cms_schema import VOD_COLUMNS, default_types
from douban_pipeline.demo.library import LibraryError, create_library
from douban_pipeline_tests.harness.generated import filling
from douban_pipeline_tests.harness.generated.stored import stored_of
from douban_pipeline_tests.harness.generated.videos import video_of

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
SEED = 7
COUNT = 200


@pytest.fixture
def engine(database_url):
    engine = open_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def mariadb(mariadb_url):
    engine = open_engine(mariadb_url)
    yield engine
    engine.dispose()


def fill(engine, count=COUNT, **given):
    return filling.fill(engine, count, **{"seed": SEED, "now": NOW, **given})


def query(engine, statement):
    with engine.connect() as connection:
        return [dict(row) for row in connection.execute(text(statement)).mappings()]


def execute(engine, statement):
    with engine.begin() as connection:
        connection.execute(text(statement))


def count_of(engine, table="mac_vod"):
    return query(engine, f"SELECT COUNT(*) AS n FROM {table}")[0]["n"]


def plain(row):
    return {name: float(value) if "score" in name else value for name, value in row.items()}


def test_the_library_comes_in_as_the_cms_would_store_it(engine):
    assert fill(engine) == COUNT
    rows = query(engine, "SELECT * FROM mac_vod ORDER BY vod_id")
    assert [row["vod_id"] for row in rows] == list(range(1, COUNT + 1))
    fallbacks = {column.name: column.fallback for column in VOD_COLUMNS}
    for row in rows:
        assert plain(row) == plain(fallbacks | stored_of(row["vod_id"], SEED, NOW))
    assert any("&#039;" in row["vod_sub"] or "&amp;" in row["vod_sub"] for row in rows)
    assert count_of(engine, "mac_type") == len(default_types())
    assert len(inspect(engine).get_indexes("mac_vod")) == sum(column.indexed for column in VOD_COLUMNS)


def test_what_was_left_half_made_gets_the_rest(engine):
    fill(engine, 150)
    execute(engine, "DELETE FROM mac_vod WHERE vod_id IN (1, 2, 70, 150)")
    said = []
    assert fill(engine, progress=said.append) == COUNT - 146
    assert said[0] == "54 of 200 videos are missing and are made"
    expected = [video_of(vod_id, SEED, NOW)["vod_play_url"] for vod_id in range(1, COUNT + 1)]
    assert [row["vod_play_url"] for row in query(engine, "SELECT * FROM mac_vod ORDER BY vod_id")] == expected


@pytest.mark.parametrize(("count", "seed"), [(COUNT, SEED + 1), (COUNT - 50, SEED)])
def test_another_generated_library_is_refused(engine, count, seed):
    fill(engine)
    with pytest.raises(LibraryError, match=f"of {count} with seed {seed}: nothing was inserted"):
        fill(engine, count, seed=seed)
    assert count_of(engine) == COUNT


def test_a_site_is_refused(engine):
    create_library(engine, [{"vod_id": 3, "vod_name": "庆余年", "type_id": 13}], default_types())
    with pytest.raises(LibraryError, match="other videos"):
        fill(engine)
    assert count_of(engine) == 1


@pytest.mark.mariadb
def test_a_load_that_was_interrupted_is_mended(mariadb, monkeypatch):
    def break_off(engine, table, progress):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(filling, "_build_indexes", break_off)
        with pytest.raises(KeyboardInterrupt):
            fill(mariadb)
    assert any(index["Comment"] == "disabled" for index in query(mariadb, "SHOW INDEX FROM mac_vod"))
    assert fill(mariadb) == 0
    assert not any(index["Comment"] == "disabled" for index in query(mariadb, "SHOW INDEX FROM mac_vod"))
    assert query(mariadb, "CHECK TABLE mac_vod")[0]["Msg_text"] == "OK"
    plan = query(mariadb, "EXPLAIN FORMAT=TRADITIONAL SELECT vod_id FROM mac_vod WHERE vod_time = 9")
    assert plan[0]["key"] == "vod_time"


@pytest.mark.mariadb
def test_many_videos_are_made_by_several_processes(mariadb, monkeypatch):
    monkeypatch.setattr(filling, "_ALONE", 100)
    monkeypatch.setattr(filling, "_CHUNK", 150)
    said = []
    assert fill(mariadb, 400, progress=said.append) == 400
    assert said[1:4] == ["150 of 400 videos loaded", "300 of 400 videos loaded", "400 of 400 videos loaded"]
    assert (
        query(mariadb, "SELECT vod_en FROM mac_vod WHERE vod_id = 301")[0]["vod_en"]
        == stored_of(301, SEED, NOW)["vod_en"]
    )
