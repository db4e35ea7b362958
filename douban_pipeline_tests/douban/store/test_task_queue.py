"""Work is queued once, done by one run at a time, and never lost with the run that held it."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta

import pymysql
import pytest
import sqlalchemy as sa

from douban_pipeline.douban.decisions.effects import order
from douban_pipeline.douban.store.states import TaskStage, TaskStatus, TaskType
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline.douban.store.tasks import ORDERED_PRIORITY, NewTask
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.deciding import decide, decisions
from douban_pipeline_tests.harness.fixtures.library import dead_owner, video

ALL_SHARDS = range(SHARDS)


def match(vod_id, priority=0):
    return NewTask(vod_id, TaskType.MATCH_DOUBAN_ID, TaskStage.SEARCH, priority)


def sync(vod_id, priority=0):
    return NewTask(vod_id, TaskType.SYNC_DOUBAN, TaskStage.SYNC, priority)


def lease(queue, limit=100, shards=ALL_SHARDS, stage=TaskStage.SEARCH):
    return [task.vod_id for task in queue.lease(shards, stage, limit=limit)]


def in_threads(*works):
    """Run ``works`` at the same time and return what they returned."""
    results, barrier = {}, threading.Barrier(len(works))

    def play(position, work):
        barrier.wait(timeout=30)
        results[position] = work()

    threads = [threading.Thread(target=play, args=item) for item in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=90)
    assert len(results) == len(works), "a thread failed or hangs"
    return [results[position] for position in range(len(works))]


def test_an_open_task_is_not_queued_again_until_it_is_closed(library):
    queue = library.queue()
    assert library.enqueue(queue, [match(1), match(2), sync(1)]) == 3
    assert library.enqueue(queue, [match(2), match(3)]) == 1
    first = library.tasks()[0]
    assert (first["shard"], first["status"], first["attempts"], first["run_after"]) == (1, "PENDING", 0, START)
    assert library.tasks()[0]["open_key"] == "1:MATCH_DOUBAN_ID"
    assert lease(queue) == [1, 2, 3]
    assert library.enqueue(queue, [match(1)]) == 0
    with library.engine.begin() as connection:
        queue.finish(connection, first["task_id"], TaskStatus.SUCCESS, "完成")
    assert library.enqueue(queue, [match(1)]) == 1
    done = library.tasks()[0]
    assert (done["status"], done["last_error"], done["finished_at"]) == ("SUCCESS", "完成", START)
    assert (done["open_key"], done["lease_owner"], done["lease_until"]) == (None, None, None)


def test_runs_that_queue_the_same_at_once_queue_it_once(library):
    # Against each other's order, the way in which two writers would wait for each other.
    up, down = [match(vod_id) for vod_id in range(1, 201)], [match(vod_id) for vod_id in range(200, 0, -1)]

    def queueing(tasks, run_id):
        queue = library.queue(run_id)
        return lambda: [library.enqueue(queue, tasks[start : start + 50]) for start in range(0, 200, 50)]

    in_threads(*(queueing(tasks, f"run-{number}") for number, tasks in enumerate((up, down, up, down))))
    assert Counter(row["vod_id"] for row in library.tasks()) == Counter(range(1, 201))


def test_runs_that_lease_at_once_never_share_a_task(library):
    library.enqueue(library.queue(), [match(vod_id) for vod_id in range(1, 241)])

    def leasing(run_id):
        queue = library.queue(run_id)
        return lambda: [vod_id for _ in range(8) for vod_id in lease(queue, limit=12)]

    # Each run asks again and again: what it holds comes back to it, what another holds never does.
    taken = [set(found) for found in in_threads(*(leasing(f"run-{number}") for number in range(4)))]
    assert all(taken)
    assert sum(len(found) for found in taken) == len(set().union(*taken))
    owners = {row["vod_id"]: row["lease_owner"].split("@")[0] for row in library.tasks() if row["lease_owner"]}
    assert owners == {vod_id: f"run-{number}" for number, found in enumerate(taken) for vod_id in found}


def test_the_most_valuable_comes_first_then_who_waits_longest(library):
    queue = library.queue()
    library.enqueue(queue, [match(1, 10), match(2, 50)])
    library.clock.advance(minutes=1)
    library.enqueue(queue, [match(3, 50), match(4, 10)])
    assert lease(queue, limit=3) == [2, 3, 1]


def test_a_lease_that_ran_out_is_anybodys_and_a_renewed_one_is_not(library):
    one, other = library.queue("one", minutes=15), library.queue("other", minutes=15)
    library.enqueue(one, [match(1)])
    assert lease(one) == [1]
    library.clock.advance(minutes=15, seconds=-1)
    assert lease(other) == []
    one.renew()
    library.clock.advance(minutes=15, seconds=-1)
    assert lease(other) == []
    library.clock.advance(seconds=1)
    assert lease(other) == [1]
    assert lease(one) == []
    one.renew()
    assert library.tasks()[0]["lease_owner"] == other.owner


def test_a_dead_run_holds_nothing_and_a_living_one_keeps_what_it_holds(library):
    dead, living = library.queue(owner=dead_owner()), library.queue("living")
    elsewhere = library.queue(owner="run@another-machine:1")
    library.enqueue(living, [match(1), match(2), match(3)])
    assert lease(dead, limit=1) == [1]
    assert lease(living, limit=1) == [2]
    assert lease(elsewhere, limit=1) == [3]
    fresh = library.queue("fresh")
    assert fresh.release_dead() == [dead.owner]
    assert fresh.release_dead() == []
    assert [row["lease_owner"] for row in library.tasks()] == [None, living.owner, elsewhere.owner]
    assert library.tasks()[0]["status"] == "PENDING"
    assert lease(fresh) == [1]


def test_a_task_goes_on_to_its_next_stage_with_what_was_found(library):
    queue, other = library.queue(), library.queue("other")
    library.enqueue(queue, [match(1)])
    [task] = queue.lease(ALL_SHARDS, TaskStage.SEARCH, limit=1)
    found = {"candidates": [1292052], "片名": "霸王别姬 🎬"}
    with library.engine.begin() as connection:
        queue.advance(connection, task, TaskStage.SCORE, found)
    assert lease(other, stage=TaskStage.SCORE) == []
    [scored] = queue.lease(ALL_SHARDS, TaskStage.SCORE, limit=1)
    assert (scored.task_id, scored.stage, scored.payload) == (task.task_id, TaskStage.SCORE, found)
    assert lease(queue, stage=TaskStage.SEARCH) == []


@pytest.mark.parametrize(("failed", "attempts"), [(True, 1), (False, 0)])
def test_what_is_requeued_waits_its_time_and_only_failures_count(library, failed, attempts):
    queue, other = library.queue(), library.queue("other")
    library.enqueue(queue, [match(1)])
    [task] = queue.lease(ALL_SHARDS, TaskStage.SEARCH, limit=1)
    with library.engine.begin() as connection:
        until = START + timedelta(minutes=10)
        queue.requeue(connection, task.task_id, until, "原因" * 400, failed=failed, stage=TaskStage.SYNC)
    [row] = library.tasks()
    assert (row["status"], row["attempts"], row["run_after"], row["lease_owner"]) == ("PENDING", attempts, until, None)
    assert row["last_error"] == ("原因" * 400)[:500]
    assert library.enqueue(queue, [match(1)]) == 0
    library.clock.advance(minutes=10, seconds=-1)
    assert lease(queue, stage=TaskStage.SYNC) == []
    library.clock.advance(seconds=1)
    assert lease(other, stage=TaskStage.SYNC) == [1]


@pytest.fixture
def overtaken(library):
    """A run whose lease ran out, the run that has the task by now, and the task; a person's decision waits for it."""
    library.add(video(1))
    silent, other = library.queue("silent", minutes=15), library.queue("other", minutes=15)
    library.enqueue(silent, [sync(1, ORDERED_PRIORITY)])
    [task] = silent.lease(ALL_SHARDS, TaskStage.SYNC, limit=1)
    decide(library, 1, "sync_now", state="queued", task_id=task.task_id)
    library.clock.advance(minutes=15, seconds=1)
    assert lease(other, stage=TaskStage.SYNC) == [1]
    return silent, other, task


@pytest.mark.parametrize("deed", ["finish", "requeue", "advance"])
def test_a_run_whose_lease_was_lost_changes_nothing_of_the_task_that_another_has(library, overtaken, deed):
    silent, other, task = overtaken
    before = library.tasks(), decisions(library, "state", "state_reason")

    def do(queue):
        with library.engine.begin() as connection:
            match deed:
                case "finish":
                    return queue.finish(connection, task.task_id, TaskStatus.SUCCESS)
                case "requeue":
                    return queue.requeue(connection, task.task_id, START, "429", failed=True)
                case _:
                    return queue.advance(connection, task, TaskStage.SCORE, {})

    assert do(silent) is False
    assert (library.tasks(), decisions(library, "state", "state_reason")) == before
    with library.engine.begin() as connection:
        assert (silent.held(connection, [task.task_id]), silent.holds(connection, task.task_id)) == (set(), False)
        assert other.held(connection, [task.task_id]) == {task.task_id}
    assert do(other) is True
    assert decisions(library, "state") == (["applied"] if deed == "finish" else ["queued"])
    # What another closed or gave back is not ours either, though nobody holds it.
    assert deed == "advance" or do(silent) is False


def test_a_decision_that_a_task_got_while_a_run_held_it_is_settled_with_it(library):
    library.add(video(1))
    queue = library.queue()
    library.enqueue(queue, [sync(1)])
    [task] = queue.lease(ALL_SHARDS, TaskStage.SYNC, limit=1)
    with library.engine.begin() as connection:
        ordered = order(connection, library.tables, library.queue("desk"), sync(1, ORDERED_PRIORITY), run_id="desk")
    decide(library, 1, "sync_now", state="queued", task_id=ordered)
    assert (ordered, task.ordered) == (task.task_id, False)
    with library.engine.begin() as connection:
        assert queue.finish(connection, task.task_id, TaskStatus.SUCCESS) is True
    assert decisions(library, "state") == ["applied"]


def test_a_task_that_nobody_holds_is_closed_by_whoever_cancels_it(library, overtaken):
    silent, other, task = overtaken
    fresh = library.queue("fresh")
    with library.engine.begin() as connection:
        assert silent.cancel(connection, task.task_id, "总开关已关闭", unless_held=True) is False
    assert library.tasks()[0]["lease_owner"] == other.owner
    library.clock.advance(minutes=15, seconds=1)
    with library.engine.begin() as connection:
        assert fresh.cancel(connection, task.task_id, "总开关已关闭", unless_held=True) is True
        assert fresh.cancel(connection, task.task_id, "再来一次") is False
    [row] = library.tasks()
    assert (row["status"], row["last_error"], row["open_key"], row["lease_owner"]) == (
        "SKIP",
        "总开关已关闭",
        None,
        None,
    )
    assert decisions(library, "state", "state_reason") == [("refused", "总开关已关闭")]


def test_a_cancelled_task_is_lost_to_the_run_that_held_it(library, overtaken):
    _, other, task = overtaken
    with library.engine.begin() as connection:
        assert library.queue("fresh").cancel(connection, task.task_id, "审核决定优先") is True
    with library.engine.begin() as connection:
        assert other.finish(connection, task.task_id, TaskStatus.SUCCESS) is False
    assert [row["status"] for row in library.tasks()] == ["SKIP"]


def test_a_deadlock_that_is_reported_at_the_commit_leases_nothing_twice(library):
    queue = library.queue()
    library.enqueue(queue, [match(vod_id) for vod_id in range(1, 4)])
    reported = []

    def deadlock(_connection):
        if not reported:
            reported.append(True)
            cause = pymysql.err.OperationalError(1213, "Deadlock found when trying to get lock")
            raise sa.exc.OperationalError("COMMIT", {}, cause)

    sa.event.listen(library.engine, "commit", deadlock)
    assert lease(queue) == [1, 2, 3]
    assert reported
    assert {row["lease_owner"] for row in library.tasks()} == {queue.owner}


def test_the_key_that_keeps_tasks_single_is_in_the_database(library):
    library.enqueue(library.queue(), [match(1)])
    [row] = library.tasks()
    twin = {name: value for name, value in row.items() if name != "task_id"}
    with pytest.raises(sa.exc.IntegrityError):
        library.execute(sa.insert(library.tables.task).values(**twin))
    library.execute(sa.insert(library.tables.task).values(**twin | {"open_key": None}))
    library.execute(sa.insert(library.tables.task).values(**twin | {"open_key": None}))
    assert len(library.tasks()) == 3


def test_how_long_work_took_counts_from_the_first_step_of_the_run_that_did_it(library):
    queue = library.queue("run")
    library.enqueue(queue, [match(1)])
    lease(queue)
    library.clock.advance(minutes=2)
    [task] = queue.lease(ALL_SHARDS, TaskStage.SEARCH, limit=9)
    assert library.tasks()[0]["started_at"] == START, "a later step of the same run goes on with it"
    with library.engine.begin() as connection:
        queue.requeue(connection, task.task_id, library.clock.now(), "", failed=True)
    lease(library.queue("next"))
    assert library.tasks()[0]["started_at"] == START + timedelta(minutes=2)
