"""The demo library is stored as the CMS would have stored it, and never poured into a site."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import inspect, text

from douban_pipeline.core.database import open_engine
from douban_pipeline.demo.cms_schema import TYPE_COLUMNS, VOD_COLUMNS, default_types
from douban_pipeline.demo.library import LibraryError, create_library, escape_as_cms

VIDEOS = [
    {"vod_id": 7, "type_id": 6, "type_id_1": 1, "vod_name": 'Ocean\'s Eleven & "Co" <HD>', "vod_year": "2001"},
    {
        "vod_id": 3,
        "type_id": 13,
        "type_id_1": 2,
        "vod_name": "庆余年",
        "vod_content": "<p>小说&改编</p>",
        "vod_douban_score": 8.0,
        "vod_recycle_time": 5,
    },
]


@pytest.fixture
def engine(database_url):
    engine = open_engine(database_url)
    yield engine
    engine.dispose()


def rows(engine, table="mac_vod", key="vod_id"):
    with engine.connect() as connection:
        found = connection.execute(text(f"SELECT * FROM {table} ORDER BY {key}")).mappings()
        return [dict(row) for row in found]


@pytest.mark.parametrize(
    ("plain", "width", "stored"),
    [
        ("Ocean's Eleven", None, "Ocean&#039;s Eleven"),
        ('a & b < c > "d"', None, "a &amp; b &lt; c &gt; &quot;d&quot;"),
        ("&amp;", None, "&amp;amp;"),
        ("  冰与火  ", None, "冰与火"),
        ("汉语普通话 / 粤语 / 英语", 10, "汉语普通话 / 粤语"),
        ("Tom & Jerry", 6, "Tom &a"),
    ],
)
def test_text_is_escaped_and_then_cut(plain, width, stored):
    assert escape_as_cms(plain, width) == stored


def test_rows_come_in_with_the_defaults_of_the_cms(engine):
    assert create_library(engine, VIDEOS, default_types()) == 2
    qing, ocean = rows(engine)
    assert ocean["vod_name"] == "Ocean&#039;s Eleven &amp; &quot;Co&quot; &lt;HD&gt;"
    assert qing["vod_content"] == "<p>小说&改编</p>"
    assert (qing["vod_id"], qing["vod_recycle_time"], float(qing["vod_douban_score"])) == (3, 5, 8.0)
    given = {"vod_id", "vod_name", "type_id", "type_id_1", "vod_year"}
    assert {name: value for name, value in ocean.items() if name not in given} == {
        column.name: column.fallback for column in VOD_COLUMNS if column.name not in given
    }
    types = rows(engine, "mac_type", "type_id")
    assert [row["type_id"] for row in types] == [row["type_id"] for row in default_types()]
    assert all(json.loads(row["type_extend"]) for row in types)
    assert set(types[0]) == {column.name for column in TYPE_COLUMNS}


def test_a_second_call_changes_nothing(engine):
    create_library(engine, VIDEOS, default_types())
    with engine.begin() as connection:
        connection.execute(text("UPDATE mac_vod SET vod_douban_id = 25853071 WHERE vod_id = 3"))
        connection.execute(text("UPDATE mac_type SET type_name = '影片' WHERE type_id = 1"))
    before = rows(engine), rows(engine, "mac_type", "type_id")
    assert create_library(engine, VIDEOS, default_types()) == 0
    assert (rows(engine), rows(engine, "mac_type", "type_id")) == before


def test_a_half_made_library_gets_the_rest(engine):
    create_library(engine, VIDEOS[:1], default_types()[:4])
    assert create_library(engine, VIDEOS, default_types()) == 1
    assert [row["vod_id"] for row in rows(engine)] == [3, 7]
    assert len(rows(engine, "mac_type", "type_id")) == len(default_types())


def test_a_library_that_grew_is_left_alone(engine):
    create_library(engine, [*VIDEOS, {"vod_id": 9, "vod_name": "新入库"}], [])
    assert create_library(engine, VIDEOS, default_types()) == 0
    assert len(rows(engine)) == 3
    assert rows(engine, "mac_type", "type_id") == []


def test_another_library_is_never_touched(engine):
    create_library(engine, [{"vod_id": 900, "vod_name": "别人的"}, {"vod_id": 7, "vod_name": "也是"}], [])
    before = rows(engine)
    with pytest.raises(LibraryError, match="1 other videos"):
        create_library(engine, VIDEOS, default_types())
    assert rows(engine) == before
    assert rows(engine, "mac_type", "type_id") == []


def test_the_classic_form_drops_what_it_cannot_hold(engine):
    assert create_library(engine, VIDEOS, default_types(), prefix="old_", form="classic") == 2
    assert len(inspect(engine).get_columns("old_vod")) == 82
    assert create_library(engine, VIDEOS, default_types(), prefix="old_") == 0


@pytest.mark.parametrize(
    ("videos", "message"),
    [
        ([{"vod_name": "无号"}], "no vod_id"),
        ([{"vod_id": 1}, {"vod_id": 1}], "share a vod_id"),
        ([{"vod_id": 1, "vod_title": "错"}], "vod_title"),
    ],
)
def test_rows_that_make_no_sense_are_refused(sqlite_url, videos, message):
    engine = open_engine(sqlite_url)
    with pytest.raises(ValueError, match=message):
        create_library(engine, videos, [])
    assert inspect(engine).get_table_names() == []
    engine.dispose()
