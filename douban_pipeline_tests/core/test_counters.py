"""Counts shared by processes, on each database; and one process alone while the database does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import MetaData, Table, func, select

from douban_pipeline.core.counters import Count, Counters, CountersUnavailableError
from douban_pipeline.core.database import open_engine, reading
from douban_pipeline.core.platform_tables import counter_table
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock


@pytest.fixture
def table() -> Table:
    return counter_table(MetaData(), "counter")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def two(any_database_url: str, table: Table, clock: FakeClock) -> Iterator[list[Counters]]:
    """The counters of two processes, over one database."""
    both = [Counters(clock, open_engine(any_database_url), table) for _ in range(2)]
    engine = open_engine(any_database_url)
    table.metadata.create_all(engine)
    engine.dispose()
    yield both
    for each in both:
        each.close()


def test_two_processes_count_together(two: list[Counters], clock: FakeClock) -> None:
    async def work() -> None:
        one, other = two
        begun = clock.now()
        assert await one.add({"a": 60, "all": 900}) == [
            Count(1, begun + timedelta(seconds=60)),
            Count(1, begun + timedelta(seconds=900)),
        ]
        clock.advance(seconds=20)
        [mine, every] = await other.add({"a": 60, "all": 900})
        assert (mine.number, mine.ends) == (2, begun + timedelta(seconds=60)), "counting again does not prolong it"
        assert (every.number, mine.wait(clock.now())) == (2, 41)
        assert [count.number for count in await one.read("all", "a", "b")] == [2, 2, 0]
        clock.advance(seconds=40)
        assert [count.number for count in await other.read("a", "all")] == [0, 2]
        assert [count.number for count in await one.add({"all": 900, "a": 60})] == [3, 1]

    asyncio.run(work())


def test_no_count_is_lost_when_all_count_at_once(two: list[Counters]) -> None:
    async def work() -> None:
        names = [{"a": 60.0, "b": 60.0}, {"b": 60.0, "a": 60.0}]
        await asyncio.gather(*(two[n % 2].add(names[n // 2 % 2]) for n in range(60)))
        assert [count.number for count in await two[0].read("a", "b")] == [60, 60]

    asyncio.run(work())


def test_rows_that_have_ended_are_deleted(two: list[Counters], clock: FakeClock, table: Table) -> None:
    async def work() -> None:
        one, other = two
        await one.add({f"name {n}": 30 for n in range(20)})
        await one.add({"longer": 3600})
        clock.advance(seconds=90)
        await other.add({"longer": 3600})
        assert other._engine is not None
        with reading(other._engine) as connection:
            assert connection.execute(select(func.count()).select_from(table)).scalar_one() == 1
            assert "longer" not in connection.execute(select(table.c.name)).scalars().all(), "names are kept as hashes"

    asyncio.run(work())


def test_a_process_whose_database_is_away_counts_alone_from_what_it_knew(two: list[Counters], table: Table) -> None:
    async def work() -> None:
        one, other = two
        await one.add({"a": 3600})
        await other.add({"a": 3600})
        assert other._engine is not None
        table.drop(other._engine)
        assert [count.number for count in await other.add({"a": 3600})] == [3]
        assert [count.number for count in await other.read("a", "b")] == [3, 0]
        with pytest.raises(CountersUnavailableError):
            await other.add({"a": 3600}, must_share=True)
        table.create(other._engine)
        other.clock.sleep(11)
        assert [count.number for count in await other.add({"a": 3600}, must_share=True)] == [1]

    asyncio.run(work())
