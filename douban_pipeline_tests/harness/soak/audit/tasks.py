"""Whether any piece of queued work was lost, or done twice."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from douban_pipeline_tests.harness.soak.audit.found import Case
from douban_pipeline_tests.harness.soak.audit.records import Change, Records, Row, known_moment, moment
from douban_pipeline_tests.harness.soak.evidence import Evidence, Finding

CLOCKS = timedelta(seconds=10)
"""How far a task's own times may be off: they are taken before its transaction may have to wait for another."""

_OPEN = ("PENDING", "RUNNING")
_STAGES = ("search", "score", "sync", "intro")
_LONGEST_WAIT = timedelta(days=2)
"""Later than this no task is put off: the longest pause after failures is a day, and so is that of a quota."""


def no_task_is_lost(evidence: Evidence, records: Records) -> Finding:
    """Check that every open task can be taken by a run that comes now, or at a moment soon."""
    case = Case("every open task can still be taken")
    lease = evidence.services.settings.lease
    for task in records.rows("SELECT * FROM {own}task WHERE status IN ('PENDING', 'RUNNING') OR open_key IS NOT NULL"):
        case.checked += 1
        for why in _stuck(task, evidence.ended, lease):
            case.breaks(f"{_named(task)} {why}")
    return case.finding()


def _stuck(task: Row, ended: datetime, lease: timedelta) -> Iterable[str]:
    key, until = f"{task['vod_id']}:{task['task_type']}", moment(task["lease_until"])
    if task["status"] not in _OPEN:
        yield f"is closed and keeps its key {task['open_key']}"
        return
    if task["open_key"] != key:
        yield f"is open under the key {task['open_key']}"
    if until is not None and until > ended + lease + CLOCKS:
        yield f"is leased until {until:%d %H:%M:%S}, longer than any lease"
    if until is None and task["lease_owner"] is not None:
        yield f"belongs to {task['lease_owner']} for ever"
    if known_moment(task["run_after"]) > ended + _LONGEST_WAIT:
        yield f"waits until {task['run_after']}"
    if task["stage"] not in _STAGES:
        yield f"waits for {task['stage']}, which no step handles"


def no_task_is_doubled(evidence: Evidence, records: Records) -> Finding:
    """Check that no work of one kind on one video went on twice at once, and that none was done twice."""
    case = Case("no task overlaps another of its kind, and none was done twice")
    before: dict[tuple[int, str], Row] = {}
    for task in records.rows("SELECT * FROM {own}task ORDER BY created_at, task_id"):
        case.checked += 1
        key = (task["vod_id"], task["task_type"])
        earlier = before.get(key)
        if earlier is not None:
            closed, came = moment(earlier["finished_at"]), known_moment(task["created_at"])
            if closed is None or came + CLOCKS < closed:
                case.breaks(f"{_named(task)} came at {came:%H:%M:%S} while {_named(earlier)} was open")
        before[key] = task
    ended_badly = {run.run_id for run in evidence.runs if run.status != "SUCCESS"}
    for of_what in ("task_id", "verdict_id"):
        written: dict[int, list[Change]] = {}
        for change in records.changes:
            key_ = getattr(change, of_what)
            if key_ is not None and change.happened and change.reverts is None and change.written:
                written.setdefault(key_, []).append(change)
        for key_, changes in written.items():
            case.checked += 1
            # Who died after the write and before the end of its task has it done again, where others wrote between.
            again = [change for change in changes[:-1] if change.run_id not in ended_badly]
            if again:
                case.breaks(f"{of_what} {key_}: written by {', '.join(change.named for change in changes)}")
    return case.finding()


def _named(task: Row) -> str:
    return f"task {task['task_id']} ({task['task_type']} of video {task['vod_id']}, {task['status']})"
