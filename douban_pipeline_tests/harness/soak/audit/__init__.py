"""The auditor of a soak: proves from what was left behind that the pipeline kept its promises, or shows where not.

It shares no rule with the pipeline: its SQL, its reading of the log and its idea of a lock are its own.
"""

from __future__ import annotations

from collections.abc import Callable

from douban_pipeline_tests.harness.soak.audit.changes import (
    batches_are_reversible,
    log_agrees_with_itself,
    log_agrees_with_the_states,
    no_locked_value_changed,
    references_exist,
)
from douban_pipeline_tests.harness.soak.audit.explained import (
    every_change_is_explained,
    every_write_is_signed,
)
from douban_pipeline_tests.harness.soak.audit.limits import limits_are_kept
from douban_pipeline_tests.harness.soak.audit.records import Records, read
from douban_pipeline_tests.harness.soak.audit.runs import (
    launches_are_honoured,
    launches_are_taken_after_a_restart,
    runs_ended_well,
    usage_is_flat,
)
from douban_pipeline_tests.harness.soak.audit.work import (
    every_decision_is_applied_once,
    every_video_is_reachable,
    no_task_is_doubled,
    no_task_is_lost,
)
from douban_pipeline_tests.harness.soak.evidence import (
    Evidence,
    Finding,
    Kill,
    RunRecord,
    Usage,
    runs_of,
    snapshot_of,
)

__all__ = ["Evidence", "Finding", "Kill", "RunRecord", "Usage", "audit", "runs_of", "snapshot_of"]

INVARIANTS: tuple[Callable[[Evidence, Records], Finding], ...] = (
    every_change_is_explained,
    every_write_is_signed,
    no_locked_value_changed,
    no_task_is_lost,
    no_task_is_doubled,
    every_video_is_reachable,
    every_decision_is_applied_once,
    limits_are_kept,
    usage_is_flat,
    log_agrees_with_itself,
    log_agrees_with_the_states,
    references_exist,
    runs_ended_well,
    batches_are_reversible,
    launches_are_honoured,
    launches_are_taken_after_a_restart,
)


def audit(evidence: Evidence) -> list[Finding]:
    """Return what became of every invariant, those that held too."""
    records = read(evidence)
    return [invariant(evidence, records) for invariant in INVARIANTS]
