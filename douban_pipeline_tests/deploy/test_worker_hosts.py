"""Hosts of workers: which are refused, and two real workers over Redis and RabbitMQ, one of which may be killed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import psutil
import pytest
import yaml
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.launcher import LaunchRunContext, WorkerStatus
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG
from sqlalchemy import select

from douban_pipeline.core.database import reading
from douban_pipeline.dagster_kit.worker_host import WorkerHostError, check_host, check_worker_host, locations
from douban_pipeline.demo.cms_schema import default_types
from douban_pipeline.demo.library import create_library
from douban_pipeline.demo.sample import cms_columns, load_subjects, load_videos
from douban_pipeline.douban.chain.due.intake import Intake
from douban_pipeline.douban.definitions import build_defs
from douban_pipeline.douban.jobs import CHAIN, shard_range_tags
from douban_pipeline.douban.services import Services, open_services
from douban_pipeline.douban.settings import PREFIX, load_settings
from douban_pipeline.douban.store import migrations
from douban_pipeline.douban.store.states import TaskStatus
from douban_pipeline_tests.conftest import missing
from douban_pipeline_tests.harness.rig.celery_workers import PROJECT, RABBITMQ, REDIS, CeleryWorkers, broker_url
from douban_pipeline_tests.harness.rig.processes import RigError
from douban_pipeline_tests.harness.rig.waiting import wait_for
from douban_pipeline_tests.stand_ins.replay import ReplayServer

# --- the host of a worker


@dataclass
class Ahead:
    """A clock that is ahead of the machine's."""

    seconds: float

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.seconds)

    def sleep(self, seconds: float) -> None: ...


@pytest.fixture
def library(mariadb_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    """The sample's videos of the first eight shards that can be confirmed, taken in and due."""
    monkeypatch.setenv(PREFIX + "HOME", str(tmp_path))
    monkeypatch.setenv(PREFIX + "DATABASE_URL", mariadb_url)
    opened = open_services(load_settings())
    now = int(datetime.now(UTC).timestamp())
    wanted = [video for video in load_videos() if video["expect"] == "CONFIRMED" and video["vod_id"] % 64 < SHARDS]
    create_library(opened.engine, [{**cms_columns(video), "vod_time": now} for video in wanted], default_types())
    migrations.tree_of("mac_").upgrade(opened.engine)
    Intake(opened.engine, opened.tables, opened.cms, opened.clock).initialise(spread=False)
    yield opened
    opened.close()


SHARDS, PER_RUN = 8, 2


@pytest.mark.mariadb
def test_a_host_with_another_clock_or_release_is_refused(library: Services) -> None:
    assert check_worker_host(library.engine, library.clock, library.ready) == []
    [warning] = check_worker_host(library.engine, Ahead(2), library.ready)
    assert "2.0 s ahead" in warning
    with pytest.raises(WorkerHostError, match="behind the database's"):
        check_worker_host(library.engine, Ahead(-30), library.ready)
    with library.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE mac_douban_version SET version_num = '9999'")
    with pytest.raises(WorkerHostError, match="the newest version of this release"):
        check_worker_host(library.engine, library.clock, library.ready)


def test_a_library_that_other_hosts_cannot_reach_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + "HOME", str(tmp_path))
    with pytest.raises(WorkerHostError, match="SQLite"):
        check_host()
    monkeypatch.setenv(PREFIX + "SYSTEMS", "feeds")
    assert locations() == ["douban_pipeline.locations.feeds"]
    with pytest.raises(WorkerHostError, match=r"feeds\.sqlite"):
        check_host()


# --- two workers


@dataclass
class Host:
    """An instance on this machine, without daemon and webserver: the test launches the runs itself."""

    home: Path
    environment: dict[str, str]


REQUESTS_PER_MINUTE = 600
LONG = 600.0
"""Seconds after which something that should happen will not; machines that run tests may be very busy."""
NAMES = ("first", "second")


@dataclass
class TwoWorkers:
    """Two workers, the instance that hands runs to them, and the upstream that these ask."""

    workers: CeleryWorkers
    instance: dg.DagsterInstance
    upstream: ReplayServer


@contextmanager
def two_workers(
    broker: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, silent_seconds: int = 90
) -> Iterator[TwoWorkers]:
    """Start them as on two hosts; what became of tasks is kept in Redis, whichever broker it is."""
    try:
        workers = CeleryWorkers(broker_url(broker), broker_url(REDIS), silent_seconds=silent_seconds)
    except RigError as error:
        if broker is RABBITMQ:
            pytest.skip(str(error))
        missing("redis", str(error))
    home = tmp_path / "dagster"
    home.mkdir()
    # SQLite in place of PostgreSQL, since all are on this machine; nobody reads what the runs print.
    silent = {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}
    own = yaml.safe_load((PROJECT / "dagster.yaml").read_text())
    (home / "dagster.yaml").write_text(yaml.safe_dump({**own, **workers.changes, "compute_logs": silent}))
    with ReplayServer(load_subjects()) as upstream, workers:
        ours = {
            "DOUBAN_URL": upstream.douban_url,
            "SEARCH_URL": upstream.search_url,
            "DOUBAN_REQUESTS_PER_MINUTE": str(REQUESTS_PER_MINUTE),
            "SEARCH_REQUESTS_PER_MINUTE": str(REQUESTS_PER_MINUTE),
            "DRY_RUN": "false",
        }
        settings = {PREFIX + name: value for name, value in ours.items()}
        for name, value in {**settings, **workers.environment, "DAGSTER_HOME": str(home)}.items():
            monkeypatch.setenv(name, value)
        workers.start(Host(home, dict(os.environ)), *NAMES)
        with dg.DagsterInstance.from_config(str(home)) as instance:
            yield TwoWorkers(workers, instance, upstream)


@pytest.mark.mariadb
@pytest.mark.long
@pytest.mark.filterwarnings("ignore::celery.exceptions.DuplicateTaskNameWarning")  # Dagster's launcher, each time anew
@pytest.mark.parametrize("broker", [REDIS, RABBITMQ], ids=["redis", "rabbitmq"])
def test_two_workers_share_runs_and_limit_and_what_a_killed_one_held_is_done_by_the_other(
    broker: tuple[str, str], library: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with two_workers(broker, tmp_path, monkeypatch, silent_seconds=10) as two:
        instance, runs = two.instance, launch_all(two.instance)
        [killed] = wait_for(lambda: [run for run in runs if is_at_work(two, run, "first")], seconds=LONG) or [""]
        for process in two.workers.workers["first"].family():
            kill(process)
        others = [run for run in runs if run != killed]
        wait_for(lambda: all(ended(instance, run) for run in others), seconds=LONG, poll=0.5)
        assert {status_of(instance, run) for run in others} == {dg.DagsterRunStatus.SUCCESS}
        assert status_of(instance, killed) is dg.DagsterRunStatus.STARTED, "it ended before it was killed"
        # The daemon would fail it by this, and the due sensor ask for its shards again.
        dead = wait_for(lambda: health_of(instance, killed) is WorkerStatus.FAILED, seconds=LONG, poll=1.0)
        assert dead, "nobody noticed that its worker is dead"
        [again] = launch_all(instance, [runs.index(killed) * PER_RUN])
        wait_for(lambda: ended(instance, again), seconds=LONG, poll=0.5)
        assert status_of(instance, again) is dg.DagsterRunStatus.SUCCESS, two.workers.workers["second"].last_words()
        took = {name: len(two.workers.tasks_of(name)) for name in NAMES}
        asked = two.upstream.requests.describe()["douban"]
    assert sum(took.values()) > SHARDS // PER_RUN  # RabbitMQ delivers what the dead one held again
    assert min(took.values()) >= 1, took
    longest_hold_up = 1.0  # a call may be sent late, as many seconds as this before the next one's slot
    least = (asked["count"] - 1) * 60 / REQUESTS_PER_MINUTE - longest_hold_up
    assert max(asked["times"]) - min(asked["times"]) >= least
    assert_each_video_was_done_once(library)


def assert_each_video_was_done_once(library: Services) -> None:
    task, log = library.tables.task, library.tables.log
    with reading(library.engine) as connection:
        tasks = list(connection.execute(select(task.c.vod_id, task.c.status)))
        batches = list(connection.execute(select(log.c.vod_id, log.c.new_values)))
    assert {status for _, status in tasks} == {TaskStatus.SUCCESS}
    assert max(Counter(vod_id for vod_id, _ in tasks).values()) == 1
    assert max(Counter(map(str, batches)).values()) == 1, "a video was written twice"


def launch_all(instance: dg.DagsterInstance, shards: Sequence[int] = range(0, SHARDS, PER_RUN)) -> list[str]:
    """Hand runs of the chain to the launcher, as the daemon does with those of its queue; return their ids."""
    repository = ReconstructableRepository.for_module(
        "douban_pipeline.definitions", "defs", working_directory=os.getcwd()
    )
    job = build_defs().get_repository_def().get_job(CHAIN)
    origin = repository.get_reconstructable_job(CHAIN).get_python_origin()
    launched = []
    for first in shards:
        tags = shard_range_tags(first, first + PER_RUN - 1)
        run = instance.create_run_for_job(job, tags=tags, job_code_origin=origin)
        instance.run_launcher.launch_run(LaunchRunContext(run, workspace=None))
        launched.append(run.run_id)
    return launched


def run_of(instance: dg.DagsterInstance, run_id: str) -> dg.DagsterRun:
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return run


def ended(instance: dg.DagsterInstance, run_id: str) -> bool:
    return run_of(instance, run_id).is_finished


def status_of(instance: dg.DagsterInstance, run_id: str) -> dg.DagsterRunStatus:
    return run_of(instance, run_id).status


def health_of(instance: dg.DagsterInstance, run_id: str) -> WorkerStatus:
    return instance.run_launcher.check_run_worker_health(run_of(instance, run_id)).status


def is_at_work(two: TwoWorkers, run_id: str, worker: str) -> bool:
    run = run_of(two.instance, run_id)
    taken = run.tags.get(DAGSTER_CELERY_TASK_ID_TAG) in two.workers.tasks_of(worker)
    return taken and run.status is dg.DagsterRunStatus.STARTED


def kill(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        process.kill()
