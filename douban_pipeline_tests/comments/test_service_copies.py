"""The comment service over HTTP answers from copies: of hot sections in memory, of read sites, of lists in Redis."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable
from contextlib import closing

import pytest
import sqlalchemy as sa

from douban_pipeline.comments.api.context import Context
from douban_pipeline.comments.cache.flights import HotKeys
from douban_pipeline.comments.cache.lists import open_lists
from douban_pipeline.comments.sites import LATE
from douban_pipeline_tests.comments.serving import ADMIN, served
from douban_pipeline_tests.conftest import server_url


def test_a_hot_section_is_served_from_a_copy_with_personal_things_laid_over(tmp_path):
    with served(tmp_path) as place:
        place.context.hot, place.context.local_ms = HotKeys(2), 10_000
        film = place.section()
        root = place.publish(2, film, "根")
        place.work()
        for _ in range(4):
            place.page(film)
        statements: list[str] = []
        sa.event.listen(place.services.engine, "before_cursor_execute", lambda *given: statements.append(str(given[2])))
        assert place.listed(film) == [root]
        assert statements == []
        place.call("PUT", f"/comments/{root}/vote", 3, json={"value": 1})
        place.work()
        page = place.page(film, user=3)
        assert page["votes"] == {root: 1}


def test_two_read_sites_stand_in_for_each_other_and_say_when_both_are_late(tmp_path):
    main, copy = tmp_path / "main.sqlite", tmp_path / "copy.sqlite"
    values = {
        "database_url": f"sqlite:///{main}",
        "read_sites": f"near=sqlite:///{copy} far=sqlite:///{main}",
    }
    with served(tmp_path, **values) as place:
        film = place.section()
        first = place.publish(2, film, "根")
        place.work()
        with closing(sqlite3.connect(main)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        assert place.listed(film) == [first]
        second = place.publish(3, film, "新")
        place.work()
        assert place.listed(film) == [first], "the nearer copy is read first, and not yet late"
        place.clock.advance(seconds=10)
        place.worker.turn()
        place.clock.advance(seconds=2)
        page = place.page(film, sort="new")
        assert ([item["id"] for item in page["items"]], page["notice"]) == ([second, first], None)
        place.clock.advance(seconds=60)
        page = place.page(film, sort="new")
        assert ([item["id"] for item in page["items"]], page["notice"]) == ([second, first], LATE)
        _stop(place.context)
        place.worker.turn()
        place.clock.advance(seconds=2)
        assert place.listed(film, sort="new") == [second, first]
        states = {state["name"]: state["down"] for state in place.call("GET", "/admin/state", ADMIN).json()["sites"]}
        assert states == {"near": True, "far": False}


def test_without_a_database_nothing_is_accepted_and_the_answer_says_to_come_again(tmp_path):
    with served(tmp_path) as place:
        film = place.section()
        first = place.publish(2, film, "根")
        place.work()
        unreachable = _stop(place.context)
        answers = [
            place.call("GET", f"/sections/1/{film}/page"),
            place.call("POST", f"/sections/1/{film}/comments", 3, json={"content": "丢了吗"}),
            place.call("PUT", f"/comments/{first}/vote", 3, json={"value": 1}),
        ]
        assert [(each.status_code, each.headers.get("Retry-After")) for each in answers] == [(503, "2")] * 3
        assert {each.headers["content-type"] for each in answers} == {"application/problem+json"}
        sa.event.remove(place.context.sites._sites[0].engine, "before_cursor_execute", unreachable)
        place.clock.advance(seconds=600)
        assert place.listed(film) == [first]
        place.work()
        assert place.page(film)["items"][0]["likes"] == 0


def test_while_logins_cannot_be_read_who_has_one_comes_again_and_others_read_on(tmp_path):
    with served(tmp_path, cms_login=True) as place:  # whose database has no table of the CMS's users
        film = place.section()
        first = place.publish(2, film, "根")
        place.work()
        login = {"Cookie": f"user_id=7; user_name=qi; user_check={'a' * 32}"}
        refused = place.call("GET", f"/sections/1/{film}/page", headers=login)
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "2")
        assert place.listed(film) == [first]


def _stop(context: Context) -> Callable[..., None]:
    """Have the first site's database fail, as one that is stopped does; return what makes it."""
    site = context.sites._sites[0]
    site.engine.dispose()

    def gone(*_: object) -> None:
        raise sa.exc.OperationalError("connect", {}, Exception("Connection refused"))

    sa.event.listen(site.engine, "before_cursor_execute", gone)
    return gone


@pytest.mark.redis
def test_with_redis_lists_serve_and_without_it_the_database_does(tmp_path):
    url, prefix = server_url("redis"), f"test:{uuid.uuid4().hex}:"
    with served(tmp_path, redis_url=url, redis_prefix=prefix[:32]) as place:
        film = place.section()
        roots = [place.publish(user, film, f"根 {user}") for user in range(2, 6)]
        place.work()
        assert place.listed(film, sort="new") == roots[::-1]
        (follower,) = place.worker._followers
        assert follower.work() == 1, "who found no list asked for one"
        assert place.listed(film, sort="new") == roots[::-1]
        place.call("DELETE", f"/comments/{roots[1]}", 3)
        place.work()
        assert place.listed(film, sort="new") == [roots[3], roots[2], roots[0]]
        lists = place.services.lists
        assert lists is not None
        lists._client = open_lists("redis://127.0.0.1:1", place.clock, seconds=1, most=1)._client
        page = place.page(film, sort="new")
        assert [item["id"] for item in page["items"]] == [roots[3], roots[2], roots[0]]
        assert page["degraded"] == ["redis"]


def test_a_list_that_lies_about_a_hidden_comment_is_not_believed(tmp_path):
    if not server_url("redis"):
        return
    prefix = f"test:{uuid.uuid4().hex}:"[:32]
    with served(tmp_path, redis_url=server_url("redis"), redis_prefix=prefix) as place:
        film = place.section()
        roots = [place.publish(user, film, f"根 {user}") for user in (2, 3)]
        place.work()
        place.listed(film, sort="new")
        (follower,) = place.worker._followers
        follower.work()
        place.worker._followers = ()
        place.call("DELETE", f"/comments/{roots[0]}", 2)
        place.work()
        assert place.listed(film, sort="new") == [roots[1]]
