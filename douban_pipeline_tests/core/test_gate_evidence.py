"""Whether empty answers are believed: rules on one row, and how much a true emptiness costs."""

from __future__ import annotations

import json
from datetime import timedelta
from random import Random

import pytest

from douban_pipeline.core.gate_evidence import LEAST_PAST, MOST_PROBES, RECENT_ANSWERS, DoubtWindow, FindingEvidence
from douban_pipeline.core.gate_rules import GateRow, GateState
from douban_pipeline.core.gate_types import Admitted, GateRefusal, WaitForTurn
from douban_pipeline_tests.core.gate_rows import DOWN, HOLD, MINUTE, SECOND, row
from douban_pipeline_tests.harness.fixtures.clocks import START

HOUR = timedelta(hours=1)


def answered(gate: GateRow, found: bool, at: timedelta, *, known: bool = False) -> None:
    """Make a call at START + ``at`` that is answered at once."""
    name = f"{at}"
    assert gate.ask(name, START + at, HOLD, known=known) == Admitted()
    gate.leave(name, None, START + at, Random(int(at.total_seconds())), found=found)


def doubted() -> GateRow:
    """Return a source that found something at START, and nothing ten times since."""
    gate = row(interval=timedelta())
    answered(gate, True, timedelta())
    for number in range(1, 11):
        assert not gate.evidence.doubted
        answered(gate, False, number * SECOND)
    return gate


def test_ten_empty_answers_in_a_row_let_only_a_known_title_pass() -> None:
    gate = doubted()
    assert (gate.state, gate.evidence.doubted) == (GateState.CLOSED, True)
    assert gate.evidence.windows == [DoubtWindow(START)], "from when it was last known to find things"
    refused = gate.ask("ordinary", START + MINUTE, HOLD)
    assert isinstance(refused, GateRefusal)
    assert (refused.doubted, refused.until) == (True, START + MINUTE)
    assert gate.ask("probe", START + MINUTE, HOLD, known=True) == Admitted()
    # One asks; the others wait for its answer.
    for other in (False, True):
        assert isinstance(gate.ask("other", START + MINUTE, HOLD, known=other), WaitForTurn)
    gate.leave("probe", None, START + MINUTE, Random(0), found=True)
    assert (gate.evidence.doubted, gate.evidence.windows) == (False, []), "a false alarm leaves nothing behind"
    assert gate.ask("ordinary", START + MINUTE, HOLD) == Admitted()


def test_a_known_title_that_is_missed_opens_the_breaker_and_says_why_in_chinese() -> None:
    gate = doubted()
    answered(gate, False, MINUTE, known=True)
    assert gate.state is GateState.OPEN
    assert (
        gate.reason == "结果存疑：连续 10 次搜索没有结果，且 1 次搜不到已知影片；恢复前不作“未找到”判定，任务自动延后"
    )
    assert gate.open_until is not None
    assert 30 * SECOND <= gate.open_until - START - MINUTE <= MINUTE
    refused = gate.ask("ordinary", gate.open_until, HOLD)
    assert isinstance(refused, GateRefusal)
    assert refused.doubted, "an ordinary question proves nothing: it may truly have no answer"
    found_at = gate.open_until - START
    answered(gate, True, found_at, known=True)
    assert (gate.state, gate.reason, gate.evidence.doubted) == (GateState.CLOSED, "", False)
    assert gate.evidence.windows == [DoubtWindow(START, START + found_at)]
    assert [gate.evidence.doubts(START + at) for at in (timedelta(), found_at, found_at + SECOND)] == [
        True,
        True,
        False,
    ]


def test_a_failed_call_settles_no_doubt() -> None:
    gate = doubted()
    assert gate.ask("probe", START + MINUTE, HOLD, known=True) == Admitted()
    gate.leave("probe", DOWN, START + MINUTE, Random(0))
    assert gate.evidence.doubted
    assert gate.ask("next", START + MINUTE, HOLD, known=True) == Admitted()


def test_the_known_title_of_a_process_that_died_is_asked_by_another() -> None:
    gate = doubted()
    assert gate.ask("killed", START + MINUTE, HOLD, known=True) == Admitted()
    assert isinstance(gate.ask("next", START + MINUTE + HOLD - SECOND, HOLD, known=True), WaitForTurn)
    assert gate.ask("next", START + MINUTE + HOLD, HOLD, known=True) == Admitted()


def test_a_person_who_closes_the_gate_believes_the_source() -> None:
    gate = doubted()
    answered(gate, False, MINUTE, known=True)
    gate.close(START + 2 * MINUTE, "小王")
    assert gate.ask("ordinary", START + 2 * MINUTE, HOLD) == Admitted()
    assert gate.evidence.windows == [DoubtWindow(START, START + 2 * MINUTE)]


@pytest.mark.parametrize(("usual", "now", "doubts"), [(0.1, 0.5, True), (0.1, 0.3, False), (0.6, 0.7, False)])
def test_a_share_of_empty_answers_far_above_the_past_is_doubted(usual: float, now: float, doubts: bool) -> None:
    gate = row(interval=timedelta())
    shares = [usual] * 10 * LEAST_PAST + [now] * 2 * RECENT_ANSWERS
    owed = 0.0
    for number, share in enumerate(shares):
        owed += share
        empty = owed >= 1
        owed -= empty
        answered(gate, not empty, number * SECOND)
        if gate.evidence.doubted:
            break
    assert gate.evidence.doubted is doubts
    assert ("以往为" in gate.evidence.why) is doubts
    if doubts:
        [window] = gate.evidence.windows
        came, _ = gate.evidence.recent[0]
        assert window.start.timestamp() == came, "from the first of those on which the doubt rests"


@pytest.mark.parametrize("finds", [True, False])
def test_a_library_of_unfindable_videos_costs_few_questions_an_hour(finds: bool) -> None:
    """Six hours of nothing but empty answers, one every three seconds, from a source that is well or is not."""
    gate = row(interval=timedelta())
    probes: list[timedelta] = []
    ordinary = 0
    for second in range(0, 6 * 3600, 3):
        at = timedelta(seconds=second)
        answer = gate.ask("ordinary", START + at, HOLD)
        if answer == Admitted():
            ordinary += 1
            gate.leave("ordinary", None, START + at, Random(second), found=False)
        elif isinstance(answer, GateRefusal) and answer.doubted:
            probes.append(at)
            answered(gate, finds, at, known=True)
    an_hour = max(sum(begin <= at < begin + HOUR for at in probes) for begin in probes)
    if finds:
        assert an_hour <= 6
        assert ordinary >= 7200 - len(probes) - 10, "the work goes on"
    else:
        assert (an_hour, ordinary) == (pytest.approx(MOST_PROBES, abs=3), 10)
        assert an_hour <= MOST_PROBES
    assert len(gate.evidence.probes) <= MOST_PROBES


def test_it_is_stored_and_read_back() -> None:
    gate = doubted()
    answered(gate, False, MINUTE, known=True)
    stored = json.loads(json.dumps(gate.evidence.to_json()))
    assert FindingEvidence.from_json(stored) == gate.evidence
    assert FindingEvidence.from_json(None) == FindingEvidence()
    with pytest.raises((ValueError, KeyError, TypeError)):
        FindingEvidence.from_json({**stored, "windows": [["x"]]})
