"""The auditor finds nothing in a soak that went well, and finds each thing that is spoiled in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from douban_pipeline.douban.writes.revert import RevertedChange
from douban_pipeline_tests.harness.soak.audit import audit, reversible
from douban_pipeline_tests.harness.soak.evidence import Kill, RunRecord, Usage
from douban_pipeline_tests.harness_tests.soak.left_behind import LeftBehind
from douban_pipeline_tests.harness_tests.soak.spoilt import SPOILT


@pytest.fixture
def left(well: LeftBehind, tmp_path: Path) -> Iterator[LeftBehind]:
    copied = well.copy(tmp_path / "copy")
    yield copied
    copied.close()


def test_nothing_is_wrong_with_a_soak_that_went_well(well: LeftBehind) -> None:
    findings = audit(well.evidence)
    assert [(found.invariant, found.examples) for found in findings if not found.held] == []
    assert len({found.invariant for found in findings}) == len(findings) == 18
    # It did look at something: runs, launches, messages and usage are the rig's to note, and no task was left open.
    assert sum(found.checked == 0 for found in findings) == 6


@pytest.mark.parametrize("case", SPOILT)
def test_what_is_spoiled_in_the_database_is_found(left: LeftBehind, case: str) -> None:
    statement, invariant, message = SPOILT[case]
    left.spoil(statement.replace("{{", "{").replace("}}", "}"))
    broken = left.broken()
    [finding] = [found for name, found in broken.items() if name.startswith(invariant)]
    assert finding.violations
    assert any(message in example for example in finding.examples), finding.examples


def requests(times: list[float], ended: list[float] | None = None) -> dict[str, dict[str, object]]:
    keys = [f"the {number}." for number in range(1, len(times) + 1)]
    return {"douban": {"times": times, "ended": ended or [], "keys": keys}}


BURST = [1_800_000_000 + second for second in (0, 1, 2, 59.9)]


def test_a_minute_too_full_is_found(left: LeftBehind) -> None:
    left.under(requests=requests(BURST), limits={"douban": (3, 1)})
    [finding] = left.broken().values()
    assert "4 requests in the 60 s" in finding.examples[0]
    left.under(requests=requests([*BURST[:3], 1_800_000_060]))
    assert not left.broken()


def test_too_many_requests_at_once_are_found(left: LeftBehind) -> None:
    one_after_the_other = [moment + 1 for moment in BURST]
    left.under(requests=requests(BURST, one_after_the_other), limits={"douban": (10, 1)})
    assert not left.broken()
    left.under(requests=requests(BURST, [moment + 1.5 for moment in BURST]))
    [finding] = left.broken().values()
    first, second = "the 1. (08:00:00.000)", "the 2. (08:00:01.000)"
    assert f"2 requests at once, allowed are 1: at 08:00:01.000 {first}, {second}" in finding.examples[0]


def test_a_day_too_full_is_found(left: LeftBehind) -> None:
    left.under(requests=requests(BURST), limits={"douban": (10, 1)})
    assert not left.broken()
    left.evidence.services.settings.daily_quotas["douban"] = 3
    [finding] = left.broken().values()
    assert "4 requests on 2027-01-15, allowed are 3" in finding.examples[0]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda results: results[1:], "nothing is said of change"),
        (lambda results: [replace(each, skipped=("vod_content",), reason="") for each in results], "would be left"),
    ],
    ids=["a change that is passed over", "a change that is left alone without a word"],
)
def test_a_plan_that_says_not_of_each_change_what_becomes_of_it_is_found(
    left: LeftBehind, monkeypatch: pytest.MonkeyPatch, changed: Callable[[list[RevertedChange]], object], message: str
) -> None:
    planned = reversible.revert
    monkeypatch.setattr(reversible, "revert", lambda *given, **named: changed(planned(*given, **named)))
    [finding] = left.broken().values()
    assert message in finding.examples[0]


def test_a_source_without_a_limit_is_found(left: LeftBehind) -> None:
    left.under(limits={})
    [finding] = left.broken().values()
    assert "nobody set a limit" in finding.examples[0]


def test_growing_memory_is_found_and_a_soak_too_short_to_tell_is_not(left: LeftBehind) -> None:
    left.under(usage=[Usage("daemon", True, "210 MB"), Usage("code", None, "too short")])
    assert not left.broken()
    left.under(usage=[Usage("daemon", False, "210 → 700 MB")])
    [finding] = left.broken().values()
    assert finding.examples == ("daemon: 210 → 700 MB",)


NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def run(status: str, minutes: float = 0, **more: object) -> RunRecord:
    began = (NOON + timedelta(minutes=minutes)).timestamp()
    return RunRecord("r1", str(more.pop("job", "douban_chain")), status, {}, began, began + 20, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("record", "excused"),
    [
        (run("SUCCESS"), True),
        (run("FAILURE", error="KeyError: 'x'"), False),
        (run("STARTED"), False),
        (run("FAILURE", killed_by_us=True), True),
        (run("FAILURE", 5.5, error="OperationalError: gone away"), True),
        (run("FAILURE", 15, error="OperationalError: gone away"), False),
        (run("FAILURE", job="record_decisions", error="DagsterUserCodeError: … ← Failure: 已记录 1 条"), True),
        (run("FAILURE", job="record_decisions", error="DagsterUserCodeError: … ← KeyError: 'x'"), False),
        (run("FAILURE", error="Failure: 一处不符合"), False),
    ],
)
def test_runs_may_fail_only_of_what_was_done_to_them(left: LeftBehind, record: RunRecord, excused: bool) -> None:
    death = Kill(NOON + timedelta(minutes=5), "database", until=NOON + timedelta(minutes=6))
    left.under(runs=[record], kills=[death])
    assert (not left.broken()) is excused


@pytest.mark.parametrize("case", ["a video that was never taken in", "an id in the CMS that nobody took in"])
def test_work_that_waited_when_the_drain_was_left_is_starved_and_all_else_is_violated(
    left: LeftBehind, case: str
) -> None:
    statement, invariant, message = SPOILT[case]
    left.spoil(statement)
    left.under(drained=False, runs=[run("QUEUED")])
    assert not [name for name in left.broken() if name.startswith((invariant, "every run"))]
    starved = {finding.invariant: finding for finding in audit(left.evidence) if finding.starved}
    assert [name for name in starved if name.startswith("every run")]
    [finding] = [found for name, found in starved.items() if name.startswith(invariant)]
    assert any(message in example for example in finding.examples)
    left.under(runs=[run("FAILURE", error="KeyError: 'x'")])
    assert [name for name in left.broken() if name.startswith("every run")]
