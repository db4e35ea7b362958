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
    summary: list[str] = field(default_factory=list)

    def run(self, *names):
        known = {measure.name: measure for measure in fakes.MEASURES}
        self.runner.run([Step(known[name], fakes.__name__) for name in names], self.place, self.results)
        return self.results.outcomes


@pytest.fixture
def benchmark(tmp_path, monkeypatch):
    monkeypatch.setenv("DAGSTER_HOME", "/nowhere")
    monkeypatch.setenv("DOUBAN_PIPELINE_AI_INTROS", "true")
    place = PlaceInAFile(make_url(f"sqlite:///{tmp_path / 'library.sqlite'}"))
    benchmark = Bench(
        Runner(SEED, tmp_path, False, lambda _: None, lambda _: None), place, Results(START, SEED, (), {})
    )
    benchmark.runner.patience = 2  # that its own child gets, which nobody tells to end
    benchmark.runner.say, benchmark.runner.tell = benchmark.said.append, benchmark.summary.append
    # Nothing is looked up in the library here: it need not be made.
    monkeypatch.setattr(Runner, "_prepare", lambda self, place, taken_in: "")
    return benchmark


START = datetime(2026, 1, 1, tzinfo=UTC)


def test_what_fails_or_is_killed_is_reported_and_the_rest_goes_on(benchmark):
    benchmark.runner.keep = True
    broken, shot, good = benchmark.run("fails", "killed", "well")
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
    assert "well: counting" in benchmark.said
    assert benchmark.results.failed == [broken, shot]
    assert benchmark.place.history == ["created", "renewed", "renewed"], "whole at the end, and to be kept"
    assert IN_USE not in benchmark.place.notes
    assert not list(benchmark.runner.folder.glob("*/scratch"))


def running(benchmark):
    pids = (benchmark.runner.folder / fakes.PIDS).read_text().split()
    return [process.pid for process in psutil.process_iter() if str(process.pid) in pids and lives(process)]


def test_ctrl_c_leaves_no_process_and_no_library_in_disorder(benchmark):
    def interrupt(words):
        benchmark.said.append(words)
        if words == "hangs: hanging":
            raise KeyboardInterrupt

    benchmark.runner.say, benchmark.runner.keep = interrupt, True
    with pytest.raises(KeyboardInterrupt):
        benchmark.run("hangs", "well")
    assert running(benchmark) == []
    assert (benchmark.runner.folder / "cleaned").exists(), "it was asked, not killed"
    assert benchmark.summary == ["stopping hangs", "dropped library"]
    assert benchmark.place.history == ["created", "dropped"]
