"""How long the library takes to be taken in: the first time, and when some of it changed."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import BindParameter, Connection, Table, bindparam, delete, insert, select, text, update

from douban_pipeline.core.database import reading
from douban_pipeline.douban.chain.due.intake import Intake
from douban_pipeline_tests.harness.benchmarks.measuring import (
    SMALL,
    Figure,
    Measure,
    Target,
    World,
    bare_cursor,
    bare_insert,
    peak_memory_mb,
    stopwatch,
)

_PIECE = 2_000
_ROUNDS = 3
CHANGED = 1_000
_NEW_SHARE = 10
"""One in so many of the rows that changed is new."""


def initialise(world: World) -> list[Figure]:
    """Take the whole library into tables that are empty."""
    services, tables = world.services, world.services.tables
    with services.engine.connect() as connection:
        for table in (tables.video, tables.person):
            connection.execute(text(f"TRUNCATE TABLE {table.name}"))
    intake = Intake(services.engine, tables, services.cms, services.clock)
    before = peak_memory_mb()
    with stopwatch() as ours:
        report = intake.initialise(progress=lambda done: world.say(f"{done:,} videos taken in"))
    memory = peak_memory_mb()
    assert report.new == world.size, f"{report.new} of {world.size} videos were taken in"
    world.say("writing the same rows by the driver alone")
    bare = _bare_initialise(world)
    with services.engine.connect() as connection:
        for table in (tables.video, tables.person):
            connection.execute(text(f"ANALYZE TABLE {table.name}")).all()
    return [
        Figure(
            "the whole library",
            ours.wall,
            "s",
            Target(most=60) if world.size <= SMALL else None,
            bare,
            "bare executemany of the same rows",
            f"{ours.cpu:.0f} s of CPU in this process at {world.size:,}",
        ),
        Figure(
            "peak memory",
            memory,
            "MB",
            Target(most=400, growth=1.2),
            note=f"{before:.0f} MB before it began at {world.size:,}",
        ),
        Figure("videos", world.size / ours.wall, "/s", None, world.size / bare, "bare executemany of the same rows"),
    ]


def _bare_initialise(world: World) -> float:
    engine, video = world.services.engine, world.services.tables.video
    names = ["vod_id", "type_id", "vod_time", "vod_douban_id", "shard", "fingerprint"]
    names += ["douban_id_source", "douban_review_status", "douban_next_sync_at"]
    seconds, last = 0.0, 0
    with engine.connect() as connection:
        connection.execute(text("DROP TABLE IF EXISTS bench_copy"))
        connection.execute(text(f"CREATE TABLE bench_copy LIKE {video.name}"))
        try:
            while True:
                # As the driver hands it out, so that nothing needs to be turned into anything.
                columns = ", ".join(names)
                rows = connection.exec_driver_sql(
                    f"SELECT {columns} FROM {video.name} WHERE vod_id > {last} ORDER BY vod_id LIMIT {_PIECE}"
                ).all()
                if not rows:
                    return seconds
                last = rows[-1][0]
                with stopwatch() as watch:
                    bare_insert(engine, "bench_copy", names, [tuple(row) for row in rows])
                seconds += watch.wall
        finally:
            connection.execute(text("DROP TABLE bench_copy"))


def intake(world: World) -> list[Figure]:
    """Take in rows that the CMS changed or added, some rounds, and put everything back after each."""
    count = min(CHANGED, world.size // 2)
    ours, bare, seen = [], [], 0
    for _ in range(_ROUNDS):
        with _changed(world, count) as ids:
            taking_in = Intake(world.services.engine, world.services.tables, world.services.cms, world.services.clock)
            with stopwatch() as watch:
                report = taking_in.changes()
            assert report.new == count // _NEW_SHARE, f"{report.new} new videos were found, not {count // _NEW_SHARE}"
            assert report.changed >= count - report.new, f"{report.changed} changed videos were found"
            ours.append(watch.wall)
            seen = report.seen
            bare.append(_bare_intake(world, ids))
    return [
        Figure(
            f"{CHANGED:,} changed rows",
            statistics.median(ours),
            "s",
            Target(most=2, growth=2),
            statistics.median(bare),
            "bare SELECT and UPDATE of as many rows",
            f"{count:,} rows, one in {_NEW_SHARE} of them new; {seen:,} were looked at",
        )
    ]


@contextmanager
def _changed(world: World, count: int) -> Iterator[list[int]]:
    services, video, vod = world.services, world.services.tables.video, world.services.cms.vod
    new = count // _NEW_SHARE
    ids = [1 + position * world.size // (count - new) for position in range(count - new)]
    now = int(services.clock.now().timestamp())
    columns = (vod.c.vod_id, vod.c.vod_time, vod.c.vod_sub, vod.c.vod_remarks)
    with reading(services.engine) as connection:
        rows = [dict(row) for row in connection.execute(select(*columns).where(vod.c.vod_id.in_(ids))).mappings()]
        states = [dict(row) for row in connection.execute(select(video).where(video.c.vod_id.in_(ids))).mappings()]
    try:
        with services.engine.begin() as connection:
            edit = {"vod_time": now, "vod_sub": "另有一名", "vod_remarks": "更新"}
            _write(connection, vod, [row | edit for row in rows])
            # Further rows are copies of the first ones.
            copy = text(f"CREATE TEMPORARY TABLE bench_new AS SELECT * FROM {vod.name} WHERE vod_id <= :new")
            connection.execute(copy, {"new": new})
            moved = text("UPDATE bench_new SET vod_id = vod_id + :size, vod_time = :now")
            connection.execute(moved, {"size": world.size, "now": now})
            connection.execute(text(f"INSERT INTO {vod.name} SELECT * FROM bench_new"))
            connection.execute(text("DROP TEMPORARY TABLE bench_new"))
        yield ids
    finally:
        with services.engine.begin() as connection:
            _write(connection, vod, rows)
            connection.execute(delete(vod).where(vod.c.vod_id > world.size))
            connection.execute(delete(video).where(video.c.vod_id > world.size))
            connection.execute(delete(video).where(video.c.vod_id.in_(ids)))
            connection.execute(insert(video), states)


def _write(connection: Connection, vod: Table, rows: Sequence[dict[str, object]]) -> None:
    names = [name for name in rows[0] if name != "vod_id"]
    values: dict[str, BindParameter[object]] = {name: bindparam(f"to_{name}") for name in names}
    change = update(vod).where(vod.c.vod_id == bindparam("key")).values(values)
    connection.execute(change, [{"key": row["vod_id"], **{f"to_{name}": row[name] for name in names}} for row in rows])


def _bare_intake(world: World, ids: Sequence[int]) -> float:
    vod, video = world.services.cms.vod.name, world.services.tables.video.name
    columns = "vod_id, type_id, vod_time, vod_douban_id, vod_name, vod_sub, vod_year, vod_area, vod_director, vod_actor"
    with stopwatch() as watch:
        with bare_cursor(world.services.engine) as cursor:
            cursor.execute(f"SELECT {columns} FROM {vod} WHERE vod_id IN ({', '.join(['%s'] * len(ids))})", ids)
            rows = cursor.fetchall()
        with bare_cursor(world.services.engine) as cursor:
            change = f"UPDATE {video} SET type_id = %s, vod_time = %s WHERE vod_id = %s"
            cursor.executemany(change, [(row[1], row[2], row[0]) for row in rows])
    return watch.wall


MEASURES = (
    Measure("initialise", "takes the whole library in, into empty tables", initialise),
    Measure("intake", f"takes in {CHANGED:,} rows that the CMS changed or added", intake),
)
