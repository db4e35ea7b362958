"""The archive keeps what came, once, and finds it again."""

from __future__ import annotations

import random
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event, func, select

from douban_pipeline.core import archive as archive_module
from douban_pipeline.core.archive import LONGEST_CACHE, ArchiveError, ArchiveSize
from douban_pipeline.core.errors import NotFound
from douban_pipeline.core.http_answers import Call
from douban_pipeline.core.payload import read_json
from douban_pipeline_tests.harness.fixtures.scripted_source import House, Source

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
    [found] = archive.recent("searxng", "b", WEEK)
    assert (found.source, found.request_key) == ("searxng", "b")
    assert archive.recent("searxng", "c", WEEK) == []


def test_recent_answers_are_those_seen_within_the_age(any_house: House) -> None:
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
    assert archive.recent("douban", "k", WEEK) == []


def test_nobody_is_given_what_retention_may_drop(house: House) -> None:
    assert house.archive.recent("douban", "k", LONGEST_CACHE) == []
    with pytest.raises(ValueError, match="30 days"):
        house.archive.recent("douban", "k", LONGEST_CACHE + timedelta(seconds=1))


def test_long_keys_are_distinguished_beyond_what_is_shown(any_house: House) -> None:
    archive = any_house.archive
    one, two = "片" * 600 + "1", "片" * 600 + "2"
    first, second = archive.put("s", one, 200, b"x", "v"), archive.put("s", two, 200, b"x", "v")
    assert first != second
    [found] = archive.recent("s", two, WEEK)
    assert found.snapshot_id == second
    assert found.request_key == "片" * 500


def test_an_unknown_snapshot_is_a_key_error(house: House) -> None:
    with pytest.raises(KeyError):
        house.archive.get(404)


def test_what_another_keeps_between_the_look_and_the_insert_is_found(any_house: House) -> None:
    archive = any_house.archive
    kept = archive.put("douban", "subject:1", 200, b"x", "v")
    looks: list[str] = []

    def too_early(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> tuple[str, Any]:
        if statement.startswith("SELECT"):
            looks.append(statement)
            statement += " AND 1 = 0" if len(looks) == 1 else ""
        return statement, parameters

    event.listen(any_house.engine, "before_cursor_execute", too_early, retval=True)
    assert archive.put("douban", "subject:1", 200, b"x", "v") == kept
    event.remove(any_house.engine, "before_cursor_execute", too_early)
    assert len(looks) == 2
    assert ids_of(any_house) == {kept}


@pytest.mark.parametrize("hours", [1, 24, 168])
def test_a_miss_is_believed_for_less_time_than_a_hit(house: House, hours: int) -> None:
    def parse(body: bytes) -> Any:
        found = read_json("douban", body)
        if found["code"] == 404:
            raise NotFound("douban", "条目不存在")
        return found

    house.archive.put("douban", "hit", 200, b'{"code": 1}', "v")
    house.archive.put("douban", "miss", 404, b'{"code": 404}', "v")
    fetcher = house.fetcher(missing_max_age=timedelta(hours=hours))
    house.clock.advance(hours=hours)
    with pytest.raises(NotFound):
        fetcher.cached("miss", LONGEST_CACHE, parse)
    house.clock.advance(seconds=1)
    assert fetcher.cached("miss", LONGEST_CACHE, parse) is None
    assert fetcher.cached("hit", LONGEST_CACHE, parse) is not None


# --- answers that cannot be kept --------------------------------------------------------------------------------------


def ids_of(house: House) -> set[int]:
    with house.engine.connect() as connection:
        return set(connection.execute(select(house.tables.snapshot.c.snapshot_id)).scalars())


@contextmanager
def failing_insert(house: House) -> Iterator[None]:
    """Let the database fail after it has inserted an answer, before anything is committed."""
    name = house.tables.snapshot.name
    fails = {
        "sqlite": "BEGIN SELECT RAISE(FAIL, 'no space left'); END",
        "mysql": "FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no space left'",
        "postgresql": "FOR EACH ROW EXECUTE FUNCTION no_space()",
    }[house.engine.dialect.name]
    on_postgres = house.engine.dialect.name == "postgresql"
    with house.engine.begin() as connection:
        if on_postgres:
            connection.exec_driver_sql(
                "CREATE OR REPLACE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE EXCEPTION 'no space left'; END $$"
            )
        connection.exec_driver_sql(f"CREATE TRIGGER no_space AFTER INSERT ON {name} {fails}")
    yield
    with house.engine.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER no_space" + (f" ON {name}" if on_postgres else ""))


def test_an_answer_that_the_database_refuses_leaves_nothing_and_says_so(any_house: House) -> None:
    put = any_house.archive.put
    kept = put("douban", "subject:1", 200, b"x", "v")
    with failing_insert(any_house):
        with pytest.raises(ArchiveError, match=r"^douban: .*answer of 12 bytes.*no space left") as caught:
            put("douban", "subject:geheim", 200, b"body: geheim", "v")
        assert put("douban", "subject:1", 200, b"x", "v") == kept
    written = "".join(traceback.format_exception(caught.value)).replace(__file__, "")
    assert "[parameters:" not in written, "the answer is not repeated in the log"
    assert ids_of(any_house) == {kept}
    assert put("douban", "subject:geheim", 200, b"body: geheim", "v") in ids_of(any_house)


def test_a_full_disk_is_reported(house: House) -> None:
    with house.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(ArchiveError, match="full"):
        house.archive.put("douban", "subject:1", 200, random.Random(1).randbytes(100_000), "v")
    assert ids_of(house) == set()


def test_an_answer_that_cannot_be_kept_is_not_the_fault_of_its_source(any_house: House, source: Source) -> None:
    source.says({"answer": 42})
    with failing_insert(any_house), pytest.raises(ArchiveError):
        any_house.fetcher().get(
            source.url, {}, Call(key="k", parser_version="v", parse=lambda body: read_json("douban", body))
        )
    status = any_house.status()
    assert (status.granted, status.failures, status.in_use) == (1, 0, 0)


# --- reading it anew --------------------------------------------------------------------------------------------------


def test_a_source_is_read_in_batches_from_the_oldest_on(any_house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = any_house.archive
    monkeypatch.setattr(archive_module, "_BODIES", 3)
    ids = {
        (source, version): [archive.put(source, f"{version}{number}", 200, b"x", version) for number in range(4)]
        for version in ("v1", "v2")
        for source in ("douban", "searxng")
    }
    everything = list(archive.read("douban"))
    assert max(map(len, everything)) <= 3
    read = [answer for batch in everything for answer in batch]
    assert [answer.snapshot_id for answer in read] == ids["douban", "v1"] + ids["douban", "v2"]
    assert {answer.body for answer in read} == {b"x"}

    archive.note_parser(ids["douban", "v1"][:2], "v2")
    older = [answer.snapshot_id for batch in archive.read("douban", other_than="v2") for answer in batch]
    assert older == ids["douban", "v1"][2:]
    assert list(archive.read("bocha")) == []


# --- dropping from it -------------------------------------------------------------------------------------------------


def test_what_was_not_seen_since_is_found_whatever_the_batch(any_house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    archive, clock = any_house.archive, any_house.clock
    monkeypatch.setattr(archive_module, "_IDS", 2)
    ids = []
    for together in (1, 5, 2):
        ids += [archive.put("douban", f"{len(ids)}:{number}", 200, b"x", "v") for number in range(together)]
        clock.advance(days=1)
    archive.put("douban", "0:0", 200, b"x", "v")
    batches = list(archive.unseen_since(clock.now() - timedelta(days=1)))
    assert max(map(len, batches)) <= 2
    assert [number for batch in batches for number in batch] == ids[1:6]


def test_only_what_is_still_old_is_dropped(any_house: House) -> None:
    archive, clock = any_house.archive, any_house.clock
    bodies = [random.Random(number).randbytes(500) for number in range(3)]
    old, seen_again, named_by_nobody = (
        archive.put("douban", str(number), 200, body, "v") for number, body in enumerate(bodies)
    )
    clock.advance(days=1)
    before = clock.now()
    archive.put("douban", "1", 200, bodies[1], "v")
    with any_house.engine.connect() as connection:
        table = any_house.tables.snapshot
        size = connection.execute(select(func.length(table.c.body)).where(table.c.snapshot_id == old)).scalar_one()
    assert archive.size_of([old, seen_again, 404], before) == ArchiveSize(1, size)
    assert ids_of(any_house) == {old, seen_again, named_by_nobody}
    assert archive.drop([old, seen_again, 404], before) == ArchiveSize(1, size)
    assert ids_of(any_house) == {seen_again, named_by_nobody}
    assert archive.drop([old, seen_again, 404], before) == ArchiveSize(0, 0)


def test_an_answer_dropped_while_it_comes_in_again_is_kept_anew(any_house: House) -> None:
    archive = any_house.archive
    archive.put("douban", "subject:1", 200, b"x", "v")

    def drop(connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("UPDATE"):
            connection.connection.cursor().execute(f"DELETE FROM {any_house.tables.snapshot.name}")

    event.listen(any_house.engine, "before_cursor_execute", drop)
    again = archive.put("douban", "subject:1", 200, b"x", "v")
    event.remove(any_house.engine, "before_cursor_execute", drop)
    assert archive.get(again).body == b"x"
    assert ids_of(any_house) == {again}
