"""Whoever pages while others write sees every comment once: between any two commands of a page something may happen."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from douban_pipeline.comments.cache.list_updates import ListFollower
from douban_pipeline.comments.cache.lists import ListName, RedisLists
from douban_pipeline.comments.heat.ranking import Policy
from douban_pipeline.comments.pages import Target, place_of, read_roots
from douban_pipeline.comments.scoring import heat_lists
from douban_pipeline.comments.scoring.sections import score_section
from douban_pipeline.comments.sites import Site
from douban_pipeline.comments.store.comment_lists import Order
from douban_pipeline.comments.store.sections import ensure_section
from douban_pipeline.comments.types import CommentStatus
from douban_pipeline.core.database import open_engine
from douban_pipeline_tests.comments.stage import OPERATOR, Stage, stage, user
from douban_pipeline_tests.conftest import server_url

OBJECTS = count(1000)
ACTS = st.sampled_from(["publish", "publish", "nothing", "vote", "hide"])


class Interrupted:
    """The reader's connections, before each of whose commands others get a turn."""

    def __init__(self, url: str, *, connect: bool) -> None:
        self.turn: Callable[[], None] = lambda: None
        self.engine = open_engine(url)
        event.listen(self.engine, "before_cursor_execute", lambda *_: self.turn())
        reader = self

        class Connection(redis.Connection):
            def send_packed_command(self, command: Any, check_health: bool = True) -> None:
                reader.turn()
                super().send_packed_command(command, check_health)

        pool = redis.ConnectionPool.from_url(server_url("redis"), connection_class=Connection, decode_responses=True)
        self.client = redis.Redis(connection_pool=pool)
        if connect:
            self.client.ping()  # connecting takes several commands of its own

    def read(self, site: Site, target: Target, order: Order, size: int, others: Others) -> list[int]:
        """Return what is seen while others write."""
        self.turn = others.turn
        try:
            return read_all(site, target, order, size)
        finally:
            self.turn = lambda: None

    def close(self) -> None:
        self.engine.dispose()
        self.client.close()


class Others:
    """Visitors and an operator who write while somebody reads, and the worker that applies it at once."""

    def __init__(self, place: Stage, before: list[int], acts: list[str]) -> None:
        self.place, self.roots, self._acts = place, [*before], iter(acts)
        self.moved: set[int] = set()
        self.hidden: set[int] = set()

    def turn(self) -> None:
        act, place = next(self._acts, "nothing"), self.place
        shown = [root for root in self.roots if root not in self.hidden]
        if act == "publish":
            self.roots.append(place.publish(user(2), f"又 {len(self.roots)}"))
        elif act == "vote" and shown:
            self.moved.add(shown[len(shown) // 2])
            place.vote(user(50 + len(self.moved)), shown[len(shown) // 2], 1)
        elif act == "hide" and shown:
            self.hidden.add(shown[len(shown) // 3])
            place.set_status(OPERATOR, shown[len(shown) // 3], CommentStatus.DELETED)
        if act != "nothing":
            place.worker.turn()
            for follower in place.worker._followers:
                follower.work()


@contextmanager
def lists_of_others(place: Stage, client: redis.Redis, order: Order, most: int) -> Iterator[str]:
    """Give the worker lists of its own, with this section's list built; yield their prefix."""
    prefix = f"test:{uuid.uuid4().hex}:"
    lists = RedisLists(client, place.clock, prefix=prefix, most=most, seconds=60)
    follower = ListFollower(place.engine, lists)
    place.worker._followers = (follower,)
    if order == Order.HEAT:
        score_section(place.engine, lists.heat, place.section_id, Policy(), place.clock.now())
    else:
        follower.rebuild(ListName(place.section_id, order))
    yield prefix
    place.worker._followers = ()
    for key in client.scan_iter(f"{prefix}*"):
        client.delete(key)


def read_all(site: Site, target: Target, order: Order, size: int) -> list[int]:
    """Return what a reader sees who pages to the end."""
    found: list[int] = []
    cursor: str | None = ""
    for _ in range(100):
        page = read_roots(site, target, order, place_of(cursor), size)
        found += [int(item["id"]) for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            return found
    raise AssertionError("the pages do not end")


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("cached", [pytest.param(True, marks=pytest.mark.redis), False])
@pytest.mark.mariadb
def test_whoever_pages_while_others_write_sees_every_comment_once(order, cached, mariadb_url, request, monkeypatch):
    monkeypatch.setattr(heat_lists, "SEGMENT", 4)
    client = request.getfixturevalue("redis_client") if cached else None
    reader = Interrupted(mariadb_url, connect=cached)

    def read_beside(place: Stage, others: Others, target: Target, size: int, most: int) -> list[int]:
        if client is None:
            return reader.read(Site("here", reader.engine), target, order, size, others)
        with lists_of_others(place, client, order, most) as prefix:
            lists = RedisLists(reader.client, place.clock, prefix=prefix, most=most, seconds=60)
            return reader.read(Site("here", reader.engine, lists), target, order, size, others)

    with stage(mariadb_url) as place:
        # An example is small as it is drawn: to look for a smaller one would write to the database for minutes.
        @settings(suppress_health_check=list(HealthCheck), max_examples=8, phases=[Phase.explicit, Phase.generate])
        @example(likes=[0] * 5, size=1, most=50, acts=["publish"] * 16)
        @given(
            likes=st.lists(st.integers(0, 1), min_size=4, max_size=6),
            size=st.integers(1, 2),
            most=st.sampled_from([50, 3]),
            acts=st.lists(ACTS, min_size=8, max_size=16),
        )
        def sees_every_comment_once(likes: list[int], size: int, most: int, acts: list[str]) -> None:
            target = Target(1, next(OBJECTS))
            with place.engine.begin() as connection:
                place.section_id = ensure_section(connection, 1, target.object_id, place.clock.now())
            before = [place.publish(user(2), f"根 {number}") for number in range(len(likes))]
            for root, many in zip(before, likes, strict=True):
                for voter in range(many):
                    place.vote(user(10 + voter), root, 1)
            place.work()
            others = Others(place, before, acts)
            found = read_beside(place, others, target, size, most)
            # Who is liked while somebody reads moves to another place, which may be read already, or again.
            moved = others.moved if order in (Order.LIKES, Order.HEAT) else set()
            assert {number for number in found if found.count(number) > 1} <= moved, "seen twice"
            assert set(before) - moved - others.hidden <= set(found), "never seen"

        sees_every_comment_once()
    reader.close()
