"""Each way a launch is lost, provoked with Dagster's own processes, and what people are then told."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dagster as dg
import pytest
import yaml
from sqlalchemy.exc import OperationalError

from douban_pipeline.dagster_kit.runs import was_launched_again
from douban_pipeline.douban.reports.health.causes import Cause
from douban_pipeline.douban.reports.health.sensors import causes_of
from douban_pipeline_tests.harness.fixtures.held_location import AT_WORK, FOLDER, JOB, LOADING, OP, WORKING
from douban_pipeline_tests.harness.rig.dagster_stack import PROJECT, DagsterStack
from douban_pipeline_tests.harness.rig.postgres_server import PostgresServer
from douban_pipeline_tests.harness.rig.processes import RigError
from douban_pipeline_tests.harness.rig.waiting import wait_for

pytestmark = pytest.mark.long

SECONDS = 180.0
UI = "http://dagster.example"
MODULE = "douban_pipeline_tests.harness.fixtures.held_location"
LOCATION = "held"
CONFIG = {"ops": {OP: {"config": {"reviewer": "小王"}}}}
TERMINATE = "mutation Stop($id: String!) { terminateRun(runId: $id) { __typename } }"


@dataclass(frozen=True)
class World:
    """Dagster's processes over a PostgreSQL of their own, with a job that waits where it is told to."""

    stack: DagsterStack
    postgres: PostgresServer
    folder: Path

    def hold(self, *names: str) -> None:
        """Let the job wait there, and nowhere else."""
        for name in (LOADING, WORKING, AT_WORK):
            (self.folder / name).unlink(missing_ok=True)
        for name in names:
            (self.folder / name).touch()

    def launch(self, **tags: str) -> str:
        """Launch the job as the UI does."""
        return self.stack.launch(JOB, config=CONFIG, tags={name.replace("__", "/"): tags[name] for name in tags})

    def launch_and_wait_for_work(self, **tags: str) -> str:
        """Launch it, and return once its step has begun."""
        self.hold(WORKING)
        run_id = self.launch(**tags)
        assert wait_for((self.folder / AT_WORK).exists, seconds=SECONDS)
        return run_id

    def ended(self, run_id: str) -> str:
        """Wait until a run has ended; return its status."""
        with self.stack.instance() as instance:  # once: opening it takes as long as Dagster's processes need to work

            def status() -> str | None:
                run = instance.get_run_by_id(run_id)
                return run.status.value if run is not None and run.is_finished else None

            found = wait_for(status, seconds=SECONDS)
        assert found is not None
        return found

    def worker(self, run_id: str, *, starting: bool = False) -> Any:
        """Return the process at work on a run."""
        found = wait_for(lambda: self.stack.run_workers(starting=starting).get(run_id), seconds=SECONDS)
        assert found is not None
        return found

    def told(self, run_id: str) -> Cause:
        """Return what people are told of a run that failed."""
        with self.stack.instance() as instance:

            def failures() -> list[dg.DagsterEvent]:
                records = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.RUN_FAILURE).records
                return [event for record in records if (event := record.event_log_entry.dagster_event) is not None]

            # A run that is interrupted may note that it was cancelled before the daemon notes why.
            found = wait_for(failures, seconds=SECONDS)
            assert found is not None
            run = instance.get_run_by_id(run_id)
            assert run is not None
            [cause] = causes_of(instance, run, found[0], ui_url=UI, recorded=lambda _: "已记录 3 条决定")
        return cause

    def launches_succeed(self) -> bool:
        """Return whether the location is back."""
        self.hold()
        try:
            return self.ended(self.launch()) == "SUCCESS"
        except RigError:
            return False

    @contextmanager
    def monitoring(self, **changes: int) -> Iterator[None]:
        """Have the daemon look after runs with other limits."""
        path = self.stack.home / "dagster.yaml"
        before = path.read_text()
        written = yaml.safe_load(before)
        written["run_monitoring"] |= changes
        self.stack.daemon.stop()
        path.write_text(yaml.safe_dump(written))
        self.stack.daemon.start()
        try:
            yield
        finally:
            self.stack.daemon.stop()
            path.write_text(before)
            self.stack.daemon.start()


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with ExitStack() as closing:
        # Not below the folder of the tests, which other sessions close to the account of PostgreSQL.
        folder = Path(closing.enter_context(TemporaryDirectory(prefix="tests-lost-runs-", ignore_cleanup_errors=True)))
        postgres = closing.enter_context(PostgresServer(folder / "postgres"))
        patched = closing.enter_context(pytest.MonkeyPatch.context())
        for name in ("HOST", "PORT", "DB", "USERNAME", "PASSWORD"):
            patched.setenv(f"DAGSTER_PG_{name}", os.environ.get(f"DAGSTER_PG_{name}", ""))
        patched.setenv("DAGSTER_HOME", os.environ.get("DAGSTER_HOME", ""))
        held = folder / "held"
        held.mkdir()
        written = yaml.safe_load((PROJECT / "deploy" / "dagster.yaml").read_text())
        stack = DagsterStack(
            folder / "dagster",
            {FOLDER: str(held), "PYTHONPATH": str(PROJECT)},
            locations={LOCATION: MODULE},
            pools={},
            server=postgres.url,
            changes={"run_monitoring": {**written["run_monitoring"], "poll_interval_seconds": 1}},
        )
        yield World(closing.enter_context(stack), postgres, held)


@pytest.fixture(autouse=True)
def let_go(world: World) -> Iterator[None]:
    yield
    world.hold()


def test_launches_succeed_after_the_database_was_restarted(world: World):
    """The webserver keeps connections: one from before the restart must not cost anybody a launch."""
    world.hold()
    assert world.ended(world.launch()) == "SUCCESS"
    world.postgres.restart()
    assert [world.ended(world.launch()) for _ in range(2)] == ["SUCCESS"] * 2


def not_begun(cause: Cause, run_id: str) -> bool:
    """Return whether people are told to launch it again, with the link, as nothing was done."""
    assert cause.title == f"没有执行，请重新启动：{JOB}"
    link = f"{UI}/locations/__repository__@{LOCATION}/jobs/{JOB}/playground/setup-from-run/{run_id}"
    assert cause.detail.splitlines()[0] == f"没有执行，请重新启动：{link}"
    assert run_id in cause.name, "each launch is told of"
    return "不必" not in cause.detail


def broken_off(cause: Cause, run_id: str) -> bool:
    """Return whether people are told to launch it again, with the link and what was recorded."""
    assert cause.title == f"没有做完，请重新启动：{JOB}"
    link = f"{UI}/locations/__repository__@{LOCATION}/jobs/{JOB}/playground/setup-from-run/{run_id}"
    assert cause.detail.splitlines()[0] == f"没有做完（已记录 3 条决定），请重新启动：{link}"
    return "不必" not in cause.detail


def test_a_run_that_takes_too_long_to_start(world: World):
    world.hold(LOADING)
    with world.monitoring(start_timeout_seconds=2):
        run_id = world.launch()
        assert world.ended(run_id) == "FAILURE"
    cause = world.told(run_id)
    assert not_begun(cause, run_id)
    assert "没能在限定的时间内启动" in cause.detail
    assert "内存" not in cause.detail

    world.hold()
    with world.stack.instance() as instance:

        def passed_by() -> bool:
            logs = instance.all_logs(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT)
            return any("started after the run had already finished" in (entry.message or "") for entry in logs)

        assert wait_for(passed_by, seconds=SECONDS), "nothing is done of it afterwards"
    assert not (world.folder / AT_WORK).exists()


@pytest.mark.parametrize("begun", [False, True])
def test_a_process_that_is_killed(world: World, begun: bool):
    if begun:
        run_id = world.launch_and_wait_for_work()
    else:
        world.hold(LOADING)
        run_id = world.launch()
    world.worker(run_id, starting=not begun).kill()
    assert world.ended(run_id) == "FAILURE"
    cause = world.told(run_id)
    assert (broken_off if begun else not_begun)(cause, run_id)
    assert "SIGKILL" in cause.detail


def test_a_run_that_a_person_cancels_is_no_failure(world: World):
    run_id = world.launch_and_wait_for_work()
    world.stack.ask(TERMINATE, {"id": run_id})
    assert world.ended(run_id) == "CANCELED"
    with world.stack.instance() as instance:
        assert not instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.RUN_FAILURE).records


def test_a_run_that_exceeds_the_longest_time(world: World):
    run_id = world.launch_and_wait_for_work(dagster__max_runtime="1")
    cause = world.told(run_id)
    assert broken_off(cause, run_id)
    assert "超过了允许的最长时间" in cause.detail


def gone_before_the_run_is_handed_over(world: World) -> str:
    """Return a run that waited in the queue while its code server was stopped."""
    world.hold()
    world.stack.daemon.stop()
    run_id = world.launch()
    world.stack.code.stop()
    world.stack.daemon.start()
    return run_id


def gone_with_the_run(world: World) -> str:
    """Return a run whose process was killed together with its code server: nobody is left to notice."""
    run_id = world.launch_and_wait_for_work(dagster__max_runtime="1")
    for process in world.stack.code.family():
        process.kill()
    return run_id


@pytest.mark.parametrize(
    ("provoke", "told", "reason"),
    [
        (gone_before_the_run_is_handed_over, not_begun, "代码服务没有应答"),
        (gone_with_the_run, broken_off, "早已不在"),
    ],
)
def test_a_code_server_that_is_gone(
    world: World, provoke: Callable[[World], str], told: Callable[[Cause, str], bool], reason: str
):
    try:
        run_id = provoke(world)
        assert world.ended(run_id) == "FAILURE"
    finally:
        world.stack.code.stop()
        world.stack.code.start()
        assert wait_for(world.launches_succeed, seconds=SECONDS)
    cause = world.told(run_id)
    assert told(cause, run_id)
    assert reason in cause.detail
    with world.stack.instance() as instance:
        assert was_launched_again(instance, run_id), "the launch that followed had the same config"


def test_the_database_lost_while_a_launch_is_handed_over(world: World):
    """A webserver without the options of the units: its connection to the event log broke since it was last used."""
    world.hold()
    first = world.launch()
    assert world.ended(first) == "SUCCESS"
    with world.stack.instance() as instance:
        instance.optimize_for_webserver(statement_timeout=15_000, pool_recycle=3600, max_overflow=20)
        template = instance.get_run_by_id(first)
        assert template is not None
        instance.all_logs(first)
        run_id = str(uuid.uuid4())
        world.postgres.restart()
        with suppress(OperationalError):
            instance.get_run_by_id(first)  # the runs are reached by a connection of their own
        instance.add_run(template._replace(run_id=run_id, status=dg.DagsterRunStatus.NOT_STARTED))
        with pytest.raises(OperationalError, match=r"server closed the connection|terminating connection"):
            instance.submit_run(run_id, workspace=None)  # type: ignore[arg-type]
    assert world.ended(run_id) == "FAILURE"
    cause = world.told(run_id)
    assert not_begun(cause, run_id)
    assert "PostgreSQL" in cause.detail
    assert "内存" not in cause.detail
