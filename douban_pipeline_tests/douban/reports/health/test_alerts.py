"""A cause is reported once for as long as it lasts; what could not be sent is sent later."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.reports.health.alerts import (
    QUIET,
    Sending,
    end_alert,
    end_quiet_runs,
    open_alerts,
    raise_alert,
    send_waiting,
    settle,
    without_secrets,
)
from douban_pipeline.douban.reports.health.causes import Cause, FailedRun, run_cause
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import GivenSettings, Library
from douban_pipeline_tests.harness.fixtures.robot import Robot

WALL = Cause("breaker:douban", "breaker", "数据源已熔断：豆瓣", "出现验证码")
SLOW = Cause("breaker:searxng", "breaker", "数据源已熔断：SearXNG 搜索", "没有回答")
GUARD = Cause("guard:a:b", "guard", "守卫未通过：a / b", "3 处不符合")


def listening(shared_library: Library, robot: Robot, **options: Any) -> Library:
    return shared_library.renewed(**{"alert_webhook_url": robot.url, "alert_webhook_kind": "generic", **options})


def stored(library: Library) -> list[dict[str, Any]]:
    return library.query(sa.select(library.tables.alert).order_by(library.tables.alert.c.alert_id))


def titles(robot: Robot) -> list[str]:
    return [posted.json["title"] for posted in robot.posted]


def test_fifty_runs_with_one_cause_are_one_message(shared_library: Library, robot: Robot) -> None:
    library = listening(shared_library, robot)
    for number in range(50):
        raise_alert(library.services, replace(GUARD, detail=f"{number} 处不符合"))
        send_waiting(library.services, most=5)
        library.clock.advance(minutes=1)
    assert titles(robot) == ["守卫未通过：a / b"]
    [alert] = open_alerts(library.services)
    assert (alert.times, alert.first_at, alert.last_at) == (50, START, START + timedelta(minutes=49))
    assert alert.detail == "49 处不符合"
    assert alert.sent_at == START


def test_a_cause_that_was_gone_and_came_back_is_news(shared_library: Library, robot: Robot) -> None:
    library = listening(shared_library, robot)
    for _ in range(2):
        raise_alert(library.services, GUARD)
        send_waiting(library.services, most=5)
        end_alert(library.services, GUARD.name)
        library.clock.advance(minutes=1)
    assert len(robot.posted) == 2
    assert open_alerts(library.services) == []
    assert [row["ended_at"] for row in stored(library)] == [START, START + timedelta(minutes=1)]


def test_ending_what_was_never_met_is_nothing(shared_library: Library) -> None:
    library = shared_library.renewed()
    end_alert(library.services, "nothing")
    assert stored(library) == []


def test_the_message_says_what_since_when_and_how_often(shared_library: Library, robot: Robot) -> None:
    library = listening(shared_library, robot, alert_webhook_secret="SEC-of-the-robot")
    raise_alert(library.services, GUARD)
    library.clock.advance(minutes=2)
    raise_alert(library.services, GUARD)
    send_waiting(library.services, most=1)
    [posted] = robot.posted
    assert posted.json == {
        "title": "守卫未通过：a / b",
        "text": "3 处不符合\n开始于 2026-03-01 12:00，已出现 2 次",
        "kind": "guard",
        "cause": "guard:a:b",
        "at": START.isoformat(),
    }
    assert "x-signature-256" in posted.headers


def test_without_a_webhook_alerts_only_stand(shared_library: Library) -> None:
    library = shared_library.renewed()
    raise_alert(library.services, GUARD)
    assert send_waiting(library.services, most=5) == Sending()
    [alert] = open_alerts(library.services)
    assert (alert.sent_at, alert.send_error) == (None, "")


def test_what_was_refused_is_sent_later(shared_library: Library, robot: Robot) -> None:
    library = listening(shared_library, robot)
    robot.status = 500
    raise_alert(library.services, GUARD)
    assert send_waiting(library.services, most=5) == Sending(failed=1)
    [alert] = open_alerts(library.services)
    assert (alert.sent_at, alert.send_error) == (None, "HTTP 500")
    robot.status = 200
    library.clock.advance(minutes=5)
    assert send_waiting(library.services, most=5) == Sending(sent=1)
    assert send_waiting(library.services, most=5) == Sending()
    [alert] = open_alerts(library.services)
    assert (alert.sent_at, alert.send_error) == (START + timedelta(minutes=5), "")


def test_one_that_is_always_refused_does_not_stand_in_the_way(shared_library: Library, robot: Robot) -> None:
    library = listening(shared_library, robot)
    robot.status = 400
    raise_alert(library.services, WALL)
    send_waiting(library.services, most=1)
    raise_alert(library.services, SLOW)
    send_waiting(library.services, most=1)
    assert titles(robot) == [WALL.title, SLOW.title]


def test_a_call_tries_only_so_many(shared_library: Library, robot: Robot) -> None:
    library = listening(shared_library, robot)
    for cause in (WALL, SLOW, GUARD):
        raise_alert(library.services, cause)
    assert send_waiting(library.services, most=2) == Sending(sent=2)
    assert send_waiting(library.services, most=2) == Sending(sent=1)


def test_a_webhook_that_cannot_be_reached_is_tried_once_a_call(shared_library: Library) -> None:
    library = shared_library.renewed(alert_webhook_url="http://127.0.0.1:1/robot?key=0123456789")
    for cause in (WALL, SLOW, GUARD):
        raise_alert(library.services, cause)
    assert send_waiting(library.services, most=5) == Sending(failed=1)
    errors = [alert.send_error for alert in open_alerts(library.services)]
    assert errors[1:] == ["", ""]
    assert "连接不上" in errors[0]
    assert "0123456789" not in errors[0]


def test_what_ended_before_it_was_sent_is_not_sent(shared_library: Library, robot: Robot) -> None:
    library = listening(shared_library, robot)
    raise_alert(library.services, WALL)
    end_alert(library.services, WALL.name)
    assert send_waiting(library.services, most=5) == Sending()


def test_measured_causes_open_last_and_end_with_what_is_measured(shared_library: Library) -> None:
    library = shared_library.renewed()
    raise_alert(library.services, GUARD)
    settle(library.services, {"breaker"}, [WALL, SLOW])
    library.clock.advance(minutes=5)
    settle(library.services, {"breaker"}, [replace(WALL, detail="仍是验证码")])
    found = {alert.cause: alert for alert in open_alerts(library.services)}
    assert set(found) == {WALL.name, GUARD.name}, "other kinds are left alone"
    wall = found[WALL.name]
    assert (wall.times, wall.last_at, wall.detail) == (1, START + timedelta(minutes=5), "仍是验证码")
    settle(library.services, {"breaker"}, [])
    assert [alert.cause for alert in open_alerts(library.services)] == [GUARD.name]


def test_a_failed_run_is_forgotten_when_it_has_not_come_back(shared_library: Library) -> None:
    library = shared_library.renewed()
    nightly = run_cause(FailedRun("nightly_reports"), "review_queue", "ValueError: no")
    raise_alert(library.services, GUARD)
    for _ in range(3):
        raise_alert(library.services, nightly)
        library.clock.advance(days=1)
        end_quiet_runs(library.services)
    assert {alert.cause: alert.times for alert in open_alerts(library.services)} == {GUARD.name: 1, nightly.name: 3}
    library.clock.advance(seconds=(QUIET - timedelta(days=1)).total_seconds() + 1)
    end_quiet_runs(library.services)
    assert [alert.cause for alert in open_alerts(library.services)] == [GUARD.name]


def test_no_secret_is_stored_or_shown(shared_library: Library, robot: Robot) -> None:
    secrets = {"openrouter_api_key": "sk-or-v1-secret", "bocha_api_key": "sk-bocha-secret"}
    library = listening(shared_library, robot, alert_webhook_secret="SEC-secret", **secrets)
    words = " ".join([*secrets.values(), "SEC-secret", robot.url, library.url])
    cause = Cause(f"run:job:{words}"[:190], "run", words, f"{words}\nhttps://api.example.org/v1?key=another-secret")
    raise_alert(library.services, cause)
    settle(library.services, {"run"}, [cause])
    send_waiting(library.services, most=5)
    [row] = stored(library)
    written = "".join(map(str, row.values())) + robot.posted[0].body.decode()
    assert "secret" not in written
    assert "0123456789" not in written
    assert library.url not in written
    assert "https://api.example.org/v1" in written
    assert row["times"] == 1, "it is the same cause with its secrets taken out"


@pytest.mark.parametrize("value", ["", "ab", "12345"])
def test_a_secret_that_is_hardly_one_takes_no_words_away(value: str) -> None:
    settings = GivenSettings(alert_webhook_secret=value)
    assert without_secrets(settings, f"ab 12345 {value}") == f"ab 12345 {value}"


def test_a_password_is_taken_out_wherever_it_is():
    settings = GivenSettings(database_url="mysql+pymysql://cms:s3cret-pass@db.example.org/cms")
    assert without_secrets(settings, "Access denied (using s3cret-pass)") == "Access denied (using …)"
