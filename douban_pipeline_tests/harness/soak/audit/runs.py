"""Whether every run of Dagster ended well, or by what was done to it; and whether its processes stayed small."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from douban_pipeline.dagster_kit.runs import UNDER_WAY
from douban_pipeline_tests.harness.soak.audit.found import Case
from douban_pipeline_tests.harness.soak.audit.records import Records
from douban_pipeline_tests.harness.soak.evidence import Evidence, Finding, Kill, RunRecord

SETTLES = 90.0
"""Seconds after a death in which runs may still fail of it: retries, timeouts, and Dagster's own look at its runs."""

PEOPLES_JOBS = frozenset({"record_decisions", "revert_changes"})
_REFUSED = ("Failure: ", "dagster._core.definitions.events.Failure: ")
"""How an error begins by which a job says that it refused what a person asked for."""

_NOT_ENDED = frozenset(status.value for status in UNDER_WAY)
_LASTING = ("database", "code", "daemon", "webserver", "postgres")


def runs_ended_well(evidence: Evidence, _records: Records) -> Finding:
    """Check the end of every run."""
    case = Case(
        "every run succeeded, but for those that were killed, lost their database, or refused a person's request"
    )
    excused: Counter[str] = Counter()
    for run in evidence.runs:
        case.checked += 1
        if run.status == "SUCCESS":
            continue
        why = _excuse(run, evidence.kills)
        if why:
            excused[why] += 1
        else:
            waits = run.status in _NOT_ENDED and not evidence.drained
            example = f"run {run.run_id} of {run.job} ended as {run.status}: {run.error[:400] or 'nothing was told'}"
            case.undone(example, drained=not waits)
    case.notes += [f"{count} {why}" for why, count in excused.items()]
    return case.finding()


def was_refused(run: RunRecord) -> bool:
    """Return whether a person's job said that it refused what it was asked for."""
    return run.job in PEOPLES_JOBS and any(said.startswith(_REFUSED) for said in run.error.split(" ← "))


def _excuse(run: RunRecord, kills: Sequence[Kill]) -> str:
    """Return why a run did not succeed that is nobody's fault but ours, empty if there is no such reason."""
    if run.status not in ("FAILURE", "CANCELED"):
        return ""
    if run.killed_by_us or any(kill.run_id == run.run_id for kill in kills if kill.run_id):
        return "killed"
    if was_refused(run):
        return "refused a person's request"
    for kill in kills:
        if kill.what not in _LASTING:
            continue
        since = kill.at.timestamp()
        until = (kill.until or kill.at).timestamp() + SETTLES
        if (run.ended is None or run.ended >= since) and (run.began is None or run.began <= until):
            return f"lost the {kill.what}"
    return ""


def usage_is_flat(evidence: Evidence, _records: Records) -> Finding:
    """Check what watching says of memory and descriptors."""
    case = Case("memory and file descriptors of the long-lived processes stay flat")
    for usage in evidence.usage:
        case.checked += 1
        case.notes.append(f"{usage.name}: {usage.summary}")
        if usage.flat is False:
            case.breaks(f"{usage.name}: {usage.summary}")
    return case.finding()
