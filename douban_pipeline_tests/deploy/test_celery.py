"""Runs on other hosts: what deploy/celery and deploy/kubernetes say, the launcher, and two real workers over Redis."""

from __future__ import annotations

import configparser
import os
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
import typer.main
import yaml
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.instance.ref import InstanceRef
from dagster._core.launcher import LaunchRunContext, WorkerStatus
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG
from sqlalchemy import select

from douban_pipeline.core.database import reading
from douban_pipeline.dagster_kit import celery_launcher
from douban_pipeline.dagster_kit.celery_launcher import WatchfulCeleryLauncher
from douban_pipeline.dagster_kit.worker_host import WorkerHostError, check_worker_host
from douban_pipeline.demo.cms_schema import default_types
from douban_pipeline.demo.library import create_library
from douban_pipeline.demo.replay import ReplayServer
from douban_pipeline.demo.sample import cms_columns, load_subjects, load_videos
from douban_pipeline.douban.chain.due.intake import Intake
from douban_pipeline.douban.definitions import build_defs
from douban_pipeline.douban.jobs import CHAIN, shard_range_tags
from douban_pipeline.douban.services import Services, open_services
from douban_pipeline.douban.settings import PREFIX, load_settings
from douban_pipeline.douban.store import migrations
from douban_pipeline.douban.store.states import TaskStatus
from douban_pipeline.ops.cli import app
from douban_pipeline.ops.worker_hosts import check_host, locations
from douban_pipeline.serve.settings import ServeSettings
from douban_pipeline_tests.conftest import missing
from douban_pipeline_tests.harness.rig.celery_workers import PROJECT, REDIS, CeleryWorkers, broker_url
from douban_pipeline_tests.harness.rig.processes import RigError
from douban_pipeline_tests.harness.rig.waiting import wait_for

CELERY = PROJECT / "deploy" / "celery"
KUBERNETES = PROJECT / "deploy" / "kubernetes"
BROKER = {"DAGSTER_CELERY_BROKER": "redis://127.0.0.1:1/0", "DAGSTER_CELERY_BACKEND": "redis://127.0.0.1:1/0"}
POSTGRES = {f"DAGSTER_PG_{name}": "1" for name in ("USERNAME", "PASSWORD", "HOST", "PORT", "DB")}


def parsed(path: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_text()))


# --- what the files say


def test_dagster_accepts_the_configuration_and_launches_by_our_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**BROKER, **POSTGRES}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "dagster.yaml").write_bytes((CELERY / "dagster.yaml").read_bytes())
    launcher = InstanceRef.from_dir(str(tmp_path)).run_launcher
    assert isinstance(launcher, WatchfulCeleryLauncher)
    settings = launcher.celery.conf
    assert settings.task_acks_late
    assert settings.worker_prefetch_multiplier == 1
    assert settings.worker_max_tasks_per_child == 1
    assert [queue.name for queue in settings.task_queues] == ["douban"]


def test_it_differs_from_one_machine_in_who_runs_and_how_a_run_is_watched_alone() -> None:
    here, one_machine = parsed(CELERY / "dagster.yaml"), parsed(PROJECT / "deploy" / "dagster.yaml")
    launcher, watching = here.pop("run_launcher"), here.pop("run_monitoring")
    watched_there = one_machine.pop("run_monitoring")
    assert here == one_machine
    own = {"start_timeout_seconds": 600, "max_resume_run_attempts": 0}
    assert watching == {**watched_there, **own}
    redelivered_after = launcher["config"]["config_source"]["broker_transport_options"]["visibility_timeout"]
    assert redelivered_after > 2 * watching["max_runtime_seconds"], "Redis would hand a run out twice"


def test_the_unit_lets_runs_end_before_it_kills() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string((CELERY / "douban-pipeline-worker@.service").read_text())
    service = unit["Service"]
    assert service["KillMode"] == "mixed", "runs must not get the signal that is meant for the worker"
    longest = parsed(CELERY / "dagster.yaml")["run_monitoring"]["max_runtime_seconds"]
    assert int(service["TimeoutStopSec"]) > longest
    assert "-A douban_pipeline.ops.celery_app worker" in service["ExecStart"]


def test_the_charts_values_hold_to_the_limits_of_one_machine() -> None:
    values, one_machine = parsed(KUBERNETES / "values.yaml"), parsed(PROJECT / "deploy" / "dagster.yaml")
    daemon = values["dagsterDaemon"]
    queue = daemon["runCoordinator"]["config"]["queuedRunCoordinator"]
    runs = one_machine["concurrency"]["runs"]
    assert queue["tagConcurrencyLimits"] == runs["tag_concurrency_limits"]
    assert queue["maxConcurrentRuns"] == runs["max_concurrent_runs"]
    assert values["additionalInstanceConfig"]["concurrency"]["pools"] == one_machine["concurrency"]["pools"]
    assert daemon["runRetries"] == {"enabled": False}
    pod = values["runLauncher"]["config"]["k8sRunLauncher"]["runK8sConfig"]
    assert pod["jobSpecConfig"]["backoffLimit"] == 0
    assert pod["podSpecConfig"]["restartPolicy"] == "Never"


def test_the_clusters_objects_run_our_commands_with_the_images_secret_and_few_rights() -> None:
    texts = [(KUBERNETES / name).read_text(encoding="utf-8") for name in ("setup-job.yaml", "services.yaml")]
    objects = [item for text in texts for item in yaml.safe_load_all(text)]
    assert [item["kind"] for item in objects] == ["Job", "Deployment", "Service", "Deployment"]
    assert {item["metadata"]["namespace"] for item in objects} == {"douban"}
    commands = []
    for item in objects:
        if item["kind"] == "Service":
            labels = {pod["spec"]["selector"]["matchLabels"]["app"] for pod in objects if pod["kind"] == "Deployment"}
            assert item["spec"]["selector"]["app"] in labels
            continue
        [container] = item["spec"]["template"]["spec"]["containers"]
        commands.append(container["command"])
        assert container["image"] == "REGISTRY/douban-pipeline:RELEASE"
        assert container["envFrom"] == [{"secretRef": {"name": "douban-pipeline"}}]
        if item["kind"] == "Deployment":
            assert item["spec"]["selector"]["matchLabels"] == item["spec"]["template"]["metadata"]["labels"]
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            for given in container.get("env", []):
                assert given["name"].removeprefix(ServeSettings.model_config["env_prefix"]).lower() in (
                    ServeSettings.model_fields
                )
    assert commands == [["douban-pipeline", name] for name in ("setup", "serve", "comment-worker")]
    assert {command for _, command in commands} <= set(typer.main.get_command(app).commands)


def test_the_chart_has_every_location_and_compose_everything_that_the_celery_file_changes() -> None:
    deployed = parsed(KUBERNETES / "values.yaml")["dagster-user-deployments"]["deployments"]
    modules = {deployment["codeServerArgs"][1] for deployment in deployed}
    workspace = yaml.safe_load((PROJECT / "workspace.yaml").read_text(encoding="utf-8"))
    assert modules == {entry["python_module"]["module_name"] for entry in workspace["load_from"]}
    assert len({deployment["port"] for deployment in deployed}) == len(deployed)
    one_host, hosts = parsed(PROJECT / "deploy" / "compose.yaml"), parsed(CELERY / "compose.yaml")
    # Everything that runs our image has to know the same instance; Redis and the worker are the second file's own.
    ours = {name for name, service in one_host["services"].items() if service["image"] == "douban-pipeline:latest"}
    assert set(hosts["services"]) == ours | {"redis", "worker"}


# --- the launcher


@dataclass
class Result:
    """What the backend knows of a task."""

    state: str
    info: object = None


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[WatchfulCeleryLauncher, dict[str, Any]]]:
    """A launcher with 90 s of patience, and what it sees: `result` of every task, `now` on its clock."""
    world: dict[str, Any] = {"now": 1000.0, "result": Result("STARTED", {"beat": 1})}
    launcher = WatchfulCeleryLauncher(
        broker="redis://127.0.0.1:1/0", backend="redis://127.0.0.1:1/0", default_queue="q"
    )
    monkeypatch.setattr(launcher.celery, "AsyncResult", lambda _task_id: world["result"])
    monkeypatch.setattr(celery_launcher.time, "monotonic", lambda: world["now"])
    yield launcher, world
    launcher.celery.close()


RUN = dg.DagsterRun("job", tags={DAGSTER_CELERY_TASK_ID_TAG: "t"})


def test_a_run_is_alive_while_its_state_is_renewed_and_dead_after_silence(
    watched: tuple[WatchfulCeleryLauncher, dict[str, Any]],
) -> None:
    launcher, world = watched
    for beat in range(20):
        world["result"], world["now"] = Result("STARTED", {"beat": beat}), world["now"] + 80
        assert launcher.check_run_worker_health(RUN).status is WorkerStatus.RUNNING
    world["now"] += 89
    assert launcher.check_run_worker_health(RUN).status is WorkerStatus.RUNNING
    world["now"] += 1
    found = launcher.check_run_worker_health(RUN)
    assert found.status is WorkerStatus.FAILED
    assert "no sign of life" in str(found.msg)


def test_a_backend_that_forgot_the_task_gets_the_same_patience(
    watched: tuple[WatchfulCeleryLauncher, dict[str, Any]],
) -> None:
    launcher, world = watched
    assert launcher.check_run_worker_health(RUN).status is WorkerStatus.RUNNING
    world["result"] = Result("PENDING")
    assert launcher.check_run_worker_health(RUN).status is WorkerStatus.RUNNING
    world["result"] = Result("STARTED", {"beat": 9})
    assert launcher.check_run_worker_health(RUN).status is WorkerStatus.RUNNING


def test_a_task_that_failed_fails_its_run_at_once_and_one_not_noted_yet_does_not(
    watched: tuple[WatchfulCeleryLauncher, dict[str, Any]],
) -> None:
    launcher, world = watched
    world["result"] = Result("FAILURE", RuntimeError("worker lost"))
    found = launcher.check_run_worker_health(RUN)
    assert found.status is WorkerStatus.FAILED
    assert "worker lost" in str(found.msg)
    assert launcher.check_run_worker_health(dg.DagsterRun("job")).status is WorkerStatus.RUNNING


def test_a_run_at_work_renews_its_state_with_a_new_sign_each_time_and_survives_a_backend_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**BROKER, **POSTGRES, "DAGSTER_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "dagster.yaml").write_bytes((CELERY / "dagster.yaml").read_bytes())
    from douban_pipeline.dagster_kit.celery_app import Beat
    from douban_pipeline.ops.celery_app import app  # reads dagster.yaml

    stored: list[tuple[str, Any, str]] = []
    enough = threading.Event()

    def store_result(task_id: str, sign: Any, state: str) -> None:
        stored.append((task_id, sign, state))
        if len(stored) == 2:
            raise ConnectionError("the backend is away")
        if len(stored) == 4:
            enough.set()

    task = SimpleNamespace(backend=SimpleNamespace(store_result=store_result))
    beat = Beat(task, "t", seconds=0.001)
    beat.start()
    assert enough.wait(30)
    beat.stop()
    assert {(task_id, state) for task_id, _, state in stored} == {("t", "STARTED")}
    assert len({repr(sign) for _, sign, _ in stored}) == len(stored)
    assert {"execute_job", "resume_job"} <= set(app.tasks)


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
    migrations.upgrade(opened.engine, "mac_")
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
        connection.exec_driver_sql("UPDATE mac_douban_version SET version_num = '0001'")
    with pytest.raises(WorkerHostError, match="this release needs"):
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


@pytest.mark.mariadb
@pytest.mark.filterwarnings("ignore::celery.exceptions.DuplicateTaskNameWarning")  # Dagster's launcher, each time anew
def test_two_workers_share_runs_and_limit_and_do_nothing_twice(
    library: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        workers = CeleryWorkers(broker_url(REDIS))
    except RigError as error:
        missing("redis", str(error))
    home = tmp_path / "dagster"
    home.mkdir()
    # SQLite in place of PostgreSQL, since all are on this machine; nobody reads what the runs print.
    silent = {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}
    configuration = {**parsed(PROJECT / "dagster.yaml"), **workers.changes, "compute_logs": silent}
    (home / "dagster.yaml").write_text(yaml.safe_dump(configuration))
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
        workers.start(Host(home, {**os.environ, "PYTHONWARNINGS": "ignore"}), "first", "second")
        with dg.DagsterInstance.from_config(str(home)) as instance:
            runs = launch_all(instance)
            wait_for(lambda: all(ended(instance, run) for run in runs), seconds=150, poll=0.5)
            statuses = Counter(instance.get_run_by_id(run).status for run in runs)  # type: ignore[union-attr]
        assert statuses == {dg.DagsterRunStatus.SUCCESS: SHARDS // PER_RUN}, workers.workers["first"].last_words()
        asked = upstream.requests.describe()["douban"]
    took = {name: len(workers.tasks_of(name)) for name in ("first", "second")}
    assert sum(took.values()) == SHARDS // PER_RUN
    assert min(took.values()) >= 1, took

    task, log = library.tables.task, library.tables.log
    with reading(library.engine) as connection:
        tasks = list(connection.execute(select(task.c.vod_id, task.c.status)))
        batches = list(connection.execute(select(log.c.vod_id, log.c.new_values)))
    assert {status for _, status in tasks} == {TaskStatus.SUCCESS}
    assert max(Counter(vod_id for vod_id, _ in tasks).values()) == 1
    assert max(Counter(map(str, batches)).values()) == 1, "a video was written twice"
    assert max(Counter(asked["keys"]).values()) == 1, "a subject was asked for twice"
    longest_hold_up = 1.0  # a call may be sent late, as many seconds as this before the next one's slot
    least = (asked["count"] - 1) * 60 / REQUESTS_PER_MINUTE - longest_hold_up
    assert max(asked["times"]) - min(asked["times"]) >= least


def launch_all(instance: dg.DagsterInstance) -> list[str]:
    """Hand runs of the chain to the launcher, as the daemon does with those of its queue; return their ids."""
    repository = ReconstructableRepository.for_module(
        "douban_pipeline.definitions", "defs", working_directory=os.getcwd()
    )
    job = build_defs().get_repository_def().get_job(CHAIN)
    origin = repository.get_reconstructable_job(CHAIN).get_python_origin()
    launched = []
    for first in range(0, SHARDS, PER_RUN):
        tags = shard_range_tags(first, first + PER_RUN - 1)
        run = instance.create_run_for_job(job, tags=tags, job_code_origin=origin)
        instance.run_launcher.launch_run(LaunchRunContext(run, workspace=None))
        launched.append(run.run_id)
    return launched


def ended(instance: dg.DagsterInstance, run_id: str) -> bool:
    run = instance.get_run_by_id(run_id)
    return run is not None and run.is_finished
