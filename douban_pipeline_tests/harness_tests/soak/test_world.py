"""The world of a soak: what Douban knows there, which videos come due when, and under which settings all runs."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest

from douban_pipeline.douban.settings import PREFIX, load_settings, variable
from douban_pipeline_tests.harness.fixtures.library import build_library, video
from douban_pipeline_tests.harness.generated.videos import work_id_of
from douban_pipeline_tests.harness.generated.works import known, subject_id_of
from douban_pipeline_tests.harness.soak.world import (
    SETTINGS,
    only_these,
    spread_visits,
    subjects_of,
)

ENVIRONMENT = {
    **{PREFIX + name: value for name, value in SETTINGS.items()},
    variable("openrouter_api_key"): "soak",
    f"{PREFIX}LLM_URL": "http://127.0.0.1:1/api",
}


def test_douban_knows_the_works_of_the_videos_each_once():
    ids = [subject["id"] for subject in subjects_of(150, seed=3)]
    works = {work_id_of(vod_id, 3) for vod_id in range(1, 151)}
    assert sorted(ids) == sorted({subject_id_of(work) for work in works if known(work, 3)})
    assert 0 < len(ids) <= len(works)


def test_the_settings_are_in_force_for_a_while_and_nothing_else_of_ours(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(f"{PREFIX}TOP_N", "7")
    before = dict(os.environ)
    with only_these(ENVIRONMENT):
        settings = load_settings()
    assert dict(os.environ) == before
    assert settings.top_n != 7
    assert (settings.dry_run, settings.restore_locked, settings.ai_intros) == (False, True, True)
    assert settings.run_seconds <= 60
    assert settings.lease == 2 * settings.longest_step
    assert settings.openrouter_api_key.get_secret_value() == "soak"


def test_videos_come_due_shard_after_shard(sqlite_url: str):
    with build_library(sqlite_url, [video(vod_id) for vod_id in range(1, 200)], taken_in=False) as library:
        library.intake.initialise(spread=True)
        spread_visits(library.services, [5, 2, 9], timedelta(minutes=30))
        now = library.clock.now()
        states = library.states().values()
    due = {shard: {row["douban_next_sync_at"] - now for row in states if row["shard"] == shard} for shard in (5, 2, 9)}
    assert due == {5: {timedelta(0)}, 2: {timedelta(minutes=10)}, 9: {timedelta(minutes=20)}}
