"""Whether the change log and our states agree with each other, and nothing automatic changed what was locked.

A lock of ours stands from when the log says that it was applied until the change that takes it off was prepared. A
write happened between its own two times. So what is told is certain: both moments lie within the lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

from douban_pipeline.douban.writes.revert import ChangeSelection, revert
from douban_pipeline_tests.harness.soak.audit.records import Case, Change, Records
from douban_pipeline_tests.harness.soak.evidence import Evidence, Finding
from douban_pipeline_tests.harness.soak.journal import Entry, canonical

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


SETTLES = timedelta(seconds=5)
"""How long after the time that the log gives a lock its transaction may still have waited, on a busy machine."""

_ID = frozenset({"vod_douban_id"})
_SYNOPSIS = frozenset({"vod_content", "vod_blurb"})
_RESTORE = "restore"


@dataclass(frozen=True, slots=True)
class Span:
    """A time in which columns of a video were not to be touched; all of them if none is named."""

    since: datetime
    until: datetime | None
    columns: frozenset[str]
    why: str
    values: dict[str, str]

    def touched_by(self, change: Change) -> set[str]:
        """Return which of its columns ``change`` writes."""
        return set(change.written) & self.columns if self.columns else set(change.written)

    def holds(self, change: Change) -> bool:
        """Return whether ``change`` was certainly written in this time."""
        done = change.applied_at or change.prepared_at
        return change.prepared_at > self.since and (self.until is None or done < self.until)


def no_locked_value_changed(evidence: Evidence, records: Records) -> Finding:
    """Check every automatic write against the locks of its video."""
    case = Case("nothing automatic changed a locked id, a locked synopsis, an ignored video or a row with vod_lock")
    entries: dict[int, list[Entry]] = {}
    for entry in evidence.journal.entries():
        if (entry.happened or entry.doubtful) and ("vod_lock" in entry.edges()):
            entries.setdefault(entry.vod_id, []).append(entry)
    restored = spans_seen = 0
    for vod_id, changes in records.by_video.items():
        spans = list(_spans(changes, records.locked_ids))
        if evidence.services.settings.respect_vod_lock:
            spans += _spans_of_the_cms(evidence, vod_id, entries.get(vod_id, []))
        spans_seen += len(spans)
        for change in changes:
            if not (change.happened and change.automatic and change.written):
                continue
            case.checked += 1
            holding = [span for span in spans if span.touched_by(change) and span.holds(change)]
            # A lock that was set anew protects what stood then, not what an earlier one did.
            newest = {span.columns: span for span in sorted(holding, key=lambda span: span.since) if span.columns}
            if change.action == _RESTORE and newest and not any(_wrong(change, span) for span in newest.values()):
                restored += 1
                holding = [span for span in holding if not span.columns]
            for span in holding[:1]:
                touched = span.touched_by(change)
                shown = ", ".join(f"{name} {change.old.get(name)!r} → {change.new[name]!r}" for name in sorted(touched))
                case.breaks(f"video {vod_id}: {change.named} of {change.prepared_at:%H:%M:%S} wrote {shown} {span.why}")
    case.notes.append(f"{spans_seen} locks, {restored} locked values put back after others had changed them")
    return case.finding()


def _wrong(change: Change, span: Span) -> bool:
    return any(span.values.get(name, value) != value for name, value in change.new.items() if name in span.columns)


def _spans(changes: list[Change], locked_ids: Mapping[int, int]) -> Iterator[Span]:
    shown = sorted(
        (change for change in changes if change.happened),
        key=lambda each: (each.applied_at or each.prepared_at, each.change_id),
    )
    for name, columns, words in (
        ("douban_id_locked", _ID, "while the id was locked"),
        ("intro_locked", _SYNOPSIS, "while the synopsis was locked"),
    ):
        values: dict[str, str] = {}
        locked = False
        for place, change in enumerate(shown):
            written = _values(change, columns)
            values |= written
            if columns == _ID and (found := locked_ids.get(change.decision_id or 0)) is not None:
                values["vod_douban_id"] = canonical("vod_douban_id", found)
            locked = bool(change.state_new.get(name, locked))
            # Under a lock a person may still write, or take a write back; then it protects that.
            if change.state_new.get(name) or (locked and written and not change.automatic):
                off = (each.prepared_at for each in shown[place + 1 :] if each.state_new.get(name, True) is False)
                until = next(off, None)
                yield Span(_since(change), until, columns, f"{words} by change {change.change_id}", dict(values))
    status = "douban_review_status"
    for place, change in enumerate(shown):
        if change.state_new.get(status) == "IGNORED":
            ends = (
                each.prepared_at for each in shown[place + 1 :] if each.state_new.get(status, "IGNORED") != "IGNORED"
            )
            until = next(ends, None)
            over = change.state_new.get("douban_ignore_until")
            if isinstance(over, dict):
                awake = datetime.fromisoformat(over["time"])
                until = min(until, awake) if until else awake
            yield Span(_since(change), until, frozenset(), f"while it was ignored by change {change.change_id}", {})


def _values(change: Change, columns: frozenset[str]) -> dict[str, str]:
    values = {name: value for name, value in change.new.items() if name in columns}
    if columns == _ID and "vod_douban_id" in change.state_new:
        values["vod_douban_id"] = canonical("vod_douban_id", change.state_new["vod_douban_id"])
    return {} if change.action == _RESTORE else values


def _since(change: Change) -> datetime:
    return (change.applied_at or change.prepared_at) + SETTLES


def _spans_of_the_cms(evidence: Evidence, vod_id: int, entries: list[Entry]) -> Iterator[Span]:
    locked = evidence.initial.value(vod_id, "vod_lock") == "1"
    since: datetime | None = evidence.began if locked else None
    for entry in entries:
        if since is not None:
            yield Span(since, entry.at, frozenset(), "while the row was locked in the CMS", {})
        after = entry.edges()["vod_lock"][1]
        since = entry.ended_at if after == "1" and entry.happened else None
    if since is not None:
        yield Span(since, None, frozenset(), "while the row was locked in the CMS", {})


_MOST_BATCHES = 40
"""Batches that are tried; the newest and a draw of the others."""


def batches_are_reversible(evidence: Evidence, records: Records) -> Finding:
    """Check that taking a batch back can be planned, change by change, and writes nothing."""
    case = Case("a sample of batches can be taken back, each change put back or told why not")
    applied: dict[str, set[int]] = {}
    for change in records.changes:
        if change.state == "applied":
            applied.setdefault(change.batch_id, set()).add(change.change_id)
    batches = list(applied)
    chosen = batches[-_MOST_BATCHES // 2 :]
    rest = batches[: -_MOST_BATCHES // 2]
    chosen += Random(0).sample(rest, min(len(rest), _MOST_BATCHES - len(chosen)))
    by_id = {change.change_id: change for change in records.changes}
    whole = 0
    for batch_id in chosen:
        case.checked += 1
        change_log = evidence.services.change_log("audit")
        try:
            results = revert(
                change_log, ChangeSelection(batch_id=batch_id), operator="auditor", reason="审计", dry_run=True
            )
        except Exception as error:  # noqa: BLE001 (whatever it is, it is the finding)
            case.breaks(f"batch {batch_id}: {type(error).__name__}: {error}")
            continue
        planned = {result.change_id for result in results}
        silent = [result for result in results if result.skipped and not result.reason]
        whole += all(not result.skipped for result in results)
        for result in silent:
            case.breaks(f"batch {batch_id}: change {result.change_id} would be left alone, and nobody says why")
        # A revert and what it took back, both of one batch, cancel out.
        for change_id in applied[batch_id] - planned:
            target = by_id.get(by_id[change_id].reverts or 0)
            if target is None or target.batch_id != batch_id:
                case.breaks(f"batch {batch_id}: nothing is said of change {change_id}")
    case.notes.append(f"{whole} of {len(chosen)} in full")
    return case.finding()
