"""Having measures done, each in a process of its own on a library that is ready for it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import URL

from douban_pipeline_tests.harness.benchmarks.child import (
    FIGURES,
    FILL,
    JOB,
    MEASURE,
    SAID,
    SCRATCH,
    TAKE_IN,
)
from douban_pipeline_tests.harness.benchmarks.measuring import Measure, Say
from douban_pipeline_tests.harness.benchmarks.prepare import IN_USE, TAKEN_IN, Place, environment_for
from douban_pipeline_tests.harness.benchmarks.results import Outcome, Results, figures_from
from douban_pipeline_tests.harness.rig.processes import Process

TAKES_IN = "initialise"
"""The measure that takes the videos in, and needs nobody to have done so before."""

LIMIT_SECONDS = 7_200.0
CHECKED_UP_TO = 20_000
"""Videos in a library of which every measure is checked for what it left behind; in larger ones that takes long."""

_PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR")
_TESTS = "DOUBAN_TEST_"
_PACKAGES = Path(__file__).parents[3]
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Step:
    """A measure, and the module that its process imports for it."""

    measure: Measure
    module: str


@dataclass(slots=True)
class Runner:
    """Does measures.

    Attributes:
        seed: What libraries are generated from.
        folder: Where logs and scratch files go.
        keep: Whether databases stay for the next time.
        say: Told what is being done, one line at a time; the last one stands until the next.
        tell: Told what remains worth reading.
        limit: Seconds after which a measure has failed.
        patience: Seconds in which a measure that is stopped may clean up, and then its processes may end.
    """

    seed: int
    folder: Path
    keep: bool
    say: Say
    tell: Say
    limit: float = LIMIT_SECONDS
    patience: float = 60.0
    _jobs: int = field(default=0, init=False)
    _filled: bool = field(default=False, init=False)

    def run(self, steps: Sequence[Step], place: Place, results: Results) -> None:
        """Do ``steps`` on the library at ``place``, and add to ``results`` what comes of each.

        What fails is told, and the rest goes on. Who is interrupted leaves no process, and no database either, but
        for one that is whole and is to be kept.

        Raises:
            RigError: The database cannot be used.
        """
        with place.alone():
            try:
                place.create()
                self._filled = False
                for position, step in enumerate(steps):
                    outcome = self._do(step, place, results)
                    results.outcomes.append(outcome)
                    if outcome.failure and position + 1 < len(steps):
                        place.renew()
                        self._filled = False
            except BaseException:
                with _uninterrupted():
                    if not self.keep or place.noted(IN_USE):
                        place.drop()
                        self.tell(f"dropped {place.name}")
                raise
            if not self.keep or place.noted(IN_USE):
                place.drop()

    def _do(self, step: Step, place: Place, results: Results) -> Outcome:
        name, size = step.measure.name, place.size
        began = time.perf_counter()
        failure = self._prepare(place, taken_in=name != TAKES_IN)
        results.preparation[size] = results.preparation.get(size, 0.0) + time.perf_counter() - began
        if failure:
            return Outcome(name, size, time.perf_counter() - began, failure=f"the library was not made: {failure}")
        checked = size <= CHECKED_UP_TO and name != TAKES_IN
        before = place.contents() if checked else {}
        place.note(IN_USE, True)
        began = time.perf_counter()
        job = {"kind": MEASURE, "name": name, "module": step.module}
        failure, folder = self._in_a_child(f"{name} at {size:,}" if size else name, job, place)
        seconds = time.perf_counter() - began
        found = folder / FIGURES
        if failure:
            return Outcome(name, size, seconds, failure=failure)
        place.note(IN_USE, False)
        if name == TAKES_IN:
            place.note(TAKEN_IN, True)
        after = place.contents() if checked else {}
        changed = tuple(sorted(table for table in {*before, *after} if before.get(table) != after.get(table)))
        figures = figures_from(json.loads(found.read_text(encoding="utf-8")))
        return Outcome(name, size, seconds, figures, changed=changed)

    def _prepare(self, place: Place, *, taken_in: bool) -> str:
        """Make the library ready; return the last words of what failed, or nothing."""
        title = f"library of {place.size:,}" if place.size else "no library"
        if not self._filled:
            failure, _ = self._in_a_child(title, {"kind": FILL}, place)
            if failure:
                return failure
            self._filled = True
        if not taken_in or place.noted(TAKEN_IN):
            return ""
        failure, _ = self._in_a_child(title, {"kind": TAKE_IN}, place)
        if not failure:
            place.note(TAKEN_IN, True)
        return failure

    def _in_a_child(self, title: str, job: Mapping[str, str], place: Place) -> tuple[str, Path]:
        """Do a job in a process of its own; return its last words if it failed, and its folder."""
        self._jobs += 1
        folder = self.folder / f"{self._jobs:03d}-{title.replace(' ', '-').replace(',', '')}"
        (folder / SCRATCH).mkdir(parents=True)
        content = {**job, "size": place.size, "seed": self.seed}
        (folder / JOB).write_text(json.dumps(content), encoding="utf-8")
        process = Process(
            title,
            [sys.executable, "-m", "douban_pipeline_tests.harness.benchmarks.child", str(folder)],
            log=folder / "log",
            environment=child_environment(place.url, folder / SCRATCH / "home"),
            # Not where we are: a settings file lies there, perhaps.
            directory=folder / SCRATCH,
        )
        self.say(title)
        try:
            process.start()
            code = self._follow(process, title, folder / SAID)
        except BaseException:
            self.tell(f"stopping {title}")
            with _uninterrupted():
                process.stop(seconds=self.patience, by=signal.SIGINT)
            raise
        finally:
            shutil.rmtree(folder / SCRATCH, ignore_errors=True)
        return ("" if code == 0 else f"{_ended(code, self.limit)}\n{process.last_words()}"), folder

    def _follow(self, process: Process, title: str, said: Path) -> int | None:
        """Pass on what a process says until it ends; return its exit code, None if it took too long."""
        began, lines_reported = time.monotonic(), 0
        while process.alive:
            if time.monotonic() - began >= self.limit:
                process.stop(seconds=self.patience, by=signal.SIGINT)
                return None
            if said.exists() and (lines := said.read_text(encoding="utf-8").splitlines())[lines_reported:]:
                lines_reported = len(lines)
                self.say(f"{title}: {lines[-1]}")
            time.sleep(_POLL_SECONDS)
        return process.exit_code


def child_environment(url: URL, home: Path) -> dict[str, str]:
    """Return all of the environment that a measure's process gets: nothing of ours that could bear on it."""
    kept = {name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith(_TESTS)}
    return {**kept, "PYTHONPATH": str(_PACKAGES), "PYTHONUNBUFFERED": "1", **environment_for(url, home)}


def _ended(code: int | None, limit: float) -> str:
    if code is None:
        return f"not done after {limit:.0f} s"
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let a second Ctrl-C wait: what it would cut off is the cleaning up."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
