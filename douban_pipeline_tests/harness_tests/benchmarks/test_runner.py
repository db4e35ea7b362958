"""Whatever a measure does, the rest goes on, and nothing of it stays behind."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import psutil
import pytest
from sqlalchemy import URL, make_url

from douban_pipeline_tests.harness.benchmarks.prepare import IN_USE, Place
from douban_pipeline_tests.harness.benchmarks.results import Results
from douban_pipeline_tests.harness.benchmarks.runner import Runner, Step
from douban_pipeline_tests.harness.rig.processes import lives
from douban_pipeline_tests.harness_tests.benchmarks import fakes

SIZE, SEED = 0, 7


class PlaceInAFile(Place):
    """A library in a file, whose notes are kept in mind."""

    def __init__(self, url: URL) -> None:
        self.size, self.name, self.url = SIZE, "library", url
        self.notes: set[str] = set()
        self.history: list[str] = []

    @contextmanager
    def alone(self):
        yield

    def create(self):
        self.history.append("created")

    def renew(self):
        self.history.append("renewed")
        self.notes.clear()

    def drop(self):
        self.history.append("dropped")

    def noted(self, name):
        return name in self.notes

    def note(self, name, holds):
        (self.notes.add if holds else self.notes.discard)(name)

    def contents(self):
        return {}


@dataclass
class Bench:
    """A runner, and what it tells."""

    runner: Runner
    place: PlaceInAFile
    results: Results
    said: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def run(self, *names):
        known = {measure.name: measure for measure in fakes.MEASURES}
        self.runner.run([Step(known[name], fakes.__name__) for name in names], self.place, self.results)
        return self.results.outcomes


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setenv("DAGSTER_HOME", "/nowhere")
    monkeypatch.setenv("DOUBAN_PIPELINE_AI_INTROS", "true")
    place = PlaceInAFile(make_url(f"sqlite:///{tmp_path / 'library.sqlite'}"))
    bench = Bench(Runner(SEED, tmp_path, False, lambda _: None, lambda _: None), place, Results(START, SEED, (), {}))
    bench.runner.patience = 2  # that its own child gets, which nobody tells to end
    bench.runner.say, bench.runner.tell = bench.said.append, bench.told.append
    # Nothing is looked up in the library here: it need not be made.
    monkeypatch.setattr(Runner, "_prepare", lambda self, place, taken_in: "")
    return bench


START = datetime(2026, 1, 1, tzinfo=UTC)


def test_what_fails_or_is_killed_is_told_and_the_rest_goes_on(bench):
    bench.runner.keep = True
    broken, shot, good = bench.run("fails", "killed", "well")
    assert "ended with exit code 1" in broken.failure
    assert "ValueError: no 0 of these" in broken.failure
    assert "SIGKILL" in shot.failure
    assert {figure.name: figure.value for figure in good.figures} == {
        "size": SIZE,
        "seed": SEED,
        "unwanted variables": 0,
        "files in scratch": 0,
        "writes": True,
    }
    assert "well: counting" in bench.said
    assert bench.results.failed == [broken, shot]
    assert bench.place.history == ["created", "renewed", "renewed"], "whole at the end, and to be kept"
    assert IN_USE not in bench.place.notes
    assert not list(bench.runner.folder.glob("*/scratch"))


def running(bench):
    pids = (bench.runner.folder / fakes.PIDS).read_text().split()
    return [process.pid for process in psutil.process_iter() if str(process.pid) in pids and lives(process)]


def test_ctrl_c_leaves_no_process_and_no_library_in_disorder(bench):
    def interrupt(words):
        bench.said.append(words)
        if words == "hangs: hanging":
            raise KeyboardInterrupt

    bench.runner.say, bench.runner.keep = interrupt, True
    with pytest.raises(KeyboardInterrupt):
        bench.run("hangs", "well")
    assert running(bench) == []
    assert (bench.runner.folder / "cleaned").exists(), "it was asked, not killed"
    assert bench.told == ["stopping hangs", "dropped library"]
    assert bench.place.history == ["created", "dropped"]


def test_what_takes_too_long_is_stopped_and_has_failed(bench):
    def hurry(words):
        if words == "hangs: hanging":
            bench.runner.limit = 0

    bench.runner.say, bench.runner.keep = hurry, True
    [outcome] = bench.run("hangs")
    assert "not done after" in outcome.failure
    assert running(bench) == []
    assert bench.place.history == ["created", "dropped"], "who knows what it left"
