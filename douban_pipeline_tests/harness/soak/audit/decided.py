"""Whether every decision of a person was applied, once, or refused with a reason."""

from __future__ import annotations

from douban_pipeline_tests.harness.soak.audit.found import Case
from douban_pipeline_tests.harness.soak.audit.records import Change, Records, Row, known_moment, moment
from douban_pipeline_tests.harness.soak.evidence import Evidence, Finding

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
    """Return whether a pending decision has a reason to wait: a source that is unhealthy, or a library in a dry run."""
    run_after = moment(decision["run_after"])
    if evidence.services.settings.dry_run or not evidence.drained:
        return True
    if run_after is not None and run_after > evidence.drain_began:
        return True
    return bool(closed_until and closed_until > evidence.drain_began)  # type: ignore[operator]


def _named(decision: Row) -> str:
    what = f"{decision['action']} of video {decision['vod_id']}, {decision['state']}"
    return f"decision {decision['decision_id']} ({what})"
