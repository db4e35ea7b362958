"""The auditor finds nothing in a soak that went well, and finds each thing that is spoiled in it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from douban_pipeline_tests.harness.soak.audit import audit
from douban_pipeline_tests.harness.soak.evidence import Kill, RunRecord, Usage
from douban_pipeline_tests.harness_tests.soak.left_behind import LeftBehind, leave_behind


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LeftBehind]:
    left = leave_behind(tmp_path_factory.mktemp("soak") / "well")
    yield left
    left.close()


@pytest.fixture
def left(well: LeftBehind, tmp_path: Path) -> Iterator[LeftBehind]:
    copied = well.copy(tmp_path / "copy")
    yield copied
    copied.close()


def test_nothing_is_wrong_with_a_soak_that_went_well(well: LeftBehind) -> None:
    findings = audit(well.evidence)
    assert [(found.invariant, found.examples) for found in findings if not found.held] == []
    assert len({found.invariant for found in findings}) == len(findings) == 15
    # It did look at something: runs and usage are the rig's to note, and no task was left open.
    assert sum(found.checked == 0 for found in findings) == 3


def ids(*parts: str) -> str:
    return f"(SELECT MIN({parts[0]}) FROM {parts[1]} WHERE {parts[2]})"


LINK_OF_3 = ids("change_id", "{own}log", "vod_id = 3 AND action = 'link'")
LOCK_OF_3 = ids("change_id", "{own}log", "vod_id = 3 AND action = 'lock_id' AND state = 'applied'")
INTRO_OF_1 = ids("change_id", "{own}log", "vod_id = 1 AND action = 'intro'")
SYNC_OF_6 = ids("decision_id", "{own}decision", "vod_id = 6 AND action = 'sync_now'")
LATER, EARLIER = "'2030-01-01 00:00:00.000000'", "'2020-01-01 00:00:00.000000'"
CHANGE = (
    "vod_id, shard, action, old_values, new_values, state_old, state_new, reason, operator, batch_id, run_id, owner, "
    "rule_version, task_id, verdict_id, decision_id, reverts_change_id, state, state_reason, prepared_at, applied_at"
)
TASK = "vod_id, shard, task_type, stage, status, priority, run_after, attempts, last_error, run_id, created_at"

SPOILT = {
    "a column of ours that nobody wrote": (
        "UPDATE mac_vod SET vod_director = '无名氏' WHERE vod_id = 1",
        "every difference",
        "video 1: vod_director",
    ),
    "a column that is none of our business": (
        "UPDATE mac_vod SET vod_hits = 99 WHERE vod_id = 5",
        "every difference",
        "vod_hits",
    ),
    "a video that nobody deleted": ("DELETE FROM mac_vod WHERE vod_id = 6", "every difference", "video 6"),
    "a write that the log tells of twice": (
        f"INSERT INTO {{own}}log ({CHANGE}) SELECT {CHANGE} FROM {{own}}log WHERE change_id = {LINK_OF_3}",
        "every difference",
        "video 3",
    ),
    "a write of a foreign column": (
        f"UPDATE {{own}}log SET old_values = '{{{{\"vod_hits\": 0}}}}', new_values = '{{{{\"vod_hits\": 1}}}}' "
        f"WHERE change_id = {INTRO_OF_1}",
        "every difference",
        "writes vod_hits",
    ),
    "a write without a reason": (
        f"UPDATE {{own}}log SET reason = '' WHERE change_id = {INTRO_OF_1}",
        "every write has a reason",
        "has no reason",
    ),
    "a write without a batch": (
        f"UPDATE {{own}}log SET batch_id = '', operator = '' WHERE change_id = {INTRO_OF_1}",
        "every write has a reason",
        "no operator, no batch",
    ),
    "a link written over a locked id": (
        f"UPDATE {{own}}log SET prepared_at = {LATER}, applied_at = {LATER} WHERE change_id = {LINK_OF_3}",
        "nothing automatic changed",
        "while the id was locked",
    ),
    "an intro written over a locked one": (
        f"UPDATE {{own}}log SET prepared_at = {LATER}, applied_at = {LATER} WHERE vod_id = 7 AND action = 'intro'",
        "nothing automatic changed",
        "while the synopsis was locked",
    ),
    "a task that is leased for ever": (
        "UPDATE {own}task SET status = 'RUNNING', open_key = vod_id || ':' || task_type, lease_owner = 'x', "
        "lease_until = '2099-01-01 00:00:00.000000' WHERE task_id = 1",
        "every open task",
        "longer than any lease",
    ),
    "a task without its key": (
        "UPDATE {own}task SET status = 'PENDING', open_key = NULL WHERE task_id = 1",
        "every open task",
        "is open under the key None",
    ),
    "two tasks at once": (
        f"INSERT INTO {{own}}task ({TASK}, finished_at) SELECT {TASK.replace('created_at', EARLIER)}, {LATER} "
        "FROM {own}task WHERE task_id = 1",
        "no task overlaps",
        "while task",
    ),
    "a verdict that was written twice": (
        f"INSERT INTO {{own}}log ({CHANGE}) SELECT {CHANGE} FROM {{own}}log WHERE change_id = {LINK_OF_3}",
        "no task overlaps",
        "verdict_id",
    ),
    "a video that was never taken in": ("DELETE FROM {own}video WHERE vod_id = 2", "every video in the CMS", "video 2"),
    "a video that nobody will look at": (
        "UPDATE {own}video SET douban_next_sync_at = NULL WHERE vod_id = 2",
        "every video in the CMS",
        "no next visit",
    ),
    "a video of another shard": (
        "UPDATE {own}video SET shard = 33 WHERE vod_id = 2",
        "every video in the CMS",
        "shard 33",
    ),
    "a decision that was forgotten": (
        f"UPDATE {{own}}decision SET state = 'pending', pending_key = 'x', created_at = {EARLIER} WHERE vod_id = 5",
        "every decision",
        "was forgotten",
    ),
    "a decision that waits for no task": (
        f"UPDATE {{own}}decision SET state = 'queued' WHERE decision_id = {SYNC_OF_6}",
        "every decision",
        "which is not open",
    ),
    "a decision that nothing applied": (
        "DELETE FROM {own}log WHERE vod_id = 5 AND action = 'ignore'",
        "every decision",
        "nothing in the log is of it",
    ),
    "a decision that was applied twice": (
        f"INSERT INTO {{own}}log ({CHANGE}) SELECT {CHANGE} FROM {{own}}log WHERE change_id = {LOCK_OF_3}",
        "every decision",
        "was applied by change",
    ),
    "too dear intros": ("UPDATE {own}intro SET cost_usd = 3 WHERE vod_id < 8", "the language model", "USD"),
    "a change that was left half done": (
        f"UPDATE {{own}}log SET state = 'prepared', applied_at = NULL WHERE change_id = {INTRO_OF_1}",
        "no change is left half done",
        "never reconciled",
    ),
    "a change that nobody reverted": (
        f"UPDATE {{own}}log SET state = 'reverted' WHERE change_id = {INTRO_OF_1}",
        "no change is left half done",
        "no revert of it is applied",
    ),
    "a lock that nobody set": (
        "UPDATE {own}video SET douban_id_locked = 1 WHERE vod_id = 1",
        "states agree",
        "douban_id_locked is True",
    ),
    "a lock that nobody took off": (
        "UPDATE {own}video SET intro_locked = 0 WHERE vod_id = 6",
        "states agree",
        "intro_locked is False",
    ),
    "a link that nobody made": ("UPDATE {own}video SET vod_douban_id = 4711 WHERE vod_id = 3", "states agree", "4711"),
    "an id in the CMS that nobody took in": (
        "UPDATE mac_vod SET vod_douban_id = 4711 WHERE vod_id = 9",
        "states agree",
        "the CMS holds the id 4711",
    ),
    "candidates without a verdict": (
        "DELETE FROM {own}verdict WHERE vod_id = 3",
        "verdicts, candidates",
        "refers to verdict",
    ),
    "an intro that was never written": (
        "UPDATE {own}intro SET change_id = NULL WHERE state = 'written'",
        "verdicts, candidates",
        "by no change",
    ),
    "a verdict that waits for ever": (
        "UPDATE {own}verdict SET state = 'pending' WHERE vod_id = 3",
        "verdicts, candidates",
        "its task is closed",
    ),
    "a batch that cannot be taken back": (
        f"UPDATE {{own}}log SET old_values = '{{{{}}}}', new_values = '{{{{\"vod_nonsense\": 1}}}}' "
        f"WHERE change_id = {INTRO_OF_1}",
        "a sample of batches",
        "vod_nonsense",
    ),
}


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
