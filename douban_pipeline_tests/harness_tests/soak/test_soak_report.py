"""The report of a soak: what was violated comes first and loudest, and a machine can read it."""

from __future__ import annotations

import io
import json
from pathlib import Path

from rich.console import Console

from douban_pipeline_tests.harness.soak.evidence import Finding
from douban_pipeline_tests.harness.soak.report import Report

HELD = Finding("no locked value changed", True, 1_200, 0, note="12 locks were tried")
WAITS = Finding("every video is known", True, 6_136, 0, ("waits: video 4 was never taken in",), waiting=123)
BROKEN = Finding("no task is lost", False, 300, 2, ("task 17 of video 4: RUNNING, its run is gone", "task 18 | [x]"))


def report(*findings: Finding) -> Report:
    happened = {"what went wrong": {"run killed": 5, "breakers opened": {"douban": 2}}}
    growth = {"daemon memory": "flat: 150.0 → 150.2 MB in 20.0 min (+0.6 MB/h, noise ±0.1)"}
    return Report({"minutes": "6", "seed": "1"}, findings, happened, growth, True, ["note [a]"])


def shown(what: Report) -> str:
    output = io.StringIO()
    what.show(Console(file=output, width=200))
    return output.getvalue()


def test_a_violation_is_the_verdict():
    assert report(HELD, BROKEN).violated == [BROKEN]
    assert report(HELD, BROKEN).verdict == "1 of 2 invariants held; VIOLATED: no task is lost"
    assert report(HELD).verdict == "1 of 1 invariants held"
    assert report().verdict == "nothing was audited"


def test_work_that_waited_is_neither_held_nor_violated():
    waits = report(HELD, WAITS)
    assert (waits.violated, waits.starved) == ([], [WAITS])
    assert waits.verdict == "1 of 2 invariants held; STARVED: every video is known"
    assert "waits: video 4 was never taken in" in shown(waits)
    both = Finding("every run succeeded", False, 90, 1, ("run 4 failed",), waiting=7)
    assert report(HELD, both).verdict == "1 of 2 invariants held; VIOLATED: every run succeeded"


def test_files_hold_the_same(tmp_path: Path):
    data, page = report(HELD, BROKEN).write(tmp_path / "out")
    stored = json.loads(data.read_text())
    assert stored["verdict"] == report(HELD, BROKEN).verdict
    assert [finding["held"] for finding in stored["findings"]] == [True, False]
    assert stored["happened"]["what went wrong"]["run killed"] == 5
    text = page.read_text()
    assert "| no task is lost | **NO** | 300 | 2 | 0 |" in text
    assert "- task 17 of video 4" in text
    assert "note [a]" in text
