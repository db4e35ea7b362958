"""Lists in Redis never lie, are rebuilt once for all who ask, and keep no text that was hidden."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator

import pytest
import redis
from sqlalchemy import update

from douban_pipeline.comments import guards
from douban_pipeline.comments.cache.list_updates import ListFollower
from douban_pipeline.comments.cache.lists import CachedPage, ListChange, ListName, RedisLists, open_lists
from douban_pipeline.comments.guards import CommentBreach
from douban_pipeline.comments.heat.ranking import Policy
from douban_pipeline.comments.pages import Target, place_of, read_roots
from douban_pipeline.comments.scoring.sections import score_section
from douban_pipeline.comments.scoring.touched import TouchedHeat
from douban_pipeline.comments.sites import Site
from douban_pipeline.comments.store.comment_lists import CommentPlace, Order
from douban_pipeline.comments.store.tables import score
from douban_pipeline.comments.types import CommentStatus
from douban_pipeline.core.database import reading
from douban_pipeline_tests.comments.stage import OPERATOR, Stage, stage, user
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock


@pytest.fixture
def served(redis_client: redis.Redis, sqlite_url: str) -> Iterator[tuple[Stage, RedisLists, ListFollower]]:
    with stage(sqlite_url) as place:
        prefix = f"test:{uuid.uuid4().hex}:"
        lists = RedisLists(redis_client, place.clock, prefix=prefix, most=5, seconds=60)
        follower = ListFollower(place.engine, lists)
        place.worker._followers = (follower,)
        place.worker._heat = TouchedHeat(place.engine, {})
        yield place, lists, follower
        assert place.differences() == []
        for key in redis_client.scan_iter(f"{prefix}*"):
            redis_client.delete(key)


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
    for number in range(20, 24):
        place.vote(user(number), roots[3], 1)
    place.work()
    assert by_heat()[0] == roots[3], "votes move it at once"
    assert lists.heat.ids(place.section_id).tolist() == place.roots(Order.HEAT) == by_heat()
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
    [segment] = [key for key in lists._client.scan_iter(f"{lists._prefix}*") if re.search(r":heat:\w+:0$", key)]
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
    assert lists.page(name, CommentPlace(first.places[1].key, 1), 3) == CachedPage(first.places[2:] + rest.places, True)


def test_what_is_told_late_drops_lists_instead_of_changing_them(served):
    place, lists, follower = served
    root = place.publish(user(2), "根")
    place.work()
    name = ListName(place.section_id, Order.NEW)
    assert follower.rebuild(name)
    lists.follow(place.section_id, 9, [])
    lists.follow(place.section_id, 8, [ListChange(name, root, None)])
    assert held(lists, name) is None
    assert not lists.publish(name, 8, [CommentPlace(1, root)], ended=True), "it was read before what was told since"


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
    assert gone.publish(name, 1, [CommentPlace(1, 1)], ended=True) is None
    clock.advance(seconds=2)
    assert not gone.away
    with stage(sqlite_url) as place:
        place.worker._followers = (ListFollower(place.engine, gone),)
        number = place.publish(user(2), "根")
        place.work()
        assert place.roots() == [number]
