"""People are told of each cause once for as long as it lasts, at a real robot on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import update

from douban_pipeline.demo.stand_ins.feed_server import SourceStandIn
from douban_pipeline.feeds.alerts import FEWEST, FeedAlerts, report_causes
from douban_pipeline.feeds.store.tables import source, stats
from douban_pipeline_tests.feeds.stage import DAY, HOUR, START, Stage, hourly, stage
from douban_pipeline_tests.harness.fixtures.robot import Robot


@pytest.fixture
def robot() -> Iterator[Robot]:
    with Robot() as opened:
        yield opened


@pytest.fixture
def at(tmp_path: Path, robot: Robot) -> Iterator[Stage]:
    channels = {f"c{number}": SourceStandIn("rss", hourly(2)) for number in range(FEWEST)}
    channels["login"] = SourceStandIn("rss", hourly(2), fault="unauthorised")
    with stage(tmp_path, channels, alert_webhook_url=SecretStr(robot.url)) as opened:
        yield opened


def plant(at: Stage, *ids: str, **values: object) -> None:
    with at.services.engine.begin() as connection:
        connection.execute(update(stats).where(stats.c.source_id.in_(ids)).values(**values))


def titles(robot: Robot) -> list[str]:
    return [posted.json["title"] for posted in robot.posted]


def told(at: Stage) -> list[str]:
    found: FeedAlerts = report_causes(at.services)
    assert not found.problem
    return [cause.name for cause in found.reported]


def test_a_login_that_is_wanted_is_told_after_three_failures_and_anew_when_it_returns(at: Stage, robot: Robot) -> None:
    [login] = at.follow("login")
    for _ in range(2):
        at.make_due()
        at.poll()
    assert told(at) == []
    at.make_due()
    at.poll()
    assert told(at) == [f"login {login}"]
    assert told(at) == []
    at.server.channels["login"] = SourceStandIn("rss", hourly(2))
    at.make_due()
    at.poll()
    assert told(at) == []
    plant(at, login, error_kind="HTTP 401 unauthorised", fail_count=5)
    assert told(at) == [f"login {login}"]
    assert titles(robot) == ["1 个来源需要登录"] * 2
    assert "login" in robot.posted[0].json["text"]


def test_sources_that_nobody_asks_are_told(at: Stage, robot: Robot) -> None:
    [one] = at.follow("c1")
    at.poll()
    plant(at, one, next_due_at=START - 3 * HOUR)
    assert told(at) == ["starved"]
    assert titles(robot) == ["有来源没有按时抓取"]
    plant(at, one, next_due_at=START + HOUR)
    assert told(at) == []
    plant(at, one, next_due_at=START - 3 * HOUR)
    assert told(at) == ["starved"]


def test_a_host_that_refuses_most_of_its_sources_is_told(at: Stage, robot: Robot) -> None:
    ids = at.follow("c1", "c2", "c3")
    at.poll()
    refused = {"error_kind": "HTTP 429 too many requests", "fail_count": 1, "backoff_until": START + 6 * HOUR}
    plant(at, ids[0], **refused)
    assert told(at) == [], "one of three may have reasons of its own"
    plant(at, ids[1], **refused)
    assert told(at) == [f"banned {at.source(ids[0])['host']}"]
    assert "3 个来源中的 2 个" in robot.posted[0].json["text"]
    at.clock.at += DAY
    plant(at, *ids, next_due_at=START + 2 * DAY)
    assert told(at) == [], "its time is over"


def test_one_refusal_of_a_host_with_one_source_is_no_ban(at: Stage, robot: Robot) -> None:
    [one] = at.follow("c1")
    at.poll()
    plant(at, one, error_kind="HTTP 429 too many requests", fail_count=1, backoff_until=START + 6 * HOUR)
    assert told(at) == []
    plant(at, one, fail_count=3)
    assert told(at) == [f"banned {at.source(one)['host']}"]
    assert "唯一的来源" in robot.posted[0].json["text"]


def test_most_sources_without_an_answer_are_one_alert_of_our_own_network(at: Stage, robot: Robot) -> None:
    ids = at.follow(*(f"c{number}" for number in range(FEWEST)))
    at.poll()
    plant(at, *ids[: FEWEST // 2], error_kind="no connection", fail_count=2)
    assert told(at) == [], "all are of one host, which may be ill itself"
    with at.services.engine.begin() as connection:
        connection.execute(update(source).where(source.c.source_id == ids[0]).values(host="elsewhere"))
    assert told(at) == ["offline"]
    assert titles(robot) == ["多数来源没有应答"]


def test_what_cannot_be_sent_is_sent_at_the_next_call(at: Stage, robot: Robot) -> None:
    [one] = at.follow("c1")
    at.poll()
    plant(at, one, next_due_at=START - 3 * HOUR)
    robot.status = 500
    failed = report_causes(at.services)
    assert failed.problem
    assert failed.reported == []
    robot.status = 200
    assert told(at) == ["starved"]
    assert told(at) == []
