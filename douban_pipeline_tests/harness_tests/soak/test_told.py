"""The auditor finds what people were not told of their launches, or told wrongly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from douban_pipeline_tests.harness.soak.audit import told
from douban_pipeline_tests.harness.soak.audit.records import Records
from douban_pipeline_tests.harness.soak.evidence import Alert, Evidence, Finding, Kill, RunRecord
from douban_pipeline_tests.harness.soak.journal import Journal
from douban_pipeline_tests.harness_tests.soak.left_behind import LeftBehind

RUN = "11111111-2222-3333-4444-555555555555"
AGAIN = f"运行失败：record_decisions\n没有执行，请重新启动：http://ui/launchpad\n运行：http://ui/runs/{RUN}"
LEFT = f"运行失败：record_decisions\n没做完的任务会自动放回队列，不必重跑\n运行：http://ui/runs/{RUN}"
LOST = RunRecord(RUN, "record_decisions", "FAILURE", error="the run worker vanished")


@pytest.fixture
def evidence(well: LeftBehind, tmp_path: Path) -> Iterator[Evidence]:
    """A soak in which one person launched one job, which runs under `RUN`."""
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.tell("小王", "record_decisions", note=f"run {RUN}")
        yield replace(well.evidence, journal=journal, runs=[RunRecord(RUN, "record_decisions", "SUCCESS")])


def honoured(evidence: Evidence, *runs: RunRecord, alerts: tuple[str, ...] = (), drained: bool = True) -> Finding:
    given = replace(evidence, runs=runs, alerts=[Alert(1.0, text) for text in alerts], drained=drained)
    return told.launches_are_honoured(given, Records(evidence.services.engine, "mac_"))


@pytest.mark.parametrize(
    ("runs", "alerts", "broken"),
    [
        ([RunRecord(RUN, "record_decisions", "SUCCESS")], (), ""),
        ([replace(LOST, error="Failure: 有 2 行不能记录")], (), ""),
        ([LOST], (AGAIN,), ""),
        ([LOST], (), "nothing was told"),
        ([LOST], (LEFT,), "不必重跑"),
        ([LOST], (AGAIN.replace(RUN, "another"),), "nothing was told"),
        ([], (AGAIN,), "is nowhere"),
        ([replace(LOST, status="STARTED")], (), "is STARTED"),
    ],
)
def test_a_launch_ran_or_its_person_was_told(
    evidence: Evidence, runs: list[RunRecord], alerts: tuple[str, ...], broken: str
):
    found = honoured(evidence, *runs, alerts=alerts)
    assert found.checked == 1
    assert (broken in "".join(found.examples)) if broken else found.held


def test_a_launch_that_waits_is_no_violation_while_not_all_is_done(evidence: Evidence):
    found = honoured(evidence, replace(LOST, status="QUEUED"), drained=False)
    assert found.starved


@pytest.mark.parametrize(
    ("note", "held"),
    [
        (f"run {RUN}", True),
        ("not launched: RigError: PythonError: psycopg2.OperationalError: server closed the connection", False),
        ("not launched: RigError: Could not reach user code server", True),
    ],
)
def test_a_launch_after_a_restart_is_taken(evidence: Evidence, note: str, held: bool):
    at = datetime.now(UTC)
    evidence.journal.tell("小李", "record_decisions", note=note)
    restarted = Kill(at=at - timedelta(seconds=5), what="postgres", until=at - timedelta(seconds=3))
    found = told.launches_are_taken_after_a_restart(
        replace(evidence, kills=[restarted]), Records(evidence.services.engine, "mac_")
    )
    assert found.held is held
    assert found.checked == 2
    at_once = Kill(at=at - timedelta(seconds=2), what="postgres", until=at)
    assert not told.launches_are_taken_after_a_restart(
        replace(evidence, kills=[at_once]), Records(evidence.services.engine, "mac_")
    ).checked, "the webserver keeps a connection for a second"


@pytest.mark.parametrize(
    ("text", "held", "checked"), [(AGAIN, True, 1), (LEFT, False, 1), ("运行失败：chain", True, 0)]
)
def test_no_person_is_told_that_a_launch_goes_on_by_itself(evidence: Evidence, text: str, held: bool, checked: int):
    found = told.nobody_is_advised_against(
        replace(evidence, alerts=[Alert(1.0, text)]), Records(evidence.services.engine, "mac_")
    )
    assert (found.held, found.checked) == (held, checked)
