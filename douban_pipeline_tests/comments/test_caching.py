"""Lists in Redis that never lie, one rebuild a list, hot keys, shared calls."""

from __future__ import annotations

import asyncio
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from sqlalchemy import update

from douban_pipeline.comments import guards
from douban_pipeline.comments.caching.flights import Flights, JointFlights
from douban_pipeline.comments.caching.following import ListFollower
from douban_pipeline.comments.caching.hot import HotKeys
from douban_pipeline.comments.caching.lists import ListChange, ListName, RedisLists, open_lists
from douban_pipeline.comments.depending import Dependencies, Dependency, UnavailableError
from douban_pipeline.comments.guards import CommentBreach
from douban_pipeline.comments.heat.ranking import Policy
from douban_pipeline.comments.pages import Target, place_of, read_roots
from douban_pipeline.comments.scoring.sections import score_section
from douban_pipeline.comments.sites import Site
from douban_pipeline.comments.store.reading import Order, Place
from douban_pipeline.comments.store.tables import score
from douban_pipeline.comments.types import CommentStatus
from douban_pipeline.core.database import reading
from douban_pipeline_tests.comments.stage import OPERATOR, Stage, stage, user
from douban_pipeline_tests.conftest import server_url
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock


@pytest.fixture
def client() -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(server_url("redis"), decode_responses=True)
    yield client
    client.close()


@pytest.fixture
def served(client: redis.Redis, sqlite_url: str) -> Iterator[tuple[Stage, RedisLists, ListFollower]]:
    with stage(sqlite_url) as place:
        prefix = f"test:{uuid.uuid4().hex}:"
        lists = RedisLists(client, place.clock, prefix=prefix, most=5, seconds=60)
        follower = ListFollower(place.engine, lists)
        place.worker._followers = (follower,)
        yield place, lists, follower
        assert place.differences() == []
        for key in client.scan_iter(f"{prefix}*"):
            client.delete(key)


def held(lists: RedisLists, name: ListName) -> list[int] | None:
    found = lists.page(name, None, 100)
    return None if found is None else [place.comment_id for place in found.places]


pytestmark = pytest.mark.redis


@pytest.mark.parametrize("order", [Order.NEW, Order.FLOOR, Order.LIKES])
def test_lists_follow_what_is_applied_only_where_they_live(order, served):
    place, lists, follower = served
    name = ListName(place.section_id, order)
    roots = [place.publish(user(number), f"根 {number}") for number in range(2, 5)]
    place.work()
    assert held(lists, name) is None, "nobody has asked for it"
    assert follower.rebuild(name)
    assert held(lists, name) == place.roots(order)
    roots.append(place.publish(user(9), "新"))
    place.vote(user(9), roots[1], 1)
    place.set_status(OPERATOR, roots[0], CommentStatus.DELETED)
    place.work()
    assert held(lists, name) == place.roots(order)
    place.undo(OPERATOR, roots[0])
    place.work()
    assert held(lists, name) == place.roots(order)


def test_a_list_that_holds_only_the_first_has_no_holes(served):
    place, lists, follower = served
    roots = [place.publish(user(number), f"根 {number}") for number in range(2, 10)]
    place.work()
    newest, liked = (ListName(place.section_id, order) for order in (Order.NEW, Order.LIKES))
    for root in roots[:6]:
        place.vote(user(2), root, 1)
    place.work()
    assert follower.rebuild(newest)
    assert follower.rebuild(liked)
    assert held(lists, newest) == roots[:2:-1]
    place.set_status(OPERATOR, roots[0], CommentStatus.DELETED)
    place.undo(OPERATOR, roots[0])
    place.vote(user(2), roots[5], 0)
    place.vote(user(3), roots[7], 1)
    place.work()
    found = held(lists, newest)
    assert found == place.roots(Order.NEW)[: len(found)]
    found = held(lists, liked)
    assert found == place.roots(Order.LIKES)[: len(found)]


def test_replies_are_followed_by_the_list_of_their_root(served):
    place, lists, follower = served
    root = place.publish(user(2), "根")
    first = place.publish(user(3), "一", root)
    place.work()
    name = ListName(place.section_id, Order.FLOOR, root)
    assert follower.rebuild(name)
    second = place.publish(user(4), "二", first)
    place.work()
    assert held(lists, name) == [first, second]


def test_between_sweeps_the_list_by_heat_is_true_and_pages_are_read_from_it(served):
    place, lists, _ = served
    roots = [place.publish(user(number), f"根 {number}") for number in range(2, 6)]
    place.work()
    place.vote(user(9), roots[1], 1)
    place.work()
    score_section(place.engine, lists.heat, place.section_id, Policy(), place.clock.now())
    site = Site("here", place.engine, lists)

    def by_heat() -> list[int]:
        first = read_roots(site, Target(1, 7), Order.HEAT, None, 2)
        rest = read_roots(site, Target(1, 7), Order.HEAT, place_of(first["next"]), 9)
        return [int(item["id"]) for item in [*first["items"], *rest["items"]]]

    def breaches() -> list[CommentBreach]:
        place.clock.advance(minutes=5)
        with reading(place.engine) as connection:
            hidden = guards.hidden_in_lists(connection, lists.heat, lists, place.clock)
            return [*hidden, *guards.differing_lists(connection, lists.heat)]

    assert by_heat()[0] == roots[1]
    roots.append(place.publish(user(8), "新"))
    place.set_status(OPERATOR, roots[0], CommentStatus.DELETED)
    place.vote(user(7), roots[2], 1)
    place.work()
    assert lists.heat.ids(place.section_id).tolist() == place.roots(Order.HEAT) == by_heat()
    assert {*by_heat()} == {*roots[1:]}
    assert breaches() == []
    place.undo(OPERATOR, roots[0])
    place.work()
    assert lists.heat.ids(place.section_id).tolist() == place.roots(Order.HEAT) == by_heat()
    assert {*by_heat()} == {*roots}
    assert breaches() == []
    before = by_heat()
    with place.engine.begin() as connection:
        connection.execute(update(score).where(score.c.comment_id == before[0]).values(heat=-(10**9)))
    assert by_heat() == before, "the list is read"
    lists.heat.drop(place.section_id)
    assert by_heat() == [*before[1:], before[0]], "where there is none, the tables are"


def test_a_list_that_redis_evicted_does_not_seem_to_end(served):
    place, lists, _ = served
    roots = [place.publish(user(number), f"根 {number}") for number in range(2, 6)]
    place.work()
    score_section(place.engine, lists.heat, place.section_id, Policy(), place.clock.now())
    site = Site("here", place.engine, lists)
    first = read_roots(site, Target(1, 7), Order.HEAT, None, 2)
    [segment] = [key for key in lists._client.scan_iter() if re.search(r":heat:\w+:0$", key)]
    lists._client.delete(segment)
    rest = read_roots(site, Target(1, 7), Order.HEAT, place_of(first["next"]), 9)
    assert {int(item["id"]) for item in [*first["items"], *rest["items"]]} == {*roots}


def test_lists_that_missed_something_while_redis_was_away_are_dropped(served):
    place, lists, follower = served
    root = place.publish(user(2), "根")
    place.work()
    newest = ListName(place.section_id, Order.NEW)
    assert follower.rebuild(newest)
    score_section(place.engine, lists.heat, place.section_id, Policy(), place.clock.now())

    def fail() -> None:
        raise redis.ConnectionError("cut")

    assert lists.attempt(fail) is None
    place.set_status(OPERATOR, root, CommentStatus.DELETED)
    assert place.worker.turn() == 1
    assert follower.work() == 0
    place.clock.advance(seconds=2)
    assert held(lists, newest) == lists.heat.ids(place.section_id).tolist() == [root], "nobody could tell them"
    follower.work()
    assert held(lists, newest) is None
    assert lists.heat.ids(place.section_id) is None
    assert not follower._missed


def test_pages_of_a_list_follow_each_other_and_say_where_it_ends(served):
    place, lists, follower = served
    for number in range(2, 6):
        place.publish(user(number), f"根 {number}")
    place.work()
    name = ListName(place.section_id, Order.NEW)
    assert follower.rebuild(name)
    first = lists.page(name, None, 3)
    assert first is not None
    rest = lists.page(name, first.places[-1], 3)
    assert rest is not None
    assert (len(first.places), first.ended, len(rest.places), rest.ended) == (3, False, 1, True)
    assert lists.page(name, Place(99, 1), 3) is None, "what is not in the list is looked up in the database"


def test_what_is_told_late_drops_lists_instead_of_changing_them(served):
    place, lists, follower = served
    root = place.publish(user(2), "根")
    place.work()
    name = ListName(place.section_id, Order.NEW)
    assert follower.rebuild(name)
    lists.follow(place.section_id, 9, [])
    lists.follow(place.section_id, 8, [ListChange(name, root, None)])
    assert held(lists, name) is None
    assert not lists.publish(name, 8, [Place(1, root)], ended=True), "it was read before what was told since"


def test_many_ask_and_a_list_is_rebuilt_once(served):
    place, lists, follower = served
    place.publish(user(2), "根")
    place.work()
    name = ListName(place.section_id, Order.NEW)
    assert [lists.ask_rebuild(name) for _ in range(100)].count(True) == 1
    assert follower.work() == 1
    assert held(lists, name) == place.roots()


def test_without_redis_everything_says_so_and_nothing_fails(sqlite_url):
    clock = FakeClock()
    gone = open_lists("redis://127.0.0.1:1/0", clock)
    name = ListName(1, Order.NEW)
    assert gone.page(name, None, 3) is None
    assert gone.away
    assert not gone.ask_rebuild(name)
    assert gone.contents([1]) == {}
    gone.keep_contents({1: "文"})
    assert gone.publish(name, 1, [Place(1, 1)], ended=True) is None
    clock.advance(seconds=2)
    assert not gone.away
    with stage(sqlite_url) as place:
        place.worker._followers = (ListFollower(place.engine, gone),)
        number = place.publish(user(2), "根")
        place.work()
        assert place.roots() == [number]


def test_texts_are_kept_until_a_comment_is_hidden(served):
    place, lists, _ = served
    root = place.publish(user(2), "根")
    place.work()
    lists.keep_contents({root: "根"})
    assert lists.contents([root, 5]) == {root: "根"}
    place.set_status(OPERATOR, root, CommentStatus.DELETED)
    place.work()
    assert lists.contents([root]) == {}


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
        flights: Flights[int] = Flights()
        return await asyncio.gather(*(flights.run("page", fetch) for _ in range(10_000)))

    assert set(asyncio.run(main())) == {7}
    assert len(calls) == 1


def test_a_call_that_fails_fails_for_all_and_is_made_again():
    async def fail() -> Any:
        raise ValueError("gone")

    async def main() -> list[Any]:
        flights: Flights[Any] = Flights()
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
def prefix(client: redis.Redis) -> Iterator[str]:
    prefix = f"test:{uuid.uuid4().hex}:"
    yield prefix
    for key in client.scan_iter(f"{prefix}*"):
        client.delete(key)


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


def test_processes_that_want_a_page_at_once_have_it_read_by_one_of_them(client, prefix):
    got, fetched = while_another_fetches(client, prefix, lambda: "page")
    assert fetched == ["first"]
    assert sorted((each.result, each.own) for each in got) == [("page", False), ("page", True)]
    again = joint(client, prefix).run("page", lambda: "new", lambda: 0)
    assert (again.result, again.own) == ("new", True), "who comes later has it read anew"


def test_what_one_process_fails_to_read_is_read_by_the_one_that_waited(client, prefix):
    def fail() -> str:
        raise ValueError("gone")

    got, fetched = while_another_fetches(client, prefix, fail)
    assert fetched == ["first", "second"]
    assert [each.result for each in got if not isinstance(each, ValueError)] == ["own"]


def test_a_hot_page_is_good_for_other_processes_as_long_as_its_copies_are(client, prefix):
    joint(client, prefix).run("page", lambda: "page", lambda: 60_000)
    found = joint(client, prefix).run("page", lambda: "new", lambda: 60_000)
    assert (found.result, found.own) == ("page", False)
    assert 0 < found.good_ms <= 60_000


def test_without_redis_each_process_reads_for_itself():
    gone = redis.Redis(port=1)
    found = JointFlights(gone, "test:", lambda _: None).run("page", lambda: "own", lambda: 0)
    assert (found.result, found.own) == ("own", True)


def test_time_in_which_the_process_takes_connections_does_not_make_an_answer_late():
    async def main() -> str:
        loop = asyncio.get_running_loop()
        clock, ahead = loop.time, [0.0]
        loop.time = lambda: clock() + ahead[0]  # type: ignore[method-assign]
        dependencies = Dependencies({"page": Dependency("page", True, 3.0, 10)})
        answer = loop.create_future()
        call = asyncio.ensure_future(dependencies.call("page", lambda: answer))
        for _ in range(3):
            await asyncio.sleep(0)
        ahead[0] = 20.0
        for _ in range(3):
            await asyncio.sleep(0)
        answer.set_result("page")
        return str(await call)

    assert asyncio.run(main()) == "page"


def test_calls_that_fail_at_the_same_time_all_count():
    async def main() -> list[str]:
        dependencies = Dependencies({"friends": Dependency("friends", False, 3.0, 10)})
        called: list[str] = []

        async def fails() -> None:
            called.append("friends")
            await asyncio.sleep(0)
            raise OSError

        degraded: list[str] = []
        await asyncio.gather(*(dependencies.try_call("friends", fails, degraded) for _ in range(5)))
        await dependencies.try_call("friends", fails, degraded)
        return called

    assert asyncio.run(main()) == ["friends"] * 5


def test_what_is_not_answered_in_time_is_given_up():
    async def main() -> None:
        dependencies = Dependencies({"page": Dependency("page", True, 0.01, 10)})
        await dependencies.call("page", lambda: asyncio.get_running_loop().create_future())

    with pytest.raises(UnavailableError):
        asyncio.run(main())
