"""Runs on other hosts: what deploy/celery and deploy/kubernetes say, and the launcher."""

from __future__ import annotations

import configparser
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
import typer.main
import yaml
from dagster._core.instance.ref import InstanceRef
from dagster._core.launcher import WorkerStatus
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG

from douban_pipeline.dagster_kit import celery_launcher
from douban_pipeline.dagster_kit.celery_launcher import WatchfulCeleryLauncher
from douban_pipeline.ops.cli import app
from douban_pipeline.serve.settings import ServeSettings
from douban_pipeline_tests.harness.rig.celery_workers import PROJECT

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
            prefix = ServeSettings.model_config["env_prefix"]
            known = {f"{prefix}{name}".upper() for name in ServeSettings.model_fields}
            assert {given["name"] for given in container.get("env", [])} <= known
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


@pytest.mark.filterwarnings("ignore::celery.exceptions.DuplicateTaskNameWarning")  # of launchers of other tests
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
