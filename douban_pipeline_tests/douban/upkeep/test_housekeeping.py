"""History is cleared away after its days, and not before."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import dagster as dg
import pytest
import sqlalchemy as sa

from douban_pipeline.douban.store.states import TaskStage, TaskStatus, TaskType
from douban_pipeline.douban.store.tasks import NewTask
from douban_pipeline.douban.upkeep.housekeeping import HEALTH_DAYS, HEALTH_TAGS, clear_away
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import Library, build_library, video


@pytest.fixture
def library(sqlite_url: str) -> Iterator[Library]:
    with build_library(sqlite_url, [video(1), video(2), video(3)]) as library:
        yield library


@dg.job
def short() -> None:
    """A run that is over at once."""


def test_finished_runs_go_with_their_events_after_their_days(library: Library) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        old = short.execute_in_process(instance=instance).run_id
        under_way = instance.create_run_for_job(short, status=dg.DagsterRunStatus.STARTED).run_id
        stored = instance.get_run_record_by_id(old)
        assert stored is not None
        library.clock.advance(seconds=(stored.update_timestamp - library.clock.now()).total_seconds())
        library.clock.advance(days=29)
        assert clear_away(library.services, instance, keep_run="").runs == 0
        library.clock.advance(days=2)
        assert clear_away(library.services, instance, keep_run=old).runs == 0
        assert clear_away(library.services, instance, keep_run="").runs == 1
        assert instance.get_run_by_id(old) is None
        assert not instance.all_logs(old)
        assert instance.get_run_by_id(under_way) is not None


def test_runs_that_only_look_at_health_go_sooner(library: Library) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        plain = short.execute_in_process(instance=instance).run_id
        brief = short.execute_in_process(instance=instance, tags=HEALTH_TAGS).run_id
        stored = instance.get_run_record_by_id(brief)
        assert stored is not None
        library.clock.advance(seconds=(stored.update_timestamp - library.clock.now()).total_seconds())
        library.clock.advance(days=HEALTH_DAYS - 1)
        assert clear_away(library.services, instance, keep_run="").runs == 0
        library.clock.advance(days=1, seconds=1)
        assert clear_away(library.services, instance, keep_run="").runs == 1
        assert (instance.get_run_by_id(brief), instance.get_run_by_id(plain) is None) == (None, False)


def test_closed_tasks_go_after_their_days_and_open_ones_stay(library: Library) -> None:
    queue = library.queue()
    library.enqueue(queue, [NewTask(vod_id, TaskType.MATCH_DOUBAN_ID, TaskStage.SEARCH) for vod_id in (1, 2, 3)])
    with library.engine.begin() as connection:
        queue.finish(connection, 1, TaskStatus.SUCCESS)
    library.clock.advance(days=20)
    with library.engine.begin() as connection:
        queue.finish(connection, 2, TaskStatus.SKIP)
    library.clock.advance(days=10, seconds=1)
    with dg.DagsterInstance.ephemeral() as instance:
        assert clear_away(library.services, instance, keep_run="").tasks == 1
    assert {task["task_id"] for task in library.tasks()} == {2, 3}
    assert timedelta(days=library.settings.history_days) == timedelta(days=30)


def test_alerts_that_ended_go_after_their_days_and_those_that_last_stay(library: Library) -> None:
    alert = library.tables.alert
    plain = {"kind": "gate", "title": "t", "first_at": START, "last_at": START}
    rows = [
        {"cause": "ended", "open_key": None, "ended_at": START, **plain},
        {"cause": "lasts", "open_key": "lasts", "ended_at": None, **plain},
    ]
    library.insert(alert, rows)
    with dg.DagsterInstance.ephemeral() as instance:
        library.clock.advance(days=29)
        assert clear_away(library.services, instance, keep_run="").alerts == 0
        library.clock.advance(days=2)
        assert clear_away(library.services, instance, keep_run="").alerts == 1
    assert [row["cause"] for row in library.query(sa.select(alert))] == ["lasts"]
