"""Every fault of every source: nothing is concluded, nothing is lost, and once the source is well the work is done.

Twelve videos, all of which can be linked. One source misbehaves in one way for as long as it takes; then it is well.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from douban_pipeline.core.gate_rules import GateState
from douban_pipeline.douban.sources.known_titles import FAMOUS
from douban_pipeline.douban.store.states import TaskStatus
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline_tests.harness.fixtures.scenario import Scenario, row_of, subject
from douban_pipeline_tests.stand_ins.faults import FAULTS

NAMES = ("长河落日", "蓝鲸灯塔", "午夜电车", "麦田回声", "纸鸢旧城", "雪线村庄", "钟楼谜案", "渡口来信", "盐湖行者")
NAMES += ("竹海夜雨", "石桥往事", "候鸟南飞")
FILMS = [subject(90_001_000 + number, f"{name}记事", 2010 + number) for number, name in enumerate(NAMES)]
VIDEOS = [row_of(film, 4 + SHARDS * number) for number, film in enumerate(FILMS)]
"""All of one shard: a run over several asks the database as often for each."""
SUBJECTS = {row["vod_id"]: film["id"] for row, film in zip(VIDEOS, FILMS, strict=True)}

SOURCES = {"douban": "douban", "search": "searxng", "suggest": "douban_suggest", "bocha": "bocha"}
"""What the replay calls a source, and what the gate does."""

EMPTY_ANSWERS = {(endpoint, fault) for endpoint in SOURCES if endpoint != "douban" for fault in ("empty", "wrong_id")}
"""A search that finds nothing, or other subjects, has answered: no call fails. It is doubted all the same."""

MATRIX = [(endpoint, fault) for endpoint in SOURCES for fault in FAULTS if (endpoint, fault) not in EMPTY_ANSWERS]


Stage = Callable[..., Scenario]


KNOWN_TO_ALL = [subject(*famous) for famous in FAMOUS]
"""What a library without a single link asks a doubted search for."""


def set_stage(stage: Stage, endpoint: str) -> Scenario:
    scenario = stage(VIDEOS, [*FILMS, *KNOWN_TO_ALL])
    provider = SOURCES[endpoint] if endpoint != "douban" else "searxng"
    place = {"searxng": "search", "douban_suggest": "suggest", "bocha": "bocha"}[provider]
    return scenario.under(
        search_provider=provider,
        search_url=getattr(scenario.upstream, f"{place}_url"),
        bocha_api_key="sk-test",
        # One call after the other: on a clock that does not wait, a queue at the gate only keeps the database busy.
        videos_at_once=1,
    )


def gate(scenario: Scenario, endpoint: str) -> Any:
    [status] = [status for status in scenario.services.gate.status() if status.source == SOURCES[endpoint]]
    return status


def nothing_is_concluded_and_nothing_lost(scenario: Scenario) -> None:
    assert (scenario.verdicts(), scenario.library.log()) == ([], [])
    tasks = scenario.library.tasks()
    assert sorted(task["vod_id"] for task in tasks) == sorted(SUBJECTS), "one task a video, none lost or doubled"
    for task in tasks:
        assert (task["status"], task["lease_owner"]) == (TaskStatus.PENDING, None)
        assert task["run_after"] > scenario.clock.now()
        assert task["last_error"]
        state = scenario.library.state(task["vod_id"])
        assert state["douban_review_reason"] == ""
        assert state["douban_sync_fail_count"] == task["attempts"] == 0


@pytest.mark.usefixtures("told_timeouts")
@pytest.mark.parametrize(("endpoint", "fault"), MATRIX)
def test_a_failing_source_opens_its_breaker_and_a_healthy_one_finishes_the_work(
    stage: Stage, endpoint: str, fault: str
) -> None:
    scenario = set_stage(stage, endpoint)
    before = scenario.library.all_bytes()
    scenario.upstream.faults.add(endpoint, fault)
    began = scenario.clock.now()
    run = scenario.play()
    assert run.success, "an unhealthy source is no bug"
    nothing_is_concluded_and_nothing_lost(scenario)
    assert scenario.library.all_bytes() == before

    # Ten failures in a row, or one clear sign: from now on nobody asks, and no video is to blame.
    opened = gate(scenario, endpoint)
    assert (opened.state, bool(opened.reason)) == (GateState.OPEN, True)
    asked = scenario.upstream.requests.count(endpoint)
    assert asked <= 10
    wait = opened.open_until - began
    assert timedelta(0) < wait <= timedelta(hours=1, minutes=5) or "unpaid" in opened.reason or "money" in opened.reason
    scenario.clock.advance(seconds=1)
    assert scenario.play().success
    assert scenario.upstream.requests.count(endpoint) == asked
    nothing_is_concluded_and_nothing_lost(scenario)

    # Well again: a probe closes the breaker, and the rest follows. Failures of their own may make videos wait longer.
    scenario.upstream.faults.clear()
    scenario.clock.advance(seconds=max((opened.open_until - scenario.clock.now()).total_seconds(), 0.0))
    for _ in range(4):
        scenario.clock.advance(hours=1)
        assert scenario.play().success
        if all(task["status"] == TaskStatus.SUCCESS for task in scenario.library.tasks()):
            break
    assert gate(scenario, endpoint).state is GateState.CLOSED
    assert {vod_id: scenario.cms(vod_id, "vod_douban_id")[0] for vod_id in SUBJECTS} == SUBJECTS
    assert {verdict["verdict"] for verdict in scenario.verdicts()} == {"CONFIRMED"}
    tasks = scenario.library.tasks()
    assert sorted(task["vod_id"] for task in tasks) == sorted(SUBJECTS)
    assert {task["status"] for task in tasks} == {TaskStatus.SUCCESS}
    for state in scenario.library.states().values():
        assert (state["douban_sync_fail_count"], state["douban_last_fail_reason"]) == (0, "")


@pytest.mark.parametrize(("endpoint", "fault"), sorted(EMPTY_ANSWERS))
def test_a_search_that_finds_nothing_of_use_is_doubted_and_what_it_missed_is_found_within_a_day(
    stage: Stage, endpoint: str, fault: str
) -> None:
    scenario = set_stage(stage, endpoint)
    scenario.upstream.faults.add(endpoint, fault)
    assert scenario.play().success
    found = gate(scenario, endpoint)
    assert (found.state, "结果存疑" in found.reason) == (GateState.OPEN, True)
    assert scenario.upstream.requests.count(endpoint) <= 15
    assert {verdict["verdict"] for verdict in scenario.verdicts()} <= {"REVIEW"}
    assert all(state["douban_sync_fail_count"] == 0 for state in scenario.library.states().values())
    scenario.upstream.faults.clear()
    for _ in range(4):
        scenario.clock.advance(hours=6)
        assert scenario.play().success
    linked = {vod_id: scenario.cms(vod_id, "vod_douban_id")[0] for vod_id in SUBJECTS}
    reviewed = {verdict["vod_id"] for verdict in scenario.verdicts() if verdict["verdict"] == "REVIEW"}
    assert linked == {vod_id: 0 if vod_id in reviewed else douban_id for vod_id, douban_id in SUBJECTS.items()}
    assert not reviewed or fault == "wrong_id"


@pytest.mark.usefixtures("told_timeouts")
@pytest.mark.parametrize("endpoint", sorted(set(SOURCES) - {"douban"}))
def test_a_search_without_an_answer_is_no_failure_of_its_video(stage: Stage, endpoint: str) -> None:
    scenario = set_stage(stage, endpoint)
    scenario.upstream.faults.add(endpoint, "timeout", match=NAMES[0])
    run = scenario.play()
    counts = run.metadata("search_candidates")
    assert (counts["failed"], counts["deferred"]) == (0, 1)
    [task] = [task for task in scenario.library.tasks() if task["status"] == TaskStatus.PENDING]
    assert (task["vod_id"], task["attempts"]) == (4, 0)
    assert "no answer in time" in task["last_error"]
    assert scenario.library.state(4)["douban_sync_fail_count"] == 0
    assert gate(scenario, endpoint).state is GateState.CLOSED
    scenario.upstream.faults.clear()
    scenario.clock.advance(minutes=10)
    assert scenario.play().success
    assert {vod_id: scenario.cms(vod_id, "vod_douban_id")[0] for vod_id in SUBJECTS} == SUBJECTS
