"""History is cleared away after its days, and not before."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import dagster as dg
import pytest
import sqlalchemy as sa

from douban_pipeline.douban.store.states import TaskStage, TaskStatus, TaskType
from douban_pipeline.douban.store.tasks import NewTask
from douban_pipeline.douban.upkeep.closed_rows import DeletedRows, delete_closed
from douban_pipeline.douban.upkeep.jobs import HEALTH_DAYS, HEALTH_TAGS, HISTORY_DAYS, jobs
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import Library, build_library, video
from douban_pipeline_tests.harness.fixtures.locations import add_run


@pytest.fixture
def library(sqlite_url: str) -> Iterator[Library]:
    with build_library(sqlite_url, [video(1), video(2), video(3)]) as library:
        yield library


@dg.job
def short() -> None:
    """A run that is over at once."""


def prune(library: Library, instance: dg.DagsterInstance) -> dict[str, object]:
    """Run the job `prune_history`; return what it says it deleted."""
    definitions = dg.Definitions(jobs=jobs, resources={"services": library.services})
    job = definitions.get_repository_def().get_job("prune_history")
    result = job.execute_in_process({"ops": {"prune": {"config": {"dry_run": False}}}}, instance=instance)
    [event] = [event for event in result.all_events if event.event_type_value == "STEP_OUTPUT"]
    return {name: value.value for name, value in event.step_output_data.metadata.items()}


def set_clock(library: Library, instance: dg.DagsterInstance, run_id: str) -> None:
    """Let it be the time at which a run ended."""
    stored = instance.get_run_record_by_id(run_id)
    assert stored is not None
    library.clock.advance(seconds=(stored.update_timestamp - library.clock.now()).total_seconds())


def test_finished_runs_go_with_their_events_after_their_days_and_the_run_itself_stays(library: Library) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        old = short.execute_in_process(instance=instance).run_id
        under_way = instance.create_run_for_job(short, status=dg.DagsterRunStatus.STARTED).run_id
        theirs = add_run(instance, short, location="feeds", status=dg.DagsterRunStatus.SUCCESS).run_id
        set_clock(library, instance, old)
        library.clock.advance(days=29)
        assert prune(library, instance)["runs"] == 0
        library.clock.advance(days=2)
        assert prune(library, instance)["runs"] == 2  # one is the pruning before
        assert instance.get_run_by_id(old) is None
        assert not instance.all_logs(old)
        assert instance.get_run_by_id(under_way) is not None
        assert instance.get_run_by_id(theirs) is not None


def test_runs_that_only_look_at_health_go_sooner(library: Library) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        plain = short.execute_in_process(instance=instance).run_id
        brief = short.execute_in_process(instance=instance, tags=HEALTH_TAGS).run_id
        set_clock(library, instance, brief)
        library.clock.advance(days=HEALTH_DAYS - 1)
        assert prune(library, instance)["runs"] == 0
        library.clock.advance(days=1, seconds=1)
        assert prune(library, instance)["runs"] == 1
        assert (instance.get_run_by_id(brief), instance.get_run_by_id(plain) is None) == (None, False)


def deleted(library: Library) -> DeletedRows:
    before = library.clock.now() - timedelta(days=HISTORY_DAYS)
    return delete_closed(library.engine, library.tables, before)


def test_closed_tasks_go_after_their_days_and_open_ones_stay(library: Library) -> None:
    queue = library.queue()
    library.enqueue(queue, [NewTask(vod_id, TaskType.MATCH_DOUBAN_ID, TaskStage.SEARCH) for vod_id in (1, 2, 3)])
    queue.lease([1, 2], TaskStage.SEARCH, limit=2)
    with library.engine.begin() as connection:
        queue.finish(connection, 1, TaskStatus.SUCCESS)
    library.clock.advance(days=20)
    with library.engine.begin() as connection:
        queue.finish(connection, 2, TaskStatus.SKIP)
    library.clock.advance(days=10, seconds=1)
    assert deleted(library).tasks == 1
    assert {task["task_id"] for task in library.tasks()} == {2, 3}


def test_alerts_that_ended_go_after_their_days_and_those_that_last_stay(library: Library) -> None:
    alert = library.tables.alert
    plain = {"kind": "gate", "title": "t", "first_at": START, "last_at": START}
    rows = [
        {"cause": "ended", "open_key": None, "ended_at": START, **plain},
        {"cause": "lasts", "open_key": "lasts", "ended_at": None, **plain},
    ]
    library.insert(alert, rows)
    library.clock.advance(days=29)
    assert deleted(library).alerts == 0
    library.clock.advance(days=2)
    assert deleted(library).alerts == 1
    assert [row["cause"] for row in library.query(sa.select(alert))] == ["lasts"]
