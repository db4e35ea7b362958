"""The archive keeps what came, once, and finds it again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import func, select

from douban_pipeline_tests.upstream.conftest import House

WEEK = timedelta(days=7)


def test_the_same_content_is_kept_once_and_seen_again(any_house: House) -> None:
    archive, clock = any_house.archive, any_house.clock
    body = "检测".encode() * 5000
    first = archive.put("douban", "subject:1", 500, body, "v1")
    fetched_at = clock.now()
    clock.advance(hours=2)
    assert archive.put("douban", "subject:1", 200, body, "v2") == first
    snapshot = archive.get(first)
    assert snapshot.body == body
    assert (snapshot.status, snapshot.parser_version, snapshot.request_key) == (200, "v1", "subject:1")
    assert (snapshot.fetched_at, snapshot.seen_at) == (fetched_at, clock.now())
    table = any_house.tables.snapshot
    with any_house.engine.connect() as connection:
        assert connection.execute(select(func.count()).select_from(table)).scalar() == 1
        stored = connection.execute(select(table.c.body)).scalar()
    assert stored is not None
    assert len(stored) < len(body) / 10


def test_sources_and_keys_do_not_mix(any_house: House) -> None:
    archive = any_house.archive
    ids = {archive.put(s, k, 200, b"x", "v") for s in ("douban", "searxng") for k in ("a", "b")}
    assert len(ids) == 4
    found = archive.latest("searxng", "b", WEEK)
    assert found is not None
    assert (found.source, found.request_key) == ("searxng", "b")
    assert archive.latest("searxng", "c", WEEK) is None


def test_latest_is_the_newest_seen_within_the_age(any_house: House) -> None:
    archive, clock = any_house.archive, any_house.clock
    old = archive.put("douban", "k", 200, b"old", "v")
    clock.advance(days=1)
    new = archive.put("douban", "k", 200, b"new", "v")
    assert [s.snapshot_id for s in archive.recent("douban", "k", WEEK)] == [new, old]
    clock.advance(days=1)
    archive.put("douban", "k", 200, b"old", "v")
    assert [s.snapshot_id for s in archive.recent("douban", "k", WEEK)] == [old, new]
    assert [s.snapshot_id for s in archive.recent("douban", "k", timedelta(hours=1))] == [old]
    clock.advance(days=8)
    assert archive.latest("douban", "k", WEEK) is None


def test_long_keys_are_told_apart_beyond_what_is_shown(any_house: House) -> None:
    archive = any_house.archive
    one, two = "片" * 600 + "1", "片" * 600 + "2"
    first, second = archive.put("s", one, 200, b"x", "v"), archive.put("s", two, 200, b"x", "v")
    assert first != second
    found = archive.latest("s", two, WEEK)
    assert found is not None
    assert found.snapshot_id == second
    assert found.request_key == "片" * 500


def test_an_unknown_snapshot_is_a_key_error(house: House) -> None:
    with pytest.raises(KeyError):
        house.archive.get(404)


def test_many_answers_are_read_at_once(any_house: House) -> None:
    archive = any_house.archive
    one, two = (archive.put("douban", key, 200, key.encode(), "v") for key in ("a", "b"))
    with any_house.engine.connect() as connection:
        assert archive.bodies(connection, [two, one, 404]) == {one: b"a", two: b"b"}
        assert archive.bodies(connection, []) == {}
