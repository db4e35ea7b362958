"""Every job for people, launched on everything that the demo left: no row of it may crash one."""

from __future__ import annotations

import importlib
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shutil import copytree
from typing import Any

import dagster as dg
import pytest
import yaml

from douban_pipeline.demo.sample import load_subjects
from douban_pipeline.demo.setup import demo_environment
from douban_pipeline_tests.conftest import missing
from douban_pipeline_tests.documents import PROJECT
from douban_pipeline_tests.stand_ins.replay import ReplayServer

LEFT = PROJECT / ".douban_pipeline" / "demo"
"""Where `make demo` leaves its library."""
SYSTEMS = ("douban", "feeds", "digest", "comments")
"""TMDB's databases are servers, which have ended."""
REFUSED = {
    "import_decisions": "没有文件 'review.csv'",
    "lift_brakes": "没有处于暂停状态",
    "resend_notifications": "没有这样的消息",
    "export_comments": "没有表 mac_comment",
    "retire_comment_rule": "没有启用中的规则",
}
"""Jobs for which the demo leaves nothing to do, and what they say then."""


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of what the demo left, which the environment names."""
    if not (LEFT / "reports").is_dir():
        missing("demo", "`make demo` has left no library here")
    home = tmp_path_factory.mktemp("demo")
    for file in LEFT.glob("*.sqlite"):
        with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(home / file.name)) as target:
            source.backup(target)
    for folder in ("reports", "cache"):
        copytree(LEFT / folder, home / folder)
    with ReplayServer(load_subjects()) as upstream, pytest.MonkeyPatch.context() as patch:
        addresses = {"douban_url": upstream.douban_url, "search_url": upstream.search_url, "llm_url": upstream.llm_url}
        for name, value in demo_environment(home, **addresses).items():
            patch.setenv(name, value)
        yield home


def config_of(job: dg.JobDefinition, home: Path) -> dict[str, Any]:
    """Return the config of the job's first example as a dry run, of everything in the library."""
    example = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", job.description or "", re.DOTALL)[0])["ops"]
    [(op, given)] = example.items()
    with (
        closing(sqlite3.connect(home / "library.sqlite")) as library,
        closing(sqlite3.connect(home / "feeds.sqlite")) as feeds,
    ):
        videos = [row[0] for row in library.execute("SELECT vod_id FROM mac_douban_video")]
        linked = "SELECT vod_id FROM mac_douban_video WHERE douban_review_status = 'CONFIRMED' AND NOT intro_locked"
        retold = [row[0] for row in library.execute(linked)]
        sources = [row[0] for row in feeds.execute("SELECT title FROM feed_source")]
    everything: dict[str, Any] = {"vod_ids": videos, "most": 1000, "max_rows": 1000, "dry_run": True}
    own = {
        "redo_intros": {"vod_ids": retold},
        "revert_changes": {"batch_id": "", "since": "2020-01-01 00:00"},
        "record_decisions": {"decisions": [{"vod_id": vod_id, "action": "ignore", "days": 9} for vod_id in videos]},
        "record_batch_decisions": {"accept_conflicts": True},
        "pause_sources": {"sources": sources},
        "poll_sources_now": {"sources": sources},
    }
    config = {**job.run_config["ops"][op]["config"], **given["config"]}
    config |= {name: value for name, value in everything.items() if name in config}
    return {"ops": {op: {"config": config | own.get(job.name, {})}}}


@pytest.mark.long
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_job_for_people_can_be_launched_on_what_the_demo_left(system: str, left: Path) -> None:
    definitions = importlib.import_module(f"douban_pipeline.{system}.definitions").build_defs()
    jobs = [job for job in definitions.get_repository_def().get_all_jobs() if job.tags.get("pipeline") == "person"]
    assert jobs
    said: dict[str, str] = {}
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    with dg.DagsterInstance.ephemeral() as instance:
        for job in jobs:
            run = job.execute_in_process(
                instance=instance, run_config=config_of(job, left) | quiet, raise_on_error=False
            )
            for event in run.all_events:
                if event.is_step_failure:
                    failure = event.step_failure_data
                    refusal = failure.user_failure_data
                    said[job.name] = (refusal.description if refusal else "") or str(failure.error)
    expected = {job.name: REFUSED[job.name] for job in jobs if job.name in REFUSED}
    assert {name: words for name, words in said.items() if expected.get(name, "\0") not in words} == {}
    assert said.keys() == expected.keys()
