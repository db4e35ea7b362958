"""Lists follow the binary log of a server of the test's own: whoever writes, lists get what the database says."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from redis import Redis
from sqlalchemy import text, update

from douban_pipeline.comments.cache.lists import ListName
from douban_pipeline.comments.services import CommentsServices, open_services
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.store.comment_lists import Order
from douban_pipeline.comments.store.tables import comment
from douban_pipeline.comments.types import Actor, EventKind, Rank
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline_tests.comments.stage import Stage, stage, user
from douban_pipeline_tests.conftest import on_mysql, server_url
from douban_pipeline_tests.harness.rig.mariadb_server import MariaDbServer
from douban_pipeline_tests.harness.rig.mysql_server import MySqlServer
from douban_pipeline_tests.harness.rig.processes import RigError

OPERATOR = Actor("ops:li", name="li", rank=Rank.OPERATOR)


pytestmark = pytest.mark.mariadb


@pytest.fixture(scope="module")
def logging_server(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a server on a port of its own that keeps a binary log of rows."""
    folder, kind = tmp_path_factory.mktemp("server"), MySqlServer if on_mysql(request.config) else MariaDbServer
    options = {"log-bin": str(folder / "log"), "binlog-format": "ROW", "server-id": "1"}
    small = {
        "innodb-buffer-pool-size": "16M",
        "loose-innodb-log-file-size": "16M",
        "innodb-flush-log-at-trx-commit": "0",
    }
    try:
        server = kind(folder, options={**options, **small})
    except RigError as error:
        pytest.skip(f"the binary log is not tested: {error}")
    try:
        yield server.start().url.render_as_string(hide_password=False)
    finally:
        server.stop()


@dataclass
class Place:
    """A section in that server, lists in Redis, and a worker that tells lists nothing."""

    stage: Stage
    services: CommentsServices

    def listed(self, order: Order = Order.NEW) -> list[int] | None:
        """Return the ids of a list as Redis has it; None where it has none."""
        assert self.services.lists is not None
        page = self.services.lists.page(ListName(self.stage.section_id, order), None, 100)
        return [place.comment_id for place in page.places] if page is not None else None

    def built(self, order: Order = Order.NEW) -> list[int] | None:
        assert self.services.lists is not None
        self.services._follower(self.services.lists).rebuild(ListName(self.stage.section_id, order))
        return self.listed(order)


@pytest.fixture
def place(logging_server: str, tmp_path: Path) -> Iterator[Place]:
    name, prefix = f"comments_{uuid.uuid4().hex[:8]}", f"test-{uuid.uuid4().hex[:8]}:"
    with open_engine(logging_server).connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name} CHARACTER SET utf8mb4"))
    settings = CommentsSettings(
        _env_file=None,
        home=tmp_path,
        database_url=f"{logging_server.rstrip('/')}/{name}",
        redis_url=server_url("redis"),
        redis_prefix=prefix,
        follow="binlog",
    )
    services = open_services(settings, "test")
    assert services.lists is not None
    with stage(settings.tables_url, followers=[services._follower(services.lists)]) as opened:
        yield Place(opened, services)
    services.close()
    client = Redis.from_url(server_url("redis"))
    for key in client.scan_iter(f"{prefix}*"):
        client.delete(key)
    client.close()


def test_lists_follow_what_is_written_by_whoever_writes_it(place):
    reader = place.services.binlog_reader()
    reader.turn()
    first, second = (place.stage.publish(user(number), f"第 {number}") for number in (2, 3))
    place.stage.work()
    assert place.built() == [second, first]
    reader.turn()
    third = place.stage.publish(user(4), "第三")
    place.stage.set_status(OPERATOR, first, 2)
    place.stage.work()
    assert place.listed() == [second, first], "the worker tells lists nothing"
    assert reader.turn() > 0
    assert place.listed() == [third, second]
    with place.stage.engine.begin() as connection:  # somebody writes past the worker
        connection.execute(update(comment).where(comment.c.comment_id == second).values(status=2))
    reader.turn()
    reader.turn()
    assert place.listed() == [third]


def test_another_reader_goes_on_where_the_first_one_was(place):
    reader = place.services.binlog_reader()
    reader.turn()
    first = place.stage.publish(user(2), "第一")
    place.stage.work()
    assert place.built() == [first]
    reader.turn()
    second = place.stage.publish(user(3), "第二")
    place.stage.work()
    other = type(reader)(place.stage.engine, place.services.lists, reader._follower, "another owner")
    assert other.turn() == 0, "the first one holds the lease"
    client = Redis.from_url(server_url("redis"))
    client.delete(f"{place.services.settings.redis_prefix}binlog-holder")  # it ended
    assert other.turn() > 0
    assert place.listed() == [second, first]


def test_where_the_log_no_longer_goes_back_all_lists_are_made_anew(place):
    reader = place.services.binlog_reader()
    reader.turn()
    first = place.stage.publish(user(2), "第一")
    place.stage.work()
    assert place.built() == [first]
    place.services.lists.keep("binlog", '["log.000099", 4]')
    assert reader.turn() == 0
    assert place.listed() is None, "what was missed is in no list"
    second = place.stage.publish(user(3), "第二")
    place.stage.work()
    assert place.built() == [second, first]
    third = place.stage.publish(user(4), "第三")
    place.stage.work()
    reader.turn()
    reader.turn()
    assert place.listed() == [third, second, first]


def test_a_vote_moves_a_comment_by_likes(place):
    reader = place.services.binlog_reader()
    reader.turn()
    first, second = (place.stage.publish(user(number), f"第 {number}") for number in (2, 3))
    place.stage.work()
    assert place.built(Order.LIKES) == [second, first]
    place.stage.send(user(9), EventKind.VOTE, first, value=1)
    place.stage.work()
    reader.turn()
    reader.turn()
    assert place.listed(Order.LIKES) == [first, second]


def test_a_database_without_such_a_log_is_refused(tmp_path):
    settings = CommentsSettings(_env_file=None, home=tmp_path, redis_url="redis://127.0.0.1:1/0", follow="binlog")
    services = open_services(settings, "test")
    with pytest.raises(ProblemsError, match="needs MariaDB or MySQL"):
        services.binlog_reader()
    services.close()


def test_a_log_that_is_not_of_rows_is_refused(place):
    with place.stage.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("SET GLOBAL binlog_format = MIXED"))
        try:
            with pytest.raises(ProblemsError, match="binlog_format=ROW, the server has log_bin=1 and MIXED"):
                place.services.binlog_reader()
        finally:
            connection.execute(text("SET GLOBAL binlog_format = ROW"))


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("8.4.3", "BINARY LOG"),
        ("9.1.0-commercial", "BINARY LOG"),
        ("8.2.0", "BINARY LOG"),
        ("8.0.40-0ubuntu0.22.04.1", "MASTER"),
        ("5.7.44-log", "MASTER"),
        ("10.11.6-MariaDB-0+deb12u1-log", "MASTER"),
        ("5.5.5-10.6.12-MariaDB", "MASTER"),
    ],
)
def test_the_end_of_the_log_is_asked_for_by_the_name_that_the_server_has_for_it(version, name):
    from douban_pipeline.comments.cache.binlog import status_name

    assert status_name(version) == name
