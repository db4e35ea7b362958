"""Whether every run ended well or by what was done to it, and people were told what is so of their launches.

The words that are looked for are the auditor's own; it shares none with what makes the sentences.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from douban_pipeline.dagster_kit.runs import UNDER_WAY
from douban_pipeline_tests.harness.soak.audit.records import Case, Records
from douban_pipeline_tests.harness.soak.evidence import Evidence, Finding, Kill, RunRecord
from douban_pipeline_tests.harness.soak.journal import Entry

SETTLES = 90.0
"""Seconds after a death in which runs may still fail of it: retries, timeouts, and Dagster's own look at its runs."""

PEOPLES_JOBS = frozenset({"record_decisions", "revert_changes"})
_REFUSED = ("Failure: ", "dagster._core.definitions.events.Failure: ")
"""How an error begins by which a job says that it refused what a person asked for."""

_NOT_ENDED = frozenset(status.value for status in UNDER_WAY)
_LASTING = ("database", "code", "daemon", "postgres")


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
    if run.status not in ("FAILURE", "CANCELED"):
        return ""
    if any(kill.run_id == run.run_id for kill in kills if kill.run_id):
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


_AFTER_SECONDS = 60.0
SPARED_SECONDS = 2.0
"""The webserver keeps a connection for a second, by its unit: one from before a restart may refuse that long."""
_LAUNCHED = re.compile(r"run ([0-9a-f-]{36})")
_NOT_LAUNCHED = "not launched"
_DATABASE = re.compile("psycopg2|OperationalError|server closed the connection|InterfaceError")
"""How the refusal of a launch speaks of the database; a code server that starts again refuses launches by right."""
_AGAIN = re.compile("重新启动|重新运行|再次启动|再启动一次")


def launches_are_honoured(evidence: Evidence, _records: Records) -> Finding:
    """Check each launch of a person that was taken: it ran, was refused with a reason, or its loss was told."""
    case = Case("every launch of a person ran, or somebody was told that it did not and to launch it again")
    runs = {run.run_id: run for run in evidence.runs}
    lost = 0
    for entry, run_id in _launches(evidence):
        case.checked += 1
        run = runs.get(run_id)
        named = f"run {run_id} of {entry.what} by {entry.who}"
        if run is None:
            case.breaks(f"{named} is nowhere")
        elif run.status in _NOT_ENDED:
            case.undone(f"{named} is {run.status}", evidence.drained)
        elif run.status != "SUCCESS" and not was_refused(run):
            lost += 1
            about = [alert for alert in evidence.alerts if run_id in f"{alert.text} {alert.url}"]
            if not any(_AGAIN.search(alert.text) for alert in about):
                what = about[0].text[:200] if about else "nothing was told"
                case.breaks(f"{named} ended as {run.status} ({run.error[:200]}): {what}")
    case.notes.append(f"{lost} were lost and told")
    return case.finding()


def launches_are_taken_after_a_restart(evidence: Evidence, _records: Records) -> Finding:
    """Check that no launch is refused once the server that Dagster stores on has answered again for a moment."""
    case = Case("after a restart of Dagster's database people's launches are taken")
    restarts = [kill for kill in evidence.kills if kill.what == "postgres" and kill.until is not None]
    for entry in evidence.journal.entries():
        if entry.what not in PEOPLES_JOBS or not any(_shortly_after(entry, kill) for kill in restarts):
            continue
        case.checked += 1
        if entry.note.startswith(_NOT_LAUNCHED) and _DATABASE.search(entry.note):
            case.breaks(f"{entry.what} by {entry.who} at {entry.at:%H:%M:%S}: {entry.note[:200]}")
    case.notes.append(f"{len(restarts)} restarts")
    return case.finding()


def _launches(evidence: Evidence) -> Iterator[tuple[Entry, str]]:
    for entry in evidence.journal.entries():
        found = _LAUNCHED.fullmatch(entry.note)
        if found and entry.what in PEOPLES_JOBS:
            yield entry, found[1]


def _shortly_after(entry: Entry, kill: Kill) -> bool:
    return kill.until is not None and SPARED_SECONDS < (entry.at - kill.until).total_seconds() < _AFTER_SECONDS
