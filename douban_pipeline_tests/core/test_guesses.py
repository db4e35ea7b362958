"""The guard against guessing: who may try how often, and who is never locked out."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Iterator

import pytest
from sqlalchemy import MetaData

from douban_pipeline.core.counters import Counters
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.guesses import ALL, EACH, GuessGuard, TooManyGuessesError, household
from douban_pipeline.core.platform_tables import counter_table
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock

RIGHT = "the-right-token"


class Door:
    """One process with a guard; counts what it compares."""

    def __init__(self, counters: Counters) -> None:
        self.guard = GuessGuard(counters)
        self.name = "door"
        self.compared = 0

    def _find(self, given: str) -> bool | None:
        self.compared += 1
        return hmac.compare_digest(given.encode(), RIGHT.encode()) or None

    async def knock(self, address: str, given: str) -> str | int:
        """Return how it is answered: in, wrong, or for how many seconds it is refused."""
        try:
            return "in" if await self.guard.compare(self.name, address, given, self._find) else "wrong"
        except TooManyGuessesError as refused:
            return refused.seconds


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def doors(any_database_url: str, clock: FakeClock) -> Iterator[list[Door]]:
    """Two processes over one database."""
    table = counter_table(MetaData(), "counter")
    engine = open_engine(any_database_url)
    table.metadata.create_all(engine)
    engine.dispose()
    both = [Door(Counters(clock, open_engine(any_database_url), table)) for _ in range(2)]
    yield both
    for door in both:
        door.guard.counters.close()


def test_guesses_in_two_processes_are_counted_together(doors: list[Door], clock: FakeClock) -> None:
    async def work() -> None:
        answers = [await doors[n % 2].knock("192.0.2.1", f"wrong {n}") for n in range(EACH)]
        assert answers == ["wrong"] * EACH
        for door in doors:
            compared = door.compared
            assert 890 < int(await door.knock("192.0.2.1", RIGHT)) <= 901, "a right one is not even compared"
            assert door.compared == compared
            assert await door.knock("192.0.2.2", RIGHT) == "in"
        clock.advance(minutes=15)
        assert await doors[0].knock("192.0.2.1", RIGHT) == "in"

    asyncio.run(work())


def test_of_many_guesses_at_once_no_more_are_compared(doors: list[Door]) -> None:
    async def work() -> None:
        answers = await asyncio.gather(*(doors[0].knock("192.0.2.1", f"wrong {n}") for n in range(200)))
        assert answers.count("wrong") == EACH == doors[0].compared

    asyncio.run(work())


def test_a_flood_from_everywhere_locks_nobody_out(doors: list[Door]) -> None:
    async def work() -> None:
        for n in range(ALL):
            assert await doors[n % 2].knock(f"198.51.100.{n}", "wrong") == "wrong"
        assert await doors[0].knock("192.0.2.1", "wrong") == "wrong"
        assert int(await doors[1].knock("192.0.2.1", "wrong")) > 0, "one guess an address is left"
        assert await doors[0].knock("192.0.2.2", RIGHT) == "in"

    asyncio.run(work())


def test_who_was_in_stays_in_for_a_minute_whatever_a_neighbour_guesses(doors: list[Door], clock: FakeClock) -> None:
    async def work() -> None:
        assert await doors[0].knock("192.0.2.1", RIGHT) == "in"
        for n in range(EACH + 1):
            await doors[0].knock("192.0.2.1", f"wrong {n}")
        assert await doors[0].knock("192.0.2.1", RIGHT) == "in"
        clock.advance(minutes=1)
        assert int(await doors[0].knock("192.0.2.1", RIGHT)) > 0

    asyncio.run(work())


def test_guesses_at_one_door_lock_no_other(doors: list[Door]) -> None:
    async def work() -> None:
        for n in range(ALL + 1):
            await doors[0].knock(f"198.51.100.{n % 2}", f"wrong {n}")
        assert int(await doors[1].knock("198.51.100.0", RIGHT)) > 0
        doors[1].name = "another"
        assert [await doors[1].knock("198.51.100.0", each) for each in ("wrong 1", "wrong 2", RIGHT)] == [
            "wrong",
            "wrong",
            "in",
        ]

    asyncio.run(work())


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2", True),
    ],
)
def test_a_household_is_one(one: str, other: str, same: bool) -> None:
    assert (household(one) == household(other)) is same
