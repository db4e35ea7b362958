"""The code location on tables and lists of a test's own: what it is given, its jobs, and what a run says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg

from douban_pipeline.comments.definitions import build_defs
from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline_tests.comments.sections import plant_comments, plant_section

COMMENTS = [
    {"like_count": 0, "age_hours": 3, "text": "这一集的配乐真好"},
    {"like_count": 0, "age_hours": 5, "text": "加群领取资源"},
    {"like_count": 0, "age_hours": 7, "text": "还行"},
]


def given_settings(home: Path, **values: Any) -> CommentsSettings:
    return CommentsSettings(_env_file=None, home=home, **values)


def planted(services: CommentsServices, section_id: int = 1) -> list[int]:
    counts = {"total_count": 3, "visible_count": 3, "root_count": 3, "floor_seq": 3}
    plant_section(services.engine, section_id, **counts)
    return plant_comments(services.engine, section_id, COMMENTS)


def run(services: CommentsServices, instance: dg.DagsterInstance, job: str, **config: Any) -> dg.ExecuteInProcessResult:
    defs = build_defs(settings=services.settings, resource_overrides={"services": services})
    ops = {name: {"config": values} for name, values in config.items()}
    found = defs.get_repository_def().get_job(job)
    return found.execute_in_process(instance=instance, raise_on_error=False, run_config={"ops": ops})


def metadata(result: dg.ExecuteInProcessResult, asset: str) -> dict[str, Any]:
    [found] = result.asset_materializations_for_node(asset)
    return {name: value.value for name, value in found.metadata.items()}


def shown(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    [found] = [each for each in result.all_node_events if each.is_successful_output]
    return {name: value.value for name, value in found.step_output_data.metadata.items()}


def problem(result: dg.ExecuteInProcessResult) -> str:
    [failed] = [each for each in result.all_node_events if each.is_step_failure]
    return failed.step_failure_data.error.message


def outcome(result: dg.ExecuteInProcessResult) -> dict[str, bool]:
    return {each.check_name: each.passed for each in result.get_asset_check_evaluations()}
