"""A line every half a minute says how far a run and a whole backfill are; what fails there stops no work."""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import partial
from zoneinfo import ZoneInfo

import pytest

from douban_pipeline.core.database import run_transaction
from douban_pipeline.core.errors import GateUnreadable
from douban_pipeline.douban.chain.attempts import Attempts
from douban_pipeline.douban.chain.due.due_videos import DueScope
from douban_pipeline.douban.chain.progress import Progress, backfill_line
from douban_pipeline.douban.store.states import TaskStage, TaskStatus, TaskType
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline.douban.store.tasks import NewTask

SHANGHAI = ZoneInfo("Asia/Shanghai")
LOG = logging.getLogger("test.progress")
MINUTE = timedelta(minutes=1)


def attempts_of(library, further=None, gates=None):
    services = library.services
    deadline = library.clock.now() + 60 * MINUTE
    gates = gates or services.gate.status
    progress = Progress("search", LOG, SHANGHAI, gates, library.clock.now, deadline, further)
    return Attempts(services, library.queue(), deadline, progress=progress)


def work(library, attempts, count, seconds):
    library.add_states(*({"vod_id": vod_id} for vod_id in range(1, count + 1)))
    queue = library.queue()
    library.enqueue(queue, [NewTask(n, TaskType.MATCH_DOUBAN_ID, TaskStage.SEARCH) for n in range(1, count + 1)])
    tasks = queue.lease(range(SHARDS), TaskStage.SEARCH, limit=count)

    def call(task):
        library.clock.advance(seconds=seconds)
        with library.services.gate.slot("douban"):
            return task.vod_id

    return list(attempts.run(tasks, call, workers=1))


def test_every_half_a_minute_a_line_says_how_far_the_step_is(library, caplog):
    progress = attempts_of(library, further=lambda: "whole backfill: more").progress
    progress.begin(20)
    with caplog.at_level(logging.INFO, LOG.name):
        for _ in range(20):
            library.clock.advance(seconds=6)
            with library.services.gate.slot("douban"):
                pass
            progress.note(library.clock.now())
    lines = [record.getMessage() for record in caplog.records]
    assert lines[1::2] == ["whole backfill: more"] * 4
    told = "9.8 a minute; allowance used: douban 98%"
    assert [line.split("; ends")[0] for line in lines[::2]] == [
        f"search: {done} done, {20 - done} left; {told}" for done in (5, 10, 15, 20)
    ]


def test_gates_that_cannot_be_read_stop_nobody(library, caplog):
    def unreadable():
        raise GateUnreadable("gate", "broken")

    with caplog.at_level(logging.WARNING, LOG.name):
        assert len(work(library, attempts_of(library, gates=unreadable), 3, seconds=20)) == 3
    assert "the allowance used is not known" in caplog.text


@pytest.mark.parametrize(("scope", "left"), [(DueScope.due, 2), (DueScope.unmatched, 3), (DueScope.everything, 4)])
def test_a_backfill_is_followed_over_all_shards_and_runs(library, scope, left):
    began = library.clock.now()
    library.clock.advance(seconds=240)
    now = library.clock.now()
    later, before, since = now + 60 * MINUTE, began - 60 * MINUTE, began + MINUTE
    for vod_id, visit, last, status in (
        (1, before, None, "NOT_FOUND"),
        (2, before, before, "NOT_FOUND"),
        (3, later, before, "REVIEW"),
        (4, later, before, "CONFIRMED"),
        (5, later, since, "NOT_FOUND"),
        (6, later, before, "IGNORED"),
    ):
        visits = {"douban_next_sync_at": visit, "douban_last_sync_at": last}
        library.add_states({"vod_id": vod_id, "douban_review_status": status, **visits})
    queue = library.queue()
    library.enqueue(queue, [NewTask(n, TaskType.MATCH_DOUBAN_ID, TaskStage.SEARCH) for n in (5, 6)])
    for task in queue.lease(range(SHARDS), TaskStage.SEARCH, limit=2):
        run_transaction(library.engine, partial(queue.finish, task_id=task.task_id, status=TaskStatus.SUCCESS))
    line = backfill_line(library.services, scope, began)
    assert line.startswith(f"whole backfill: 2 done, {left} left; 0.5 a minute; ends about 2026-03-01")
