"""A source that is unhealthy costs no video anything; a video that fails again and again comes before a person."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from douban_pipeline.core.errors import (
    GateClosed,
    GateUnreadable,
    OthersFirst,
    SourceThrottled,
    SourceUnavailable,
    SourceWall,
)
from douban_pipeline.douban.chain.attempts import Attempts, RequeuedTask
from douban_pipeline.douban.sources.errors import RETRY_AFTER, SubjectMismatch, SubjectMissing
from douban_pipeline.douban.store.states import TaskStage, TaskType
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline.douban.store.tasks import NewTask
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.sent_statements import sent_statements

IN_AN_HOUR = START + timedelta(hours=1)
BACK_OFF = [
    timedelta(minutes=10),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=6),
    timedelta(hours=24),
    timedelta(hours=24),
]


def leased(library, *vod_ids, **state):
    """Put videos into the state table and the queue, and lease them."""
    library.add_states(*({"vod_id": vod_id, **state} for vod_id in vod_ids))
    queue = library.queue()
    library.enqueue(queue, [NewTask(vod_id, TaskType.MATCH_DOUBAN_ID, TaskStage.SEARCH) for vod_id in vod_ids])
    return again(library, queue)


def again(library, queue=None):
    return (queue or library.queue()).lease(range(SHARDS), TaskStage.SEARCH, limit=1000)


def attempts_of(library, seconds=240.0):
    return Attempts(library.services, library.queue(), library.clock.now() + timedelta(seconds=seconds))


def run(attempts, tasks, call, workers=1):
    return {task.vod_id: result for task, result in attempts.run(tasks, call, workers=workers)}


def raising(error):
    def call(_task):
        raise error

    return call


def test_a_video_that_must_not_be_the_probe_leaves_it_to_the_others(library):
    tasks = leased(library, 7, 8, 67)

    def call(task):
        if task.vod_id == 7:
            raise OthersFirst("douban", "HTTP 500", IN_AN_HOUR)
        return "asked"

    attempts = attempts_of(library)
    assert run(attempts, tasks, call) == {8: "asked", 67: "asked"}
    assert ([each.vod_id for each in attempts.deferred], attempts.failed) == ([7], [])


@pytest.mark.parametrize(
    ("error", "until"),
    [
        (GateClosed("douban", "断路", IN_AN_HOUR), IN_AN_HOUR),
        (GateClosed("douban", "断路", START - timedelta(minutes=1)), START),
        (GateUnreadable("douban", "闸门读不到"), START + RETRY_AFTER),
        (SourceThrottled("douban", "429", 90), START + timedelta(seconds=90)),
        (SourceThrottled("douban", "429"), START + RETRY_AFTER),
        (SourceThrottled("douban", "429", 999_999_999), START + timedelta(days=1)),
        (SourceWall("douban", "登录页"), START + RETRY_AFTER),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_failing_source_defers_everything_and_blames_nobody(library, error, until):
    tasks = leased(library, 7, 8, 67)
    calls = []

    def call(task):
        calls.append(task.vod_id)
        raise error

    attempts = attempts_of(library)
    assert run(attempts, tasks, call) == {}
    assert calls == [7], "after the first refusal no further call is made"
    expected = {vod_id: until + timedelta(seconds=vod_id % 60) for vod_id in (7, 8, 67)}
    assert sorted(attempts.deferred, key=lambda item: item.vod_id) == [
        RequeuedTask(vod_id, vod_id % 64, at, str(error)) for vod_id, at in expected.items()
    ]
    assert (attempts.failed, attempts.left) == ([], 0)
    for task in library.tasks():
        assert (task["status"], task["attempts"], task["lease_owner"]) == ("PENDING", 0, None)
        assert (task["run_after"], task["last_error"]) == (expected[task["vod_id"]], str(error))
    for vod_id, state in library.states().items():
        assert state["douban_next_sync_at"] == expected[vod_id]
        assert (state["douban_sync_fail_count"], state["douban_last_fail_reason"]) == (0, "")
        assert state["douban_review_status"] == "NOT_FOUND"


@pytest.mark.parametrize(
    "error",
    [
        SourceUnavailable("douban", "超时"),
        SubjectMismatch("douban", "问的是 1，答的是 2"),
        SubjectMissing("douban", "没有这个条目"),
        ZeroDivisionError("division by zero"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_failure_of_one_video_counts_against_it_and_the_rest_goes_on(library, error, caplog):
    tasks = leased(library, 7, 8, 9)

    def call(task):
        if task.vod_id == 8:
            raise error
        return "gut"

    attempts = attempts_of(library)
    with caplog.at_level(logging.ERROR):
        assert run(attempts, tasks, call) == {7: "gut", 9: "gut"}
    [failed] = attempts.failed
    unexpected = isinstance(error, ZeroDivisionError)
    reason = "内部错误 ZeroDivisionError: division by zero" if unexpected else str(error)
    assert failed == RequeuedTask(8, 8, failed.until, reason, failures=1)
    assert START + BACK_OFF[0] <= failed.until <= START + 1.1 * BACK_OFF[0]
    state = library.state(8)
    assert (state["douban_sync_fail_count"], state["douban_last_fail_at"]) == (1, START)
    assert (state["douban_last_fail_reason"], state["douban_next_sync_at"]) == (reason, failed.until)
    task = library.tasks()[1]
    assert (task["status"], task["attempts"], task["run_after"]) == ("PENDING", 1, failed.until)
    assert library.state(7)["douban_sync_fail_count"] == 0
    # What nobody expected is told in full in the log, with its traceback; what was expected is no noise there.
    assert [bool(record.exc_info) for record in caplog.records] == ([True] if unexpected else [])


@pytest.mark.parametrize(
    ("status", "afterwards"), [("NOT_FOUND", "REVIEW"), ("REVIEW", "REVIEW"), ("CONFIRMED", "CONFIRMED")]
)
def test_waits_grow_and_the_fifth_failure_asks_for_a_person(library, status, afterwards):
    tasks = leased(library, 7, douban_review_status=status)
    for number, wait in enumerate(BACK_OFF, start=1):
        attempts = attempts_of(library)
        run(attempts, tasks, raising(SourceUnavailable("douban", f"第{number}次")))
        now = library.clock.now()
        [failed] = attempts.failed
        assert failed.failures == number
        assert now + wait <= failed.until <= now + 1.1 * wait
        state = library.state(7)
        asked = number >= 5
        assert state["douban_review_status"] == (afterwards if asked else status)
        assert state["douban_review_reason"] == (f"连续失败 {number} 次：douban: 第{number}次" if asked else "")
        assert again(library) == []
        library.clock.advance(seconds=(failed.until - now).total_seconds())
        tasks = again(library)
        assert [task.attempts for task in tasks] == [number]


def test_reasons_of_any_length_fit(library):
    tasks = leased(library, 7)
    library.set_state(7, douban_sync_fail_count=4)
    run(attempts_of(library), tasks, raising(SourceUnavailable("douban", "长🎬" * 600)))
    state = library.state(7)
    assert len(state["douban_last_fail_reason"]) == len(state["douban_review_reason"]) == 500


def test_a_failure_of_a_video_that_is_no_longer_known_does_no_harm(library):
    tasks = leased(library, 7, 8)
    library.execute("DELETE FROM mac_douban_video WHERE vod_id = 7")
    attempts = attempts_of(library)
    run(attempts, tasks, raising(SourceUnavailable("douban", "超时")))
    assert sorted(failed.vod_id for failed in attempts.failed) == [7, 8]


def test_when_the_time_is_up_the_rest_is_left_for_the_next_run(library):
    tasks = leased(library, *range(1, 7))
    attempts = attempts_of(library, seconds=60)

    def call(task):
        library.clock.advance(seconds=25)
        return task.vod_id

    assert list(run(attempts, tasks, call)) == [1, 2, 3]
    assert (attempts.left, attempts.deferred, attempts.failed) == (3, [], [])
    assert [task["status"] for task in library.tasks()] == ["RUNNING"] * 3 + ["PENDING"] * 3
    assert [task["attempts"] for task in library.tasks()] == [0] * 6
    other = library.queue("other").lease(range(SHARDS), TaskStage.SEARCH, limit=10)
    assert [task.vod_id for task in other] == [4, 5, 6]
    assert library.state(4)["douban_next_sync_at"] <= library.clock.now()


@pytest.mark.parametrize(
    "error", [None, GateClosed("douban", "断路", IN_AN_HOUR), SourceUnavailable("douban", "超时")], ids=repr
)
def test_a_task_whose_lease_was_lost_is_left_to_the_run_that_has_it(library, error):
    tasks = leased(library, 7, 8)
    library.clock.advance(minutes=16)
    assert len(library.queue("other").lease([7], TaskStage.SEARCH, limit=10)) == 1
    before = library.tasks()[0], library.state(7)
    attempts = attempts_of(library, seconds=240 if error else -1)
    assert run(attempts, tasks, raising(error)) == {}
    assert (library.tasks()[0], library.state(7)) == before
    counted = {item.vod_id for item in (*attempts.deferred, *attempts.failed)}
    assert (attempts.lost, attempts.left, counted) == (1, 0 if error else 1, {8} if error else set())


def test_no_more_calls_at_once_than_allowed(library):
    tasks = leased(library, *range(1, 25))
    both, lock, under_way = threading.Barrier(3, timeout=30), threading.Lock(), []
    most = 0

    def call(task):
        nonlocal most
        with lock:
            under_way.append(task.vod_id)
            most = max(most, len(under_way))
        both.wait()
        with lock:
            under_way.remove(task.vod_id)
        return True

    assert len(run(attempts_of(library), tasks, call, workers=3)) == 24
    assert most == 3


def test_leases_are_renewed_while_the_work_lasts(library):
    tasks = leased(library, *range(1, 61))
    before = {task["lease_until"] for task in library.tasks()}

    def call(task):
        library.clock.advance(seconds=5)
        return task.vod_id

    run(attempts_of(library, seconds=1000), tasks, call)
    assert min(task["lease_until"] for task in library.tasks()) > max(before)


def updates(sent):
    return sum(statement.startswith("UPDATE") for statement, _ in sent)


def test_what_is_left_goes_back_by_a_few_statements_and_leases_are_not_renewed_again_and_again(library):
    tasks = leased(library, *range(1, 301))
    attempts = attempts_of(library, seconds=-1)
    with sent_statements(library.engine) as sent:
        assert run(attempts, tasks, lambda task: task.vod_id) == {}
    assert (attempts.left, updates(sent)) == (300, 1), "one statement for all of them"

    tasks = again(library)
    with sent_statements(library.engine) as sent:
        assert len(run(attempts_of(library), tasks, lambda task: task.vod_id)) == 300
    assert updates(sent) == 0, "a lease of minutes needs no sign of life every twenty videos"


def test_who_stops_listening_stops_the_calls(library, monkeypatch):
    tasks = leased(library, *range(1, 101))
    calls, under_way, stopped = [], threading.Event(), threading.Event()

    def call(task):
        calls.append(task.vod_id)
        if len(calls) == 2:
            under_way.set()
            assert stopped.wait(30)
        return task.vod_id

    class Pool(ThreadPoolExecutor):
        """Lets the call that is under way end once the others are called off."""

        def shutdown(self, wait=True, *, cancel_futures=False):
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            stopped.set()
            super().shutdown(wait=wait)

    monkeypatch.setattr("douban_pipeline.douban.chain.attempts.ThreadPoolExecutor", Pool)
    results = attempts_of(library).run(tasks, call, workers=1)
    assert next(results)[1] == 1
    assert under_way.wait(30)
    results.close()
    assert calls == [1, 2]
