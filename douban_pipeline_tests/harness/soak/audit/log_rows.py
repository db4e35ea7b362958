"""Whether the change log, our states and everything that refers to something agree with each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from douban_pipeline_tests.harness.soak.audit.found import Case
from douban_pipeline_tests.harness.soak.audit.records import Change, Records
from douban_pipeline_tests.harness.soak.evidence import Evidence, Finding

_STATES = frozenset({"prepared", "applied", "refused", "abandoned", "conflict", "reverted"})
_IN_PART = "部分列已撤销"
_INTRO_OF = {"applied": ("written",), "reverted": ("withdrawn",)}
_LOCKS = ("douban_id_locked", "intro_locked")

_REFERENCES = (
    ("candidate", "candidate_id", "review_candidate", "verdict_id", "verdict"),
    ("candidate", "candidate_id", "review_candidate", "snapshot_id", "snapshot"),
    ("verdict", "verdict_id", "verdict", "task_id", "task"),
    ("change", "change_id", "log", "task_id", "task"),
    ("change", "change_id", "log", "verdict_id", "verdict"),
    ("change", "change_id", "log", "decision_id", "decision"),
    ("change", "change_id", "log", "snapshot_id", "snapshot"),
    ("change", "change_id", "log", "reverts_change_id", "log"),
    ("intro", "intro_id", "intro", "change_id", "log"),
    ("intro", "intro_id", "intro", "snapshot_id", "snapshot"),
    ("decision", "decision_id", "decision", "task_id", "task"),
    ("decision", "decision_id", "decision", "verdict_id", "verdict"),
)
"""What a row is called, its key, its table, the column that refers, and the table that it refers to."""

_KEYS = {
    "verdict": "verdict_id",
    "snapshot": "snapshot_id",
    "task": "task_id",
    "decision": "decision_id",
    "log": "change_id",
}


def log_agrees_with_itself(_evidence: Evidence, records: Records) -> Finding:
    """Check that no change is left half done, and that what was taken back was taken back by a change that stands."""
    case = Case("no change is left half done, and reverted changes are those of which a revert is applied")
    by_id = {change.change_id: change for change in records.changes}
    reverted_by: dict[int, list[Change]] = {}
    for change in records.changes:
        if change.reverts is not None and change.state == "applied":
            reverted_by.setdefault(change.reverts, []).append(change)
    for change in records.changes:
        case.checked += 1
        if change.state == "prepared":
            case.breaks(f"video {change.vod_id}: {change.named} of {change.prepared_at:%H:%M:%S} was never reconciled")
        elif change.state not in _STATES:
            case.breaks(f"video {change.vod_id}: {change.named} is in no known state")
        elif change.happened != (change.applied_at is not None):
            case.breaks(f"video {change.vod_id}: {change.named} was applied at {change.applied_at}")
        elif set(change.old) != set(change.new):
            case.breaks(f"video {change.vod_id}: {change.named} names other columns before than after")
        if change.state == "reverted" and change.change_id not in reverted_by:
            case.breaks(f"video {change.vod_id}: {change.named}, but no revert of it is applied")
        target = by_id.get(change.reverts) if change.reverts is not None else None
        in_part = target is not None and target.state_reason == _IN_PART
        if target is not None and change.state == target.state == "applied" and not in_part:
            case.breaks(f"video {change.vod_id}: {change.named} reverted {target.named}, which still is applied")
        if target is not None and target.vod_id != change.vod_id:
            case.breaks(f"{change.named} of video {change.vod_id} reverts {target.named} of video {target.vod_id}")
    doubtful = [change for change in records.changes if change.doubtful]
    if doubtful:
        states = sorted({change.state for change in doubtful})
        case.notes.append(f"{len(doubtful)} changes of runs that died were told from the CMS ({', '.join(states)})")
    return case.finding()


def log_agrees_with_the_states(evidence: Evidence, records: Records) -> Finding:
    """Check that locks are as the log last set them, and links as the log or the CMS last had them."""
    case = Case("states agree with the log and the CMS: locks as it last set them, ids as it or the CMS last had them")
    edited: dict[int, set[str]] = {}
    for entry in evidence.journal.entries():
        pair = entry.edges().get("vod_douban_id")
        if pair is not None and (entry.happened or entry.doubtful):
            edited.setdefault(entry.vod_id, set()).update(value for value in pair if value is not None)
    for vod_id, held in _unknown_ids(evidence, records):
        known = records.states[vod_id]["vod_douban_id"]
        case.undone(f"video {vod_id}: the CMS holds the id {held}, our state {known}", evidence.drained)
    for vod_id, state in records.states.items():
        case.checked += 1
        newest: dict[str, tuple[Any, Change]] = {}
        for change in _in_order(records.by_video.get(vod_id, [])):
            newest |= {name: (value, change) for name, value in change.state_new.items()}
        for name in _LOCKS:
            value, by = newest.get(name, (False, None))
            if bool(state[name]) != bool(value):
                named = by.named if by else "no change"
                case.breaks(f"video {vod_id}: {name} is {bool(state[name])}, and {named} set it to {bool(value)}")
        if "vod_douban_id" in newest:
            value, by_change = newest["vod_douban_id"]
            if state["vod_douban_id"] != value and str(state["vod_douban_id"]) not in edited.get(vod_id, set()):
                case.breaks(
                    f"video {vod_id}: our state links it to {state['vod_douban_id']}, {by_change.named} to {value}, "
                    "and nobody wrote that into the CMS"
                )
    return case.finding()


def _unknown_ids(evidence: Evidence, records: Records) -> Iterator[tuple[int, int]]:
    """Yield the live videos whose id in the CMS is not the one we know, though the library was swept last of all.

    A locked id is put back, or told of as drift; a video that is ignored is not followed.
    """
    recycled = "AND c.vod_recycle_time = 0" if "vod_recycle_time" in evidence.initial.columns else ""
    query = (
        "SELECT c.vod_id, c.vod_douban_id FROM {cms}vod c JOIN {own}video v ON v.vod_id = c.vod_id "
        f"WHERE c.vod_douban_id <> v.vod_douban_id AND v.douban_id_locked = 0 {recycled} "
        "AND v.douban_review_status <> 'IGNORED'"
    )
    for row in records.rows(query):
        yield row["vod_id"], row["vod_douban_id"]


def _in_order(changes: list[Change]) -> list[Change]:
    """Return the changes that were applied, in the order in which their states were set."""
    return sorted(
        (change for change in changes if change.happened and change.applied_at is not None),
        key=lambda change: (change.applied_at, change.change_id),
    )


def references_exist(_evidence: Evidence, records: Records) -> Finding:
    """Check that whatever a row refers to is there, and that intros share the fate of their changes."""
    case = Case("verdicts, candidates, intros, decisions and changes refer to what exists")
    for what, key, table, column, target in _REFERENCES:
        case.checked += int(records.rows(f"SELECT COUNT(*) AS n FROM {{own}}{table}")[0]["n"])
        query = (
            f"SELECT a.{key} AS id, a.{column} AS missing FROM {{own}}{table} a "
            f"LEFT JOIN {{own}}{target} b ON b.{_KEYS[target]} = a.{column} "
            f"WHERE a.{column} IS NOT NULL AND b.{_KEYS[target]} IS NULL"
        )
        for row in records.rows(query):
            case.breaks(f"{what} {row['id']} refers to {target} {row['missing']}, which is not there")
    states = {change.change_id: change for change in records.changes}
    for intro in records.rows("SELECT intro_id, vod_id, state, change_id FROM {own}intro"):
        case.checked += 1
        change = states.get(intro["change_id"]) if intro["change_id"] is not None else None
        if intro["state"] in ("written", "withdrawn") and change is None:
            case.breaks(f"intro {intro['intro_id']} of video {intro['vod_id']} is {intro['state']} by no change")
        elif change is not None and change.vod_id != intro["vod_id"]:
            case.breaks(f"intro {intro['intro_id']} of video {intro['vod_id']} was written by {change.named}")
        elif change is not None and change.happened and intro["state"] not in _INTRO_OF[change.state]:
            case.breaks(f"intro {intro['intro_id']} of video {intro['vod_id']} is {intro['state']}, {change.named}")
    stuck = "SELECT v.verdict_id, v.vod_id FROM {own}verdict v JOIN {own}task t ON t.task_id = v.task_id "
    for row in records.rows(stuck + "WHERE v.state = 'pending' AND t.open_key IS NULL"):
        case.breaks(f"verdict {row['verdict_id']} of video {row['vod_id']} waits, and its task is closed")
    return case.finding()
