"""``kill -9`` of a run at any point, then a rerun: nothing is lost, nothing is doubled, log and CMS agree."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import func, select

from douban_pipeline.core.database import reading
from douban_pipeline.demo.cms_schema import default_types
from douban_pipeline.demo.library import create_library
from douban_pipeline.demo.sample import cms_columns, load_subjects, load_videos
from douban_pipeline.douban.chain.due.intake import Intake
from douban_pipeline.douban.definitions import build_defs
from douban_pipeline.douban.jobs import CHAIN, shard_range_tags
from douban_pipeline.douban.services import Services, open_services
from douban_pipeline.douban.settings import PREFIX, Settings, load_settings
from douban_pipeline.douban.store import migrations
from douban_pipeline.douban.store.states import ChangeState, ReviewStatus
from douban_pipeline.douban.store.task_queue import TaskQueue
from douban_pipeline.douban.store.tasks import OPEN
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.changes import decode
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.harness.fixtures.library import processes
from douban_pipeline_tests.stand_ins.replay import ReplayServer

LAST_SHARD = 3
"""Four shards are enough to have several in one run."""

SAMPLE = [
    video
    for video in load_videos()
    if video["expect"] in ("CONFIRMED", "SYNCED") and video["vod_id"] % 64 <= LAST_SHARD
]


def doomed_run(environment: dict[str, str], passed: Connection) -> None:
    """Run the chain over the shards as a process of its own does, sending each point's name when it is passed."""
    os.environ.update(environment)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # Dagster logs every event

    def report(owner: Any, name: str, before: str, after: str) -> None:
        real = getattr(owner, name)

        def reporting(*arguments: Any, **options: Any) -> Any:
            if before:
                passed.send(before)
            result = real(*arguments, **options)
            if after:
                passed.send(after)
            return result

        setattr(owner, name, reporting)

    report(ChangeLog, "_apply", "prepared", "written")
    report(ChangeLog, "_settle", "", "settling")
    report(TaskQueue, "advance", "", "advanced")
    report(TaskQueue, "finish", "", "finished")
    build_defs().get_repository_def().get_job(CHAIN).execute_in_process(
        instance=dg.DagsterInstance.ephemeral(), tags=shard_range_tags(0, LAST_SHARD)
    )
    passed.close()


@pytest.fixture(scope="module")
def upstream() -> Iterator[ReplayServer]:
    with ReplayServer(load_subjects()) as server:
        yield server


@pytest.fixture
def services(
    database_url: str, upstream: ReplayServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Services]:
    for name, value in {
        "HOME": str(tmp_path),
        "DATABASE_URL": database_url,
        "DOUBAN_URL": upstream.douban_url,
        "SEARCH_URL": upstream.search_url,
        "DOUBAN_REQUESTS_PER_MINUTE": "60000",
        "SEARCH_REQUESTS_PER_MINUTE": "60000",
        "DRY_RUN": "false",
    }.items():
        monkeypatch.setenv(PREFIX + name, value)
    opened = open_services(load_settings())
    now = int(datetime.now(UTC).timestamp())
    rows = [{**cms_columns(video), "vod_time": now} for video in SAMPLE]
    create_library(opened.engine, rows, default_types())
    migrations.tree_of("mac_").upgrade(opened.engine)
    Intake(opened.engine, opened.tables, opened.cms, opened.clock).initialise(spread=False)
    yield opened
    opened.close()


def run_until_killed(point: str, times: int) -> None:
    """Run the chain in a process of its own and kill it when it has passed ``point`` ``times`` times."""
    environment = {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
    context = processes()
    received, sent = context.Pipe(duplex=False)
    process = context.Process(target=doomed_run, args=(environment, sent))
    process.start()
    sent.close()
    try:
        while times:
            assert received.poll(120), "the run is stuck"
            times -= received.recv() == point
    except EOFError:
        pytest.fail(f"the run ended before it passed {point}")
    finally:
        process.kill()
        process.join(timeout=60)
        received.close()
    assert process.exitcode == -9
    process.close()


def run_to_the_end(settings: Settings) -> None:
    # On a clock that waits in no time: the killed run's places are taken for as long as its calls might have lasted.
    services = open_services(settings, FakeClock(datetime.now(UTC)))
    defs = build_defs(settings=settings, resource_overrides={"services": services})
    job = defs.get_repository_def().get_job(CHAIN)
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    with dg.DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(instance=instance, tags=shard_range_tags(0, LAST_SHARD), run_config=quiet)
    services.close()
    assert result.success


POINTS = [
    ("advanced", 3),  # candidates found, not judged
    ("advanced", len(SAMPLE) + 2),  # in the middle of judging
    ("prepared", 1),  # logged, not written
    ("written", 1),  # written, not settled
    ("written", 7),
    ("settling", 1),  # within the transaction that settles
    ("finished", 2),  # within the transaction that closes tasks
]


@pytest.mark.parametrize(
    ("database_url", "point", "times"),
    [("sqlite", *point) for point in (*POINTS[:2], *POINTS[6:])]
    + [pytest.param("mariadb", *point, marks=pytest.mark.mariadb) for point in POINTS[2:6]],
    indirect=["database_url"],
)
def test_a_killed_run_loses_and_doubles_nothing(services: Services, point: str, times: int) -> None:
    run_until_killed(point, times)
    run_to_the_end(services.settings)

    log, task, video = services.tables.log, services.tables.task, services.tables.video
    with reading(services.engine) as connection:
        states = {state for (state,) in connection.execute(select(log.c.state).distinct())}
        assert states <= {ChangeState.APPLIED, ChangeState.ABANDONED}
        open_tasks = connection.execute(select(func.count()).select_from(task).where(task.c.status.in_(OPEN)))
        assert open_tasks.scalar_one() == 0
        unconfirmed = select(video.c.vod_id).where(video.c.douban_review_status != ReviewStatus.CONFIRMED)
        assert list(connection.execute(unconfirmed).scalars()) == []

        applied = connection.execute(
            select(log).where(log.c.state == ChangeState.APPLIED).order_by(log.c.change_id)
        ).mappings()
        written: dict[int, dict[str, object]] = {}
        for row in applied:
            columns = decode(row["new_values"])
            twice = set(columns) & set(written.get(row["vod_id"], {}))
            assert not twice, f"video {row['vod_id']}: {twice} written twice"
            written.setdefault(row["vod_id"], {}).update(columns)
        rows = services.cms.rows(connection, list(written))
        assert len(written) == len(SAMPLE)
        for vod_id, columns in written.items():
            assert {column: rows[vod_id][column] for column in columns} == columns
