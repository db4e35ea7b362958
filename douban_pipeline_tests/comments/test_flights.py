"""Hot keys, and calls that many callers share: in one process, and over Redis in several."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from douban_pipeline.comments.cache.flights import HotKeys, JointFlights, LoopFlights


def test_hot_keys_cool_down_and_rare_ones_are_forgotten():
    hot = HotKeys(5, window=1.0, buckets=10, most=3)
    assert [hot.hit("a", 0.05 * n) for n in range(6)] == [False] * 4 + [True] * 2
    assert not hot.hit("a", 5.0), "the window has passed"
    for number in range(20):
        hot.hit(number, 5.2)
    hot.hit("a", 5.25)
    hot.hit("a", 5.31)
    assert len(hot.hottest(100)) <= 4
    assert hot.hottest(1) == [("a", 3)]


def test_ten_thousand_callers_share_one_call():
    calls: list[int] = []

    async def fetch() -> int:
        calls.append(1)
        await asyncio.sleep(0)
        return 7

    async def main() -> list[int]:
        flights: LoopFlights[int] = LoopFlights()
        return await asyncio.gather(*(flights.run("page", fetch) for _ in range(10_000)))

    assert set(asyncio.run(main())) == {7}
    assert len(calls) == 1


def test_a_call_that_fails_fails_for_all_and_is_made_again():
    async def fail() -> Any:
        raise ValueError("gone")

    async def main() -> list[Any]:
        flights: LoopFlights[Any] = LoopFlights()
        first = await asyncio.gather(*(flights.run("k", fail) for _ in range(3)), return_exceptions=True)

        async def well() -> str:
            return "well"

        return [*first, await flights.run("k", well)]

    *failed, well = asyncio.run(main())
    assert [str(error) for error in failed] == ["gone"] * 3
    assert well == "well"


def joint(client: redis.Redis, prefix: str) -> JointFlights:
    return JointFlights(client, prefix, lambda call: call())


@pytest.fixture
def prefix(redis_client: redis.Redis) -> Iterator[str]:
    prefix = f"test:{uuid.uuid4().hex}:"
    yield prefix
    for key in redis_client.scan_iter(f"{prefix}*"):
        redis_client.delete(key)


def while_another_fetches(client: redis.Redis, prefix: str, end: Callable[[], str]) -> tuple[list[Any], list[str]]:
    """Have a process ask for what another one fetches, which goes on once it is waited for; return what both got."""
    began, got, fetched = threading.Event(), [], []

    def slowly() -> str:
        began.set()
        while not client.exists(f"{prefix}flight:{{page}}:waited"):
            pass
        fetched.append("first")
        return end()

    def first() -> None:
        try:
            got.append(joint(client, prefix).run("page", slowly, lambda: 0))
        except ValueError as error:
            got.append(error)

    def own() -> str:
        fetched.append("second")
        return "own"

    thread = threading.Thread(target=first)
    thread.start()
    assert began.wait(60)
    got.append(joint(client, prefix).run("page", own, lambda: 0))
    thread.join(60)
    return got, fetched


@pytest.mark.redis
def test_processes_that_want_a_page_at_once_have_it_read_by_one_of_them(redis_client, prefix):
    got, fetched = while_another_fetches(redis_client, prefix, lambda: "page")
    assert fetched == ["first"]
    assert sorted((each.result, each.own) for each in got) == [("page", False), ("page", True)]
    again = joint(redis_client, prefix).run("page", lambda: "new", lambda: 0)
    assert (again.result, again.own) == ("new", True), "who comes later has it read anew"


@pytest.mark.redis
def test_what_one_process_fails_to_read_is_read_by_the_one_that_waited(redis_client, prefix):
    def fail() -> str:
        raise ValueError("gone")

    got, fetched = while_another_fetches(redis_client, prefix, fail)
    assert fetched == ["first", "second"]
    assert [each.result for each in got if not isinstance(each, ValueError)] == ["own"]


@pytest.mark.redis
def test_a_hot_page_is_good_for_other_processes_as_long_as_its_copies_are(redis_client, prefix):
    joint(redis_client, prefix).run("page", lambda: "page", lambda: 60_000)
    found = joint(redis_client, prefix).run("page", lambda: "new", lambda: 60_000)
    assert (found.result, found.own) == ("page", False)
    assert 0 < found.good_ms <= 60_000


def test_without_redis_each_process_reads_for_itself():
    gone = redis.Redis(port=1)
    found = JointFlights(gone, "test:", lambda _: None).run("page", lambda: "own", lambda: 0)
    assert (found.result, found.own) == ("own", True)
