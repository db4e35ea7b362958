"""Whether batches can still be taken back: the one thing that is asked of the pipeline's own code, in a dry run."""

from __future__ import annotations

from random import Random

from douban_pipeline.douban.writes.revert import ChangeSelection, revert
from douban_pipeline_tests.harness.soak.audit.found import Case
from douban_pipeline_tests.harness.soak.audit.records import Records
from douban_pipeline_tests.harness.soak.evidence import Evidence, Finding

_MOST = 40
"""Batches that are tried; the newest and a draw of the others."""


def batches_are_reversible(evidence: Evidence, records: Records) -> Finding:
    """Check that taking a batch back can be planned, change by change, and writes nothing."""
    case = Case("a sample of batches can be taken back, each change put back or told why not")
    applied: dict[str, set[int]] = {}
    for change in records.changes:
        if change.state == "applied":
            applied.setdefault(change.batch_id, set()).add(change.change_id)
    batches = list(applied)
    chosen = batches[-_MOST // 2 :]
    rest = batches[: -_MOST // 2]
    chosen += Random(0).sample(rest, min(len(rest), _MOST - len(chosen)))
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
