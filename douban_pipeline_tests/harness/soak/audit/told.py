"""Whether people were told what is so: a launch of theirs ran, or they were told that it did not, and what to do.

The words that are looked for are the auditor's own; it shares none with what makes the sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from douban_pipeline.dagster_kit.runs import UNDER_WAY
from douban_pipeline_tests.harness.soak.audit.found import Case
from douban_pipeline_tests.harness.soak.audit.records import Records
from douban_pipeline_tests.harness.soak.audit.runs import PEOPLES_JOBS, was_refused
from douban_pipeline_tests.harness.soak.evidence import Evidence, Finding, Kill
from douban_pipeline_tests.harness.soak.journal import Entry

_AFTER_SECONDS = 60.0
SPARED_SECONDS = 2.0
"""The webserver keeps a connection for a second, by its unit: one from before a restart may refuse that long."""
_LAUNCHED = re.compile(r"run ([0-9a-f-]{36})")
_NOT_LAUNCHED = "not launched"
_DATABASE = re.compile("psycopg2|OperationalError|server closed the connection|InterfaceError")
"""How the refusal of a launch speaks of the database; a code server that starts again refuses launches by right."""
_AGAIN = re.compile("重新启动|重新运行|再次启动|再启动一次")
_LEAVE_IT = re.compile("不必重跑|不用重跑|无需重跑|会自动")
_NOT_ENDED = frozenset(status.value for status in UNDER_WAY)


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


def nobody_is_advised_against(evidence: Evidence, _records: Records) -> Finding:
    """Check that no message about a person's job says that it goes on by itself: none of them does."""
    case = Case("no message about a person's job advises against launching it again")
    for alert in evidence.alerts:
        about = sorted(job for job in PEOPLES_JOBS if job in alert.text)
        if not about:
            continue
        case.checked += 1
        if _LEAVE_IT.search(alert.text):
            case.breaks(f"of {', '.join(about)}: {alert.text[:300]}")
    return case.finding()


def _launches(evidence: Evidence) -> Iterator[tuple[Entry, str]]:
    for entry in evidence.journal.entries():
        found = _LAUNCHED.fullmatch(entry.note)
        if found and entry.what in PEOPLES_JOBS:
            yield entry, found[1]


def _shortly_after(entry: Entry, kill: Kill) -> bool:
    return kill.until is not None and SPARED_SECONDS < (entry.at - kill.until).total_seconds() < _AFTER_SECONDS
