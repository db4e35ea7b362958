"""The auditor of Douban's soak finds nothing in one that went well, and each thing that is spoiled in it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from douban_pipeline_tests.harness.soak.audit import audit
from douban_pipeline_tests.harness.soak.evidence import Alert, Kill, RunRecord, Usage
from douban_pipeline_tests.harness.soak.watching import MEMORY, growth_of
from douban_pipeline_tests.harness_tests.soak.left_behind import LeftBehind, leave_behind


def ids(*parts: str) -> str:
    """Return the first of a column's values, as a query in parentheses: the column, the table, the condition."""
    return f"(SELECT MIN({parts[0]}) FROM {parts[1]} WHERE {parts[2]})"


LINK_OF_3 = ids("change_id", "{own}log", "vod_id = 3 AND action = 'link'")
INTRO_OF_1 = ids("change_id", "{own}log", "vod_id = 1 AND action = 'intro'")
LATER, EARLIER = "'2030-01-01 00:00:00.000000'", "'2020-01-01 00:00:00.000000'"
TASK = "vod_id, shard, task_type, stage, status, priority, run_after, attempts, last_error, run_id, created_at"

SPOILT = {
    "a column of ours that nobody wrote": (
        "UPDATE mac_vod SET vod_director = '无名氏' WHERE vod_id = 1",
        "every difference",
        "video 1: vod_director",
    ),
    "a write without a reason": (
        f"UPDATE {{own}}log SET reason = '' WHERE change_id = {INTRO_OF_1}",
        "every write has a reason",
        "has no reason",
    ),
    "a link written over a locked id": (
        f"UPDATE {{own}}log SET prepared_at = {LATER}, applied_at = {LATER} WHERE change_id = {LINK_OF_3}",
        "nothing automatic changed",
        "while the id was locked",
    ),
    "a task that is leased for ever": (
        "UPDATE {own}task SET status = 'RUNNING', open_key = vod_id || ':' || task_type, lease_owner = 'x', "
        "lease_until = '2099-01-01 00:00:00.000000' WHERE task_id = 1",
        "every open task",
        "longer than any lease",
    ),
    "two tasks at once": (
        f"INSERT INTO {{own}}task ({TASK}, finished_at) SELECT {TASK.replace('created_at', EARLIER)}, {LATER} "
        "FROM {own}task WHERE task_id = 1",
        "no task overlaps",
        "while task",
    ),
    "a video that was never taken in": ("DELETE FROM {own}video WHERE vod_id = 2", "every video in the CMS", "video 2"),
    "a decision that was forgotten": (
        f"UPDATE {{own}}decision SET state = 'pending', pending_key = 'x', created_at = {EARLIER} WHERE vod_id = 5",
        "every decision",
        "was forgotten",
    ),
    "a change that was left half done": (
        f"UPDATE {{own}}log SET state = 'prepared', applied_at = NULL WHERE change_id = {INTRO_OF_1}",
        "no change is left half done",
        "never reconciled",
    ),
    "a lock that nobody set": (
        "UPDATE {own}video SET douban_id_locked = 1 WHERE vod_id = 1",
        "states agree",
        "douban_id_locked is True",
    ),
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
    "a batch that cannot be taken back": (
        f"UPDATE {{own}}log SET old_values = '{{{{}}}}', new_values = '{{{{\"vod_nonsense\": 1}}}}' "
        f"WHERE change_id = {INTRO_OF_1}",
        "a sample of batches",
        "vod_nonsense",
    ),
}
"""A statement, how the invariant begins under which it is found, and a part of what is said of it."""


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LeftBehind]:
    """Let a small soak take place, once."""
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
    # It did look at something: runs, launches and usage are the rig's to note, and no task was left open.
    assert sum(found.checked == 0 for found in findings) == 5


@pytest.mark.parametrize("case", SPOILT)
def test_what_is_spoiled_in_the_database_is_found(left: LeftBehind, case: str) -> None:
    statement, invariant, message = SPOILT[case]
    left.spoil(statement.replace("{{", "{").replace("}}", "}"))
    [finding] = [found for name, found in left.broken().items() if name.startswith(invariant)]
    assert any(message in example for example in finding.examples), finding.examples


BURST = [1_800_000_000 + second for second in (0, 1, 2, 59.9)]
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
RUN = "11111111-2222-3333-4444-555555555555"
LOST = RunRecord(RUN, "record_decisions", "FAILURE", {}, NOON.timestamp(), NOON.timestamp() + 20, "it vanished")
LOST_CHAIN = RunRecord(RUN, "douban_chain", "FAILURE", {}, NOON.timestamp(), NOON.timestamp() + 20, "it vanished")
DEATH = Kill(NOON, "database", until=NOON + timedelta(minutes=1))
AGAIN = f"运行失败：record_decisions\n没有执行，请重新启动：http://ui/launchpad\n运行：http://ui/runs/{RUN}"


def requests(ended: float) -> dict[str, dict[str, object]]:
    return {"douban": {"times": BURST, "ended": [moment + ended for moment in BURST], "keys": list("abcd")}}


@pytest.mark.parametrize(
    ("noted", "message"),
    [
        ({"requests": requests(0.5), "limits": {"douban": (4, 1)}}, ""),
        ({"requests": requests(0.5), "limits": {"douban": (3, 1)}}, "4 requests in the 60 s"),
        ({"requests": requests(1.5), "limits": {"douban": (4, 1)}}, "2 requests at once, allowed are 1"),
        ({"limits": {}}, "nobody set a limit"),
        ({"usage": [Usage("daemon", True, "210 MB"), Usage("code", None, "too short")]}, ""),
        ({"usage": [Usage("daemon", False, "210 → 700 MB")]}, "daemon: 210 → 700 MB"),
        ({"runs": [LOST_CHAIN]}, "ended as FAILURE: it vanished"),
        ({"runs": [LOST_CHAIN], "kills": [DEATH]}, ""),
    ],
)
def test_what_was_noted_amiss_is_found(left: LeftBehind, noted: dict[str, object], message: str) -> None:
    left.under(**noted)
    said = [example for finding in left.broken().values() for example in finding.examples]
    assert (message in said[0]) if message else not said, said


@pytest.mark.parametrize(
    ("alerts", "note", "message"),
    [
        ((AGAIN,), "", ""),
        ((), "", "nothing was told"),
        ((AGAIN,), "not launched: RigError: psycopg2.OperationalError: server closed the connection", "psycopg2"),
    ],
)
def test_what_people_were_not_told_of_their_launches_is_found(
    left: LeftBehind, alerts: tuple[str, ...], note: str, message: str
) -> None:
    left.evidence.journal.tell("小王", "record_decisions", note=f"run {RUN}")
    if note:
        left.evidence.journal.tell("小李", "record_decisions", note=note)
    at = datetime.now(UTC)
    restarted = Kill(at=at - timedelta(seconds=5), what="postgres", until=at - timedelta(seconds=3))
    left.under(runs=[LOST], kills=[DEATH, restarted], alerts=[Alert(1.0, text) for text in alerts])
    said = [example for finding in left.broken().values() for example in finding.examples]
    assert (message in said[0]) if message else not said, said


def test_work_that_waited_when_the_drain_was_left_is_starved(left: LeftBehind) -> None:
    statement, invariant, message = SPOILT["a video that was never taken in"]
    left.spoil(statement)
    left.under(drained=False)
    assert not [name for name in left.broken() if name.startswith(invariant)]
    [finding] = [each for each in audit(left.evidence) if each.starved]
    assert any(message in example for example in finding.examples)


@pytest.mark.parametrize(("mb_per_hour", "flat"), [(0, True), (80, False)])
def test_memory_that_grows_is_told_from_noise(mb_per_hour: float, flat: bool) -> None:
    rng = Random(1)
    points = [(at, 250 + mb_per_hour * at / 3600 + rng.gauss(0, 5)) for at in (5.0 * number for number in range(360))]
    assert growth_of(points, MEMORY).flat is flat
    assert growth_of(points[:60], MEMORY).flat is None
