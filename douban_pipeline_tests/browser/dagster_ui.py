"""`make dev` in a process of its own: started, asked over loopback, and stopped as a person stops it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.douban.settings import PREFIX
from douban_pipeline_tests.harness.fixtures.library import Library
from douban_pipeline_tests.harness.rig.dagster_stack import free_port

START_SECONDS = 600
STOP_SECONDS = 120
"""Seconds after which something that should happen will not; machines that run tests may be very busy."""
ASK_SECONDS = 30
POLL_SECONDS = 0.2
TOLD_CHARACTERS = 4_000

ENDED = ("SUCCESS", "FAILURE", "CANCELED")
LOCATIONS = """
{ workspaceOrError { ... on Workspace { locationEntries { name loadStatus locationOrLoadError {
    __typename ... on PythonError { message } } } } } }
"""
LAUNCH = """
mutation Launch($params: ExecutionParams!) { launchRun(executionParams: $params) {
    __typename ... on LaunchRunSuccess { run { id } } ... on PythonError { message } } }
"""
RUN = "query Run($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"
WHY = """
query Why($id: ID!) { runOrError(runId: $id) { ... on Run { eventConnection(limit: 1000) { events {
    ... on ErrorEvent { error { message } } } } } } }
"""

T = TypeVar("T")


def until(condition: Callable[[], T], seconds: float, report: Callable[[], str]) -> T:
    """Return what ``condition`` returns once it is true; fail with the ``report`` if it is not within ``seconds``."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, report()
        time.sleep(POLL_SECONDS)
    return value


@dataclass
class DagsterUi:
    """Dagster's UI on a demo library of its own.

    Attributes:
        url: Where it answers.
        home: The demo's folder.
        library: The demo's library.
        log: What the command printed.
        service: Where the service answers.
    """

    url: str
    home: Path
    library: Library
    log: Path
    service: str = ""

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """Return the answer to a GraphQL query."""
        with httpx.Client(trust_env=False, timeout=ASK_SECONDS) as client:
            answer = client.post(f"{self.url}/graphql", json={"query": query, "variables": variables})
        answer.raise_for_status()
        content = answer.json()
        assert not content.get("errors"), content["errors"]
        return dict(content["data"])

    def launch(self, job: str, tags: Mapping[str, str]) -> str:
        """Launch a job, and return its run's id."""
        selector = {
            "repositoryLocationName": "douban_pipeline",
            "repositoryName": "__repository__",
            "jobName": job,
        }
        metadata = {"tags": [{"key": key, "value": value} for key, value in tags.items()]}
        params = {"selector": selector, "mode": "default", "executionMetadata": metadata}
        result = self.ask(LAUNCH, params=params)["launchRun"]
        assert result["__typename"] == "LaunchRunSuccess", result
        return str(result["run"]["id"])

    def succeeds(self, run_id: str, seconds: float) -> None:
        """Wait until a run has ended, and see that it succeeded."""

        def status() -> str:
            return str(self.ask(RUN, id=run_id)["runOrError"]["status"])

        ended = until(
            lambda: found if (found := status()) in ENDED else "",
            seconds,
            lambda: f"run {run_id} has not ended within {seconds} s: {status()}\n{self.tail()}",
        )
        assert ended == "SUCCESS", f"run {run_id}: {ended}\n{self.errors(run_id)}\n{self.tail()}"

    def errors(self, run_id: str) -> str:
        """Return what a run says went wrong."""
        events = self.ask(WHY, id=run_id)["runOrError"]["eventConnection"]["events"]
        # A step that fails fails its run with the same words.
        return "\n".join(dict.fromkeys(event["error"]["message"] for event in events if event.get("error")))

    def tail(self) -> str:
        """Return the end of what the command printed."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-TOLD_CHARACTERS:]

    def is_loaded(self) -> bool:
        """Return whether the UI answers and has loaded the code location, or fail if that cannot be loaded."""
        try:
            entries = self.ask(LOCATIONS)["workspaceOrError"]["locationEntries"]
        except httpx.HTTPError:
            return False
        loaded = [entry["locationOrLoadError"] for entry in entries if entry["loadStatus"] == "LOADED"]
        broken = [entry["message"] for entry in loaded if entry and entry["__typename"] == "PythonError"]
        assert not broken, f"the code location does not load: {broken}"
        return bool(loaded)


@contextmanager
def run_dev(directory: Path, systems: str = "") -> Iterator[DagsterUi]:
    """Start `make dev`'s command in ``directory``; stop it with Ctrl-C in the end, and see that nothing is left of it.

    Args:
        directory: A scratch directory: the demo makes its library and Dagster's instance beneath the working directory.
        systems: Names of the systems to start, separated by commas; empty for all.
    """
    port, service_port = free_port(), free_port()
    log = directory / "dev.log"
    command = [sys.executable, "-m", "douban_pipeline", "dev", "--systems", systems]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("DAGSTER", PREFIX))}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--port", str(port), "--service-port", str(service_port)],
            cwd=directory,
            # The plan's profile leaves more of the sample to people than the default.
            env=inherited | {"PYTHONUNBUFFERED": "1", "LC_ALL": "C.UTF-8", f"{PREFIX}MATCH_PROFILE": "plan"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a process group, as a terminal's job has one
        )
    home = directory / ".douban_pipeline" / "demo"
    library = Library(f"sqlite:///{home / 'library.sqlite'}", clock=SystemClock())
    ui = DagsterUi(f"http://127.0.0.1:{port}", home, library, log, f"http://127.0.0.1:{service_port}")

    def left() -> list[str]:
        # What the command starts has sessions of its own, and works in the demo's folder.
        return [*members(process.pid), *at_work_in(directory)]

    def loaded() -> bool:
        assert process.poll() is None, f"the command ended with {process.returncode}\n{ui.tail()}"
        return ui.is_loaded() and "Everything answers: " in log.read_text(encoding="utf-8", errors="replace")

    try:
        until(loaded, START_SECONDS, lambda: f"the UI is not there within {START_SECONDS} s\n{ui.tail()}")
        yield ui
        os.killpg(process.pid, signal.SIGINT)
        until(
            lambda: process.poll() is not None and not left(),
            STOP_SECONDS,
            lambda: f"left behind after Ctrl-C: {left()}\n{ui.tail()}",
        )
    finally:
        if process.poll() is None:  # a test failed: what the command started ends with it, if it is asked
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
        for number in {int(each.split()[0]) for each in left()}:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        process.wait()
        library.engine.dispose()


def members(group: int) -> list[str]:
    """Return the processes of a process group that live, as far as the system tells (Linux does)."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            _, _, rest = (folder / "stat").read_text(encoding="utf-8").rpartition(")")
            state, _, group_id, *_ = rest.split()
            if int(group_id) == group and state not in "ZX":
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append(f"{folder.name} {command[:200]}")
        except OSError:
            continue  # it has ended by then
    return found


def at_work_in(directory: Path) -> list[str]:
    """Return the processes that live and work in a folder or below it, as far as the system tells (Linux does)."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cwd").readlink().is_relative_to(directory.resolve()):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append(f"{folder.name} {command[:200]}")
        except OSError:
            continue  # it has ended by then
    return found
