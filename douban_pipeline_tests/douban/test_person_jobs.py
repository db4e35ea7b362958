"""Every job for people of the code location: its launchpad and its manual come from its config class."""

from __future__ import annotations

import re
from typing import Any, get_type_hints

import dagster as dg
import pytest
import yaml

from douban_pipeline.douban.definitions import build_defs
from douban_pipeline_tests.harness.fixtures.library import GivenSettings
from douban_pipeline_tests.harness.fixtures.locations import fits_schema

JOBS = {
    job.name: job
    for job in build_defs(settings=GivenSettings()).get_repository_def().get_all_jobs()
    if job.tags.get("pipeline") == "person" or job.name == "prune_archive"
}


def config_of(job: dg.JobDefinition) -> tuple[str, type[dg.Config], dict[str, Any]]:
    """Return the name of a job's op, the class of its config, and what its launchpad opens with."""
    [(op, opened)] = job.run_config["ops"].items()
    function = job.get_node_named(op).definition.compute_fn.decorated_fn
    return op, get_type_hints(function)["config"], opened["config"]


def test_these_are_the_jobs_for_people() -> None:
    assert set(JOBS) == {
        *("record_decisions", "record_batch_decisions", "import_decisions", "revert_changes", "video_history"),
        *("redo_intros", "set_gate", "lift_brakes", "rescore_library", "reparse_archive", "prune_archive"),
        *("queue_matches", "settle_duplicates", "recheck_links", "revisit_not_found"),
        *("settle_cleared_ids", "settle_cms_edits"),
    }


@pytest.mark.parametrize("name", JOBS)
def test_the_launchpad_opens_with_the_defaults_of_the_config_class(name: str) -> None:
    job = JOBS[name]
    _, config_class, opened = config_of(job)
    assert fits_schema(job, job.run_config)
    assert list(opened) == list(config_class.model_fields), "complete, and in the order of the class"
    defaults = {
        field: default
        for field, info in config_class.model_fields.items()
        if not info.is_required() and (default := info.get_default(call_default_factory=True)) is not None
    }
    parsed = config_class(**opened).model_dump()
    assert {field: parsed[field] for field in defaults} == defaults
    assert opened.get("dry_run", True) is True
    assert not opened.get("queue_changed"), "as it opens, a launch changes nothing"


@pytest.mark.parametrize("name", JOBS)
def test_the_examples_of_the_manual_can_be_launched(name: str) -> None:
    job = JOBS[name]
    op, config_class, _ = config_of(job)
    manual = job.description or ""
    assert not re.search(r"\{(fields|examples|links?)\}", manual)
    examples = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", manual, re.DOTALL)]
    assert examples
    for example in examples:
        assert dg.validate_run_config(job, example)
        assert config_class(**example["ops"][op]["config"])


@pytest.mark.parametrize("name", JOBS)
def test_the_manual_names_every_field(name: str) -> None:
    job = JOBS[name]
    _, config_class, _ = config_of(job)
    manual = job.description or ""
    assert set(re.findall(r"^ *- `(\w+)`：", manual, re.MULTILINE)) >= set(config_class.model_fields)


def test_a_misspelt_action_is_answered_with_those_there_are() -> None:
    decisions = [{"vod_id": 1, "action": "chose"}]
    config = {"reviewer": "小王", "note": "", "dry_run": True, "decisions": decisions}
    with pytest.raises(dg.DagsterInvalidConfigError, match=r"confirm_top1, choose, set_id, .*sync_now\) got chose"):
        dg.validate_run_config(JOBS["record_decisions"], {"ops": {"store_decisions": {"config": config}}})
