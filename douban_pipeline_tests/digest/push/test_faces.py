"""Pushing in Dagster: the sensor launches it as soon as something is due, and people resend from a launchpad."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from douban_pipeline.digest.push.jobs import push_notifications, resend_notifications
from douban_pipeline.digest.sensors import push_sensor
from douban_pipeline_tests.digest.push.office import TEN_PM, Office, office
from douban_pipeline_tests.stand_ins.push_server import PushServer


@pytest.fixture
def platforms() -> Iterator[PushServer]:
    with PushServer(now=TEN_PM.timestamp) as server:
        yield server


@pytest.fixture
def place(platforms: PushServer, tmp_path: Path) -> Iterator[Office]:
    with office(tmp_path, platforms.channel("wecom"), quiet_hours="21:00-07:00") as found:
        yield found


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as found:
        yield found


def tick(place: Office, instance: dg.DagsterInstance) -> Any:
    context = dg.build_sensor_context(instance=instance, resources={"services": place.services})
    return push_sensor(context)


def run(place: Office, job: dg.JobDefinition, config: dict[str, Any] | None = None) -> dg.ExecuteInProcessResult:
    return job.execute_in_process(resources={"services": place.services}, run_config=config or {}, raise_on_error=False)


def metadata_of(result: dg.ExecuteInProcessResult, op: str) -> dict[str, Any]:
    [event] = [event for event in result.all_events if event.is_successful_output and event.step_key == op]
    return {name: value.value for name, value in event.step_output_data.metadata.items()}


def test_the_sensor_launches_a_run_when_something_is_due(place: Office, instance: dg.DagsterInstance) -> None:
    assert "没有要发送的消息" in tick(place, instance).skip_message
    place.enqueue("finding", slot="22:00")
    assert "没有要发送的消息" in tick(place, instance).skip_message, "it waits for the end of the quiet hours"
    place.enqueue("report")
    request = tick(place, instance)
    assert request.tags["digest/due"] == "1"
    # Dagster launches nothing for a key that it knows: after the clock was set back, keys of the time would recur.
    assert request.run_key is None


def test_the_job_sends_and_says_what(platforms: PushServer, place: Office) -> None:
    place.enqueue("report")
    dry = run(place, push_notifications, {"ops": {"push": {"config": {"dry_run": True}}}})
    assert dry.success
    assert not platforms.taken
    done = run(place, push_notifications, {"ops": {"push": {"config": {"dry_run": False}}}})
    shown = metadata_of(done, "push")
    assert shown["sent"] == 1
    assert "已送达" in shown["messages"]
    assert "key=" not in shown["messages"]
    assert len(platforms.taken) == 1


def test_a_person_resends_what_nobody_knows_of(platforms: PushServer, place: Office) -> None:
    place.enqueue("report")
    place.push()
    config: dict[str, Any] = {"report_date": "2026-11-20", "slot": "22:00"}

    def resend(**more: Any) -> dict[str, Any]:
        done = run(place, resend_notifications, {"ops": {"resend": {"config": {**config, **more}}}})
        assert done.success
        return metadata_of(done, "resend")

    assert (resend()["messages"], resend()["left_out"]) == (0, 1)
    assert resend(include_sent=True)["messages"] == 1
    assert place.states() == {"wecom": "sent"}
    assert resend(include_sent=True, dry_run=False)["messages"] == 1
    assert place.states() == {"wecom": "pending"}
    place.push()
    assert len(platforms.taken) == 2


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "请写明消息的 id"),
        ({"report_date": "20 号"}, "不是日期"),
        ({"ids": [7]}, "没有这样的消息：7"),
        ({"report_date": "2026-11-20", "push_type": "x"}, "没有类型 x"),
    ],
)
def test_a_resend_that_makes_no_sense_is_refused_in_chinese(place: Office, config: dict[str, Any], said: str) -> None:
    done = run(place, resend_notifications, {"ops": {"resend": {"config": config}}})
    assert not done.success
    [failure] = [event for event in done.all_events if event.is_step_failure]
    assert said in str(failure.step_failure_data.user_failure_data.description)
