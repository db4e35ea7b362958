"""The demo of all systems: its table, systems that are not installed, names that are not there."""

from __future__ import annotations

import io
import logging
import os
import sys
from pathlib import Path
from types import ModuleType

import dagster as dg
import pytest
import typer
from rich.console import Console

from douban_pipeline.core.environment import SYSTEMS
from douban_pipeline.demo import commands, run
from douban_pipeline.demo.outcomes import DemoOutcome, print_outcomes


def test_every_system_has_a_row() -> None:
    shown = io.StringIO()
    found = [("douban", DemoOutcome(True, "3 written"), 1.0), ("feeds", DemoOutcome(False, "nothing was due"), 2.4)]
    print_outcomes(found, Console(file=shown, width=80))
    assert ("3 written" in shown.getvalue(), "failed" in shown.getvalue()) == (True, True)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's folder, while the demo would make its library in a folder of the test."""
    monkeypatch.chdir(tmp_path)
    for name in ("DAGSTER_HOME", "DOUBAN_PIPELINE_SYSTEMS", *run.demo_environment(tmp_path)):
        monkeypatch.setenv(name, "")  # what the demo sets is taken back afterwards
    return Path(run.__file__).parents[2]


def test_every_system_has_a_demo() -> None:
    assert all(callable(run.demo_of(name)()) for name in SYSTEMS)


def replace_demo(monkeypatch: pytest.MonkeyPatch, name: str, runs: run.Demo) -> None:
    """Put another demo in the place of a system's."""
    module = ModuleType(f"douban_pipeline.demo.{name}")
    setattr(module, f"run_{name}", runs)
    monkeypatch.setitem(sys.modules, module.__name__, module)


def test_only_what_is_asked_for_is_run_and_what_is_not_installed_is_left_out(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    for name in ("douban", "feeds", "tmdb"):
        replace_demo(monkeypatch, name, lambda *_, name=name: done.append(name) or DemoOutcome(True, "done"))
    monkeypatch.setitem(sys.modules, "douban_pipeline.demo.comments", None)  # as if it could not be imported
    shown = io.StringIO()
    assert run.run_demo(project, ["tmdb", "feeds", "comments"], Console(file=shown, width=200))
    assert done == ["feeds", "tmdb"]
    assert os.environ["DOUBAN_PIPELINE_SYSTEMS"] == "feeds,tmdb,comments", "assets read from these, as in `make dev`"
    assert "the extra comments brings it: make -C " in shown.getvalue()


def test_an_error_that_is_only_logged_fails_the_demo(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def runs(*_: object) -> DemoOutcome:
        try:
            [].pop()
        except IndexError:
            logging.getLogger("douban_pipeline.somewhere").exception("video %s", 327)
        return DemoOutcome(True, "done")

    replace_demo(monkeypatch, "feeds", runs)
    shown = io.StringIO()
    assert not run.run_demo(project, ["feeds"], Console(file=shown, width=200))
    assert "an error was logged that the demo does not plan: douban_pipeline.somewhere: video 327" in shown.getvalue()
    replace_demo(monkeypatch, "feeds", lambda *_: DemoOutcome(True, "done"))
    assert run.run_demo(project, ["feeds"], Console(file=shown, width=200)), "each run counts its own"


def test_runs_start_no_process_that_the_terminals_ctrl_c_would_reach(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def runs(_home: Path, instance: dg.DagsterInstance, _console: Console) -> DemoOutcome:
        with instance.compute_log_manager.capture_logs(["run", "compute_logs", "step"]):
            return DemoOutcome(True, "done")

    def start(command: list[str], *_: object, **__: object) -> None:
        pytest.fail(f"Ctrl-C would reach {command}")

    replace_demo(monkeypatch, "feeds", runs)
    monkeypatch.setattr("dagster._core.execution.compute_logs.subprocess.Popen", start)
    assert run.run_demo(project, ["feeds"], Console(file=io.StringIO()))


def test_a_system_that_is_not_there_is_refused() -> None:
    with pytest.raises(typer.BadParameter, match="no system 'video'; systems: douban, feeds, digest, tmdb, comments"):
        commands.run_once("douban,video", Console(file=io.StringIO()))
