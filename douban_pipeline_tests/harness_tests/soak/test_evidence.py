"""Dagster's own record of its runs, as the auditor is told of it."""

from __future__ import annotations

import dagster as dg

from douban_pipeline_tests.harness.soak.audit.runs import _excuse
from douban_pipeline_tests.harness.soak.evidence import runs_of


@dg.op
def well() -> None:
    """Do nothing."""


@dg.op
def refuse() -> None:
    """Refuse what a person asked for, as the jobs of people do."""
    raise dg.Failure("已记录 0 条，拒绝 1 条", allow_retries=False)


@dg.op
def break_down() -> None:
    """Break down as a bug does."""
    try:
        raise KeyError("vod_name")
    except KeyError as error:
        raise RuntimeError("no such column") from error


QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def job(op: dg.OpDefinition, name: str) -> dg.JobDefinition:
    return dg.GraphDefinition(name=name, node_defs=[op]).to_job(name=name, tags={"pipeline": "person"})


def test_runs_are_reported_with_what_failed_first() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        jobs = ((well, "well"), (refuse, "record_decisions"), (break_down, "revert_changes"))
        ids = [
            job(op, name).execute_in_process(instance=instance, raise_on_error=False, run_config=QUIET).run_id
            for op, name in jobs
        ]
        fine, refused, broken = runs_of(instance, {ids[0]})
    assert [fine.run_id, refused.run_id, broken.run_id] == ids
    assert (fine.status, fine.error, fine.killed_by_us) == ("SUCCESS", "", True)
    assert "已记录 0 条" in refused.error
    assert "KeyError" in broken.error
    assert refused.ended is not None
    assert refused.began is not None
    assert refused.ended >= refused.began
    assert refused.tags["pipeline"] == "person"
    assert _excuse(refused, ()) == "refused a person's request"
    assert _excuse(broken, ()) == ""
