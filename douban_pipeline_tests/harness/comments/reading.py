"""How fast pages are read over HTTP: of a hot section, far down a large one, and of one that nobody has read yet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence

import sqlalchemy as sa

from douban_pipeline.comments.store.comment_lists import Order
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Target, bare_cursor
from douban_pipeline_tests.harness.comments.callers import Caller, percentile
from douban_pipeline_tests.harness.comments.loading import HOT, LARGE
from douban_pipeline_tests.harness.comments.running import Running

_KEYS = {Order.NEW: "floor", Order.FLOOR: "floor", Order.LIKES: "like_count", Order.HEAT: "heat"}
_SIZE = 20
_TOP, _FAR = "at the top", "far down"


def measure_hot(place: Running, seconds: int, connections: int) -> Iterator[Figure]:
    """Read page one of the hot section as fast as it goes over kept connections; p95 is of what a caller waits."""
    taken: list[float] = []
    refused: list[int] = []

    async def reader(base: str, until: float) -> None:
        async with Caller(base) as caller:
            while time.monotonic() < until:
                begun = time.perf_counter()
                answer = await caller.ask("GET", f"/comments/v1/sections/1/{HOT}/page?sort=new")
                if answer.status == 200:
                    taken.append(time.perf_counter() - begun)
                else:
                    refused.append(answer.status)

    async def run(until: float) -> None:
        await asyncio.gather(*(reader(place.base, until) for _ in range(connections)))

    asyncio.run(run(time.monotonic() + 2))
    taken.clear()
    refused.clear()
    before = place.service_seconds()
    asyncio.run(run(time.monotonic() + seconds))
    cpu = 1000 * (place.service_seconds() - before) / len(taken)
    yield Figure("page one", len(taken) / seconds, "/s", Target(least=1500))
    yield Figure("page one, p95", 1000 * percentile(taken, 0.95), "ms", Target(most=20))
    yield Figure("page one, refused", len(refused), "")
    yield Figure("page one, the services' CPU", cpu, "ms")


def _cursors(engine: sa.Engine, section_id: int, order: Order, first: int, count: int) -> list[str]:
    """Return cursors of places from the ``first``-th root on, a page apart, as a caller that paged there would have."""
    key, falls, scores = _KEYS[order], order != Order.FLOOR, order == Order.HEAT
    table = sa.table("cmt_score" if scores else "cmt_comment", sa.column(key), sa.column("comment_id"))
    columns = [table.c[key], table.c.comment_id]
    query = (
        sa.select(*columns)
        .where(sa.text("section_id = :section" + ("" if scores else " AND root_id = 0 AND status = 0")))
        .order_by(*(column.desc() if falls else column for column in columns))
        .limit(_SIZE * count)
        .offset(first)
    )
    with engine.connect() as connection:
        rows = connection.execute(query, {"section": section_id}).all()
    return [f"{row[0]}.{row[1]}" for row in rows[::_SIZE]]


_BARE = (
    "SELECT c.*, t.content FROM (SELECT comment_id FROM cmt_comment"
    " WHERE section_id = %s AND root_id = 0 AND status = 0 AND floor < %s ORDER BY floor DESC LIMIT %s) p"
    " JOIN cmt_comment c ON c.comment_id = p.comment_id JOIN cmt_content t ON t.comment_id = p.comment_id"
)
"""What a page by time costs at least: its roots alone, with their texts, in one statement."""


def _bare(engine: sa.Engine, section_id: int, cursors: Sequence[str]) -> list[float]:
    """Return how many milliseconds the driver alone takes for the same pages."""
    taken = []
    with bare_cursor(engine) as cursor:
        for each in cursors:
            begun = time.perf_counter()
            cursor.execute(_BARE, (section_id, int(each.partition(".")[0]), _SIZE))
            assert len(cursor.fetchall()) == _SIZE
            taken.append(1000 * (time.perf_counter() - begun))
    return taken


def measure_depth(place: Running, engine: sa.Engine, section_id: int, count: int, times: int) -> Iterator[Figure]:
    """Measure how long pages take at the top and four fifths down, in every order, beside the driver alone.

    Pages follow each other, so that none is read twice; one caller asks for one after another.
    """
    medians, slow = dict[tuple[Order, str], float](), 0.0

    async def read(order: Order, cursors: Sequence[str]) -> list[float]:
        taken = []
        async with Caller(place.base) as caller:
            for cursor in cursors:
                begun = time.perf_counter()
                path = f"/comments/v1/sections/1/{LARGE}/page?sort={order}&size={_SIZE}&cursor={cursor}"
                answer = await caller.ask("GET", path)
                taken.append(time.perf_counter() - begun)
                assert answer.status == 200, answer
                assert len(answer.json()["items"]) == _SIZE
        return taken

    bare = percentile(_bare(engine, section_id, _cursors(engine, section_id, Order.NEW, 0, times)), 0.5)
    for order in Order:
        for name, first in ((_TOP, 0), (_FAR, max(1, int(count * 0.8)))):
            cursors = _cursors(engine, section_id, order, first, times)
            before = place.service_seconds()
            taken = [1000 * each for each in asyncio.run(read(order, cursors))]
            used = 1000 * (place.service_seconds() - before) / len(taken)
            medians[order, name], slow = percentile(taken, 0.5), max(slow, percentile(taken, 0.95))
            note = f"the services' CPU {used:.1f} ms"
            what = f"a page by {order} {name}, p50"
            yield Figure(what, medians[order, name], "ms", Target(most=4), bare, "the driver alone, no replies", note)
    yield Figure("pages at the top and far down, p95", slow, "ms", Target(most=30), note="of the slowest order")
    against = max(medians[order, _FAR] / medians[order, _TOP] for order in Order)
    yield Figure("a page far down against page one", against, "", Target(most=2))
