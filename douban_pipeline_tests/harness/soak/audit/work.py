"""Whether any piece of work was lost, forgotten or done twice: tasks, decisions of people, visits of videos."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from douban_pipeline_tests.harness.soak.audit.records import Case, Change, Records, Row, known_moment, moment
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
            case.breaks(f"{_named_task(task)} {why}")
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
                case.breaks(f"{_named_task(task)} came at {came:%H:%M:%S} while {_named_task(earlier)} was open")
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


def _named_task(task: Row) -> str:
    return f"task {task['task_id']} ({task['task_type']} of video {task['vod_id']}, {task['status']})"


_WRITES_ITSELF = frozenset(
    {
        *("confirm_top1", "choose", "set_id", "replace_and_lock", "clear_id", "ignore", "rematch"),
        *("lock_id", "unlock_id", "lock_intro", "unlock_intro"),
    }
)
"""Actions that a change of their own name carries out; the others order a task."""

_ENDED = ("applied", "refused", "reverted")


def every_decision_is_applied_once(evidence: Evidence, records: Records) -> Finding:
    """Check every decision against the log and the tasks."""
    case = Case("every decision was applied once, or refused with a reason; none is forgotten")
    applied: dict[int, list[Change]] = {}
    for change in records.changes:
        if change.decision_id is not None and change.reverts is None and change.happened:
            applied.setdefault(change.decision_id, []).append(change)
    closed_gates = {
        row["source"]: until
        for row in records.rows("SELECT source, open_until FROM {own}gate")
        if (until := moment(row["open_until"])) is not None
    }
    tasks = {row["task_id"]: row for row in records.rows("SELECT * FROM {own}task")}
    waiting = 0
    for decision in records.rows("SELECT * FROM {own}decision ORDER BY decision_id"):
        case.checked += 1
        own = [each for each in applied.get(decision["decision_id"], []) if each.action == decision["action"]]
        state, named = decision["state"], _named(decision)
        if len(own) > 1:
            case.breaks(f"{named} was applied by {', '.join(each.named for each in own)}")
        if (decision["pending_key"] is not None) != (state == "pending"):
            case.breaks(f"{named} holds the key {decision['pending_key']}")
        if state == "pending":
            waiting += 1
            blocked = _blocked(decision, evidence, "douban" in closed_gates and closed_gates["douban"])
            if not blocked and known_moment(decision["created_at"]) < evidence.drain_began:
                case.breaks(f"{named} of {decision['created_at']} was forgotten: {decision['state_reason'] or '—'}")
        elif state == "queued":
            waiting += 1
            task = tasks.get(decision["task_id"])
            if task is None or task["open_key"] is None:
                case.breaks(f"{named} waits for task {decision['task_id']}, which is not open")
        elif state not in _ENDED:
            case.breaks(f"{named} is {state}")
        elif state == "refused" and not decision["state_reason"]:
            case.breaks(f"{named} was refused without a reason")
        elif state == "refused" and own:
            case.breaks(f"{named} was refused and yet written by {own[0].named}")
        elif state == "applied" and decision["action"] in _WRITES_ITSELF and not own:
            case.breaks(f"{named} is said to be applied, and nothing in the log is of it")
    case.notes.append(f"{waiting} wait")
    return case.finding()


def _blocked(decision: Row, evidence: Evidence, closed_until: object) -> bool:
    run_after = moment(decision["run_after"])
    if evidence.services.settings.dry_run or not evidence.drained:
        return True
    if run_after is not None and run_after > evidence.drain_began:
        return True
    return bool(closed_until and closed_until > evidence.drain_began)  # type: ignore[operator]


def _named(decision: Row) -> str:
    what = f"{decision['action']} of video {decision['vod_id']}, {decision['state']}"
    return f"decision {decision['decision_id']} ({what})"


_LONGEST = timedelta(days=400)


def every_video_is_reachable(evidence: Evidence, records: Records) -> Finding:
    """Check every row of the CMS against our states; the library was swept after the last outsider left."""
    case = Case("every video in the CMS is known, and has a next visit or a reason not to have one")
    names = {name for name in ("vod_recycle_time",) if name in evidence.initial.columns}
    columns = ", ".join(("vod_id", "type_id", "vod_douban_id", *sorted(names)))
    resting = 0
    last = 0
    while page := records.rows(
        f"SELECT {columns} FROM {{cms}}vod WHERE vod_id > :last ORDER BY vod_id LIMIT 5000",
        last=last,
    ):
        last = page[-1]["vod_id"]
        for row in page:
            case.checked += 1
            state = records.states.get(row["vod_id"])
            if state is None:
                case.undone(f"video {row['vod_id']} was never taken in", evidence.drained)
                continue
            visit = moment(state["douban_next_sync_at"])
            if visit is not None:
                if visit > evidence.ended + _LONGEST:
                    case.breaks(f"video {row['vod_id']} is next visited at {visit:%Y-%m-%d}")
                continue
            resting += 1
            forever = state["douban_review_status"] == "IGNORED" and state["douban_ignore_until"] is None
            if not row.get("vod_recycle_time") and not forever:
                status = f"{state['douban_review_status']}: {state['douban_review_reason']}"
                case.breaks(f"video {row['vod_id']} has no next visit, and stands in the CMS as any other ({status})")
    for vod_id, state in records.states.items():
        if state["shard"] != vod_id % 64:
            case.breaks(f"video {vod_id} is held by shard {state['shard']}, where nobody looks for it")
    case.notes.append(f"{resting} rest: in the recycle bin, or ignored for good")
    return case.finding()
