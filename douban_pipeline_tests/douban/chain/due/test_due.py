"""What is due is taken on once, and only if it is to be worked on."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from datetime import timedelta

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.chain.decision_lane.open_orders import open_orders
from douban_pipeline.douban.chain.due.demand import Demand, choose_shards
from douban_pipeline.douban.chain.due.due_videos import DueScope, DueVideo
from douban_pipeline.douban.chain.due.shard_work import ShardDue
from douban_pipeline.douban.store.states import TaskStage, TaskStatus, TaskType
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline.douban.store.tasks import ORDERED_INTRO_PRIORITY, ORDERED_PRIORITY, NewTask
from douban_pipeline_tests.douban.chain.due.taking import due_of, take, taken, work_of
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import days_ago, dead_owner

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def decide(library, vod_id, state="pending"):
    row = {"vod_id": vod_id, "shard": vod_id % SHARDS, "action": "set_id", "reviewer": "王", "run_id": "r"}
    library.execute(sa.insert(library.tables.decision).values(**row, state=state, created_at=START))


@contextmanager
def deadlock_at_commit(engine):
    """Have the first transaction that wants to commit rolled back by the server, as the victim of a deadlock."""
    error = sqlite3.OperationalError(1213, "Deadlock found when trying to get lock; try restarting transaction")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    victims = iter([error])

    def fail(_connection):
        for victim in victims:
            raise sa.exc.OperationalError("COMMIT", None, victim)

    sa.event.listen(engine, "commit", fail)
    try:
        yield
    finally:
        sa.event.remove(engine, "commit", fail)
    assert next(victims, None) is None, "nothing was committed"


def test_a_deadlock_at_commit_counts_no_task_twice(library):
    library.add_states({"vod_id": 1}, {"vod_id": 65})
    with deadlock_at_commit(library.engine):
        report = take(library)
    assert (report.new_tasks, len(report.taken), len(library.tasks())) == (2, 2, 2)


def test_the_overview_counts_by_shard_who_waits_longest_first(library):
    library.add_states(
        {"vod_id": 1, "douban_next_sync_at": START - 9 * MINUTE},
        {"vod_id": 65, "douban_next_sync_at": START - 2 * HOUR},
        {"vod_id": 2, "douban_next_sync_at": START - 3 * HOUR},
        {"vod_id": 3, "douban_next_sync_at": START},
        {"vod_id": 4, "douban_next_sync_at": START + timedelta(seconds=1)},
        {"vod_id": 5, "douban_next_sync_at": None},
    )
    assert work_of(library).overview() == [
        ShardDue(2, 0, START - 3 * HOUR),
        ShardDue(1, 1, START - 2 * HOUR),
        ShardDue(3, 1, START),
    ]


def test_what_is_due_gets_the_task_it_needs(library):
    library.add_states(
        {"vod_id": 1},
        {"vod_id": 2, "vod_douban_id": 5, "douban_review_status": "CONFIRMED", "vod_time": days_ago(1000)},
        {"vod_id": 3, "vod_douban_id": 6, "douban_review_status": "REVIEW"},
        {"vod_id": 4, "douban_next_sync_at": START + HOUR},
    )
    report = take(library, shards=range(SHARDS))
    due = START - HOUR
    assert report.taken == [
        DueVideo(1, 1, TaskType.MATCH_DOUBAN_ID, due, "UNCHECKED", 50),
        DueVideo(2, 2, TaskType.SYNC_DOUBAN, due, "CONFIRMED", 10),
        DueVideo(3, 3, TaskType.MATCH_DOUBAN_ID, due, "REVIEW", 50),
    ]
    assert (report.new_tasks, report.left) == (3, 0)
    found = [(task["vod_id"], task["task_type"], task["stage"], task["priority"]) for task in library.tasks()]
    assert found == [
        (1, "MATCH_DOUBAN_ID", "search", 50),
        (2, "SYNC_DOUBAN", "sync", 10),
        (3, "MATCH_DOUBAN_ID", "search", 50),
    ]


def test_a_limit_is_a_shards_and_who_waits_longest_comes_first(library):
    library.add_states(*({"vod_id": 1 + 64 * n, "douban_next_sync_at": START - n * HOUR} for n in range(5)))
    library.add_states(*({"vod_id": 2 + 64 * n, "douban_next_sync_at": START - n * HOUR} for n in range(3)))
    report = take(library, shards=[2, 1, 3], limit=2)
    assert [video.vod_id for video in report.taken] == [257, 193, 130, 66]
    assert (report.new_tasks, report.left) == (4, 4)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [1, 2, 3]),
        ({"excluded_type_ids": {24}}, [1, 3]),
        ({"included_type_ids": {6, 24}}, [1, 2]),
        ({"included_type_ids": {6, 24}, "excluded_type_ids": {24}}, [1]),
        ({"included_type_ids": {99}}, []),
    ],
)
def test_only_categories_in_scope_are_seen_and_taken(shared_library, options, expected):
    library = shared_library.renewed(**options)
    library.add_states({"vod_id": 1, "type_id": 6}, {"vod_id": 2, "type_id": 24}, {"vod_id": 3, "type_id": 13})
    assert sorted(due.shard for due in work_of(library).overview()) == expected
    for scope in DueScope:
        assert taken(library, scope=scope) == expected


def test_open_tasks_of_a_category_that_fell_out_of_scope_are_closed(shared_library):
    library = shared_library.renewed(excluded_type_ids={24})
    library.add_states({"vod_id": 1, "type_id": 6}, *({"vod_id": vod_id, "type_id": 24} for vod_id in (2, 3, 4)))
    queue = library.queue()
    library.enqueue(queue, [NewTask(n, TaskType.MATCH_DOUBAN_ID, TaskStage.SEARCH) for n in (1, 2, 3, 4)])
    queue.lease([3, 4], TaskStage.SEARCH, limit=2)
    with library.engine.begin() as connection:
        queue.finish(connection, library.tasks()[3]["task_id"], TaskStatus.SUCCESS, "完成")
    assert due_of(library).drop_out_of_scope(queue) == 2
    assert [(task["status"], task["last_error"]) for task in library.tasks()] == [
        ("PENDING", ""),
        ("SKIP", "分类不在处理范围内"),
        ("SKIP", "分类不在处理范围内"),
        ("SUCCESS", "完成"),
    ]
    assert due_of(library).drop_out_of_scope(queue) == 0
    library.settings = library.settings.model_copy(update={"excluded_type_ids": frozenset()})
    assert due_of(library).drop_out_of_scope(queue) == 0


def test_a_pending_decision_comes_before_automation(library):
    library.add_states({"vod_id": 1}, {"vod_id": 2}, {"vod_id": 3})
    decide(library, 1)
    decide(library, 2, "applied")
    decide(library, 3, "refused")
    for scope in DueScope:
        assert taken(library, scope=scope) == [2, 3]
    library.execute("UPDATE mac_douban_decision SET state = 'applied'")
    assert taken(library) == [1, 2, 3]


def orders(library):
    found = open_orders(library.services)
    return (found.decisions, found.syncs, found.intros)


def test_a_decision_that_waits_for_its_source_launches_nothing_before_its_time(library):
    decide(library, 1)
    decide(library, 2)
    assert orders(library) == (2, 0, 0)
    assert work_of(library).overview() == [], "it has a lane of its own"
    decision = library.tables.decision
    library.execute(sa.update(decision).where(sa.text("vod_id = 2")).values(run_after=START + timedelta(minutes=5)))
    assert orders(library) == (1, 0, 0)
    library.clock.advance(minutes=5)
    assert orders(library) == (2, 0, 0)
    # Not while a run has it; what a dead run had is free at once.
    held = sa.update(decision).where(sa.text("vod_id = 1"))
    library.execute(held.values(lease_owner="run@elsewhere:1", lease_until=START + HOUR))
    assert orders(library) == (1, 0, 0)
    library.execute(held.values(lease_owner=dead_owner("run")))
    assert orders(library) == (2, 0, 0)


@pytest.mark.parametrize(
    ("stage", "priority", "found"),
    [
        (TaskStage.SYNC, ORDERED_PRIORITY, (0, 1, 0)),
        (TaskStage.INTRO, ORDERED_INTRO_PRIORITY, (0, 0, 1)),
        (TaskStage.SYNC, 900, (0, 0, 0)),
        (TaskStage.INTRO, ORDERED_PRIORITY, (0, 0, 0)),
        (TaskStage.SEARCH, ORDERED_PRIORITY, (0, 0, 0)),
    ],
)
def test_a_task_that_a_person_ordered_is_the_lane_s_when_its_time_has_come(shared_library, stage, priority, found):
    library = shared_library.renewed(ai_intros=True, openrouter_api_key="k")
    queue = library.queue("run")
    library.enqueue(queue, [NewTask(1, TaskType.SYNC_DOUBAN, stage, priority)])
    task_id = library.tasks()[0]["task_id"]
    assert orders(library) == found
    queue.lease([1], stage, limit=10)
    assert orders(library) == (0, 0, 0), "a run is at work on it"
    with library.engine.begin() as connection:
        queue.requeue(connection, task_id, START + HOUR, "预算已用完", failed=False)
    assert orders(library) == (0, 0, 0)
    library.clock.advance(hours=1)
    assert orders(library) == found


def test_open_tasks_that_nobody_holds_are_work(library):
    """A backfill queued more than its run had time for: the videos are not due, but their tasks wait."""
    library.add_states(*({"vod_id": n, "douban_next_sync_at": START + 30 * HOUR} for n in (1, 65, 129, 2, 3)))
    take(library, shards=[1, 2, 3], scope=DueScope.everything)
    assert work_of(library).overview() == [
        ShardDue(1, 0, START, tasks=3),
        ShardDue(2, 0, START, tasks=1),
        ShardDue(3, 0, START, tasks=1),
    ]
    queue = library.queue("one")
    queue.lease([1], TaskStage.SEARCH, limit=2)
    [task] = queue.lease([2], TaskStage.SEARCH, limit=2)
    with library.engine.begin() as connection:
        queue.requeue(connection, task.task_id, START + HOUR, "429", failed=False)
    assert work_of(library).overview() == [ShardDue(1, 0, START, tasks=1), ShardDue(3, 0, START, tasks=1)]
    library.enqueue(queue, [NewTask(4, TaskType.AI_INTRO, TaskStage.INTRO)])
    assert [due.shard for due in work_of(library).overview()] == [1, 3], "an intro is worth no run by itself"
    assert choose_shards(work_of(library).overview(), (), (), 0, Demand(1, HOUR, 2), START)[0] == [
        range(1, 2),
        range(3, 4),
    ]


def test_what_waits_out_a_failure_is_not_overtaken(library):
    library.add_states({"vod_id": 1}, {"vod_id": 2})
    take(library)
    queue = library.leasing()
    with library.engine.begin() as connection:
        queue.requeue(connection, library.tasks()[0]["task_id"], START + HOUR, "", failed=True)
    for scope in DueScope:
        assert taken(library, scope=scope) == [2]
    library.clock.advance(hours=1)
    assert taken(library) == [1, 2]


def test_an_intro_that_waits_delays_nothing_else(library):
    library.add_states({"vod_id": 1}, {"vod_id": 2, "vod_douban_id": 5, "douban_review_status": "CONFIRMED"})
    queue = library.queue()
    library.enqueue(queue, [NewTask(n, TaskType.AI_INTRO, TaskStage.INTRO) for n in (1, 2)])
    queue.lease([1, 2], TaskStage.INTRO, limit=2)
    with library.engine.begin() as connection:
        for task in library.tasks():
            queue.requeue(connection, task["task_id"], START + HOUR, "预算已用完", failed=False)
    assert [(due.shard, due.oldest) for due in work_of(library).overview()] == [(1, START - HOUR), (2, START - HOUR)]
    assert [(video.vod_id, video.task_type) for video in take(library).taken] == [
        (1, TaskType.MATCH_DOUBAN_ID),
        (2, TaskType.SYNC_DOUBAN),
    ]
    assert {state["douban_next_sync_at"] for state in library.states().values()} == {START - HOUR}


def test_a_video_that_came_due_while_its_task_waits_is_deferred_with_it(library):
    # Otherwise the sensor launches a run every half minute that finds nothing to take on.
    library.add_states({"vod_id": 1})
    assert taken(library) == [1]
    queue = library.leasing()
    with library.engine.begin() as connection:
        queue.requeue(connection, library.tasks()[0]["task_id"], START + HOUR, "HTTP 500", failed=True)
    assert work_of(library).overview() != []
    assert taken(library) == []
    assert work_of(library).overview() == []
    assert library.state(1)["douban_next_sync_at"] == START + HOUR


def test_an_ignored_video_is_not_visited_until_its_time_is_over(library):
    ignored = {"douban_review_status": "IGNORED"}
    library.add_states(
        {"vod_id": 1, **ignored, "douban_ignore_until": START},
        {"vod_id": 2, **ignored, "douban_ignore_until": START, "vod_douban_id": 5},
        {"vod_id": 3, **ignored, "douban_ignore_until": START + HOUR},
        {"vod_id": 4, **ignored},
        {"vod_id": 5, **ignored, "douban_next_sync_at": None},
    )
    assert taken(library) == [1, 2]
    states = library.states()
    assert [states[n]["douban_review_status"] for n in (1, 2)] == ["NOT_FOUND", "CONFIRMED"]
    assert {states[n]["douban_review_reason"] for n in (1, 2)} == {"忽略期已过"}
    assert {states[n]["douban_review_status"] for n in (3, 4, 5)} == {"IGNORED"}
    assert [task["task_type"] for task in library.tasks()] == ["MATCH_DOUBAN_ID", "SYNC_DOUBAN"]
    # What is paused must not look due for ever, or the sensor would start a run for it every time it looks.
    assert {due.shard for due in work_of(library).overview()} == {1, 2}
    for scope in DueScope:
        assert not {3, 4, 5} & set(taken(library, scope=scope))
    library.clock.advance(hours=1)
    assert 3 in taken(library)


def test_how_much_a_scope_takes_in(library):
    library.add_states(
        {"vod_id": 1},
        {"vod_id": 2, "douban_next_sync_at": START + HOUR},
        {"vod_id": 3, "douban_next_sync_at": START + HOUR, "douban_review_status": "REVIEW"},
        {"vod_id": 4, "douban_next_sync_at": START + HOUR, "douban_review_status": "CONFIRMED", "vod_douban_id": 5},
        {"vod_id": 5, "douban_review_status": "CONFIRMED", "vod_douban_id": 5},
        {"vod_id": 6, "douban_next_sync_at": None},
        {"vod_id": 7, "douban_next_sync_at": START + HOUR, "douban_review_status": "IGNORED"},
    )
    assert taken(library) == [1, 5]
    assert taken(library, scope=DueScope.unmatched) == [1, 2, 3, 5]
    assert taken(library, scope=DueScope.everything) == [1, 2, 3, 4, 5]


def test_a_backfill_goes_round(library):
    library.add_states(*({"vod_id": 1 + 64 * n, "douban_next_sync_at": START + HOUR} for n in range(6)))
    rounds = []
    for _ in range(3):
        found = taken(library, shards=[1], scope=DueScope.everything, limit=2)
        rounds += found
        library.clock.advance(minutes=1)
        for vod_id in found:
            library.set_state(vod_id, douban_last_sync_at=library.clock.now())
    assert sorted(rounds) == [1 + 64 * n for n in range(6)]
    assert taken(library, shards=[1], scope=DueScope.everything, limit=2) == rounds[:2]
