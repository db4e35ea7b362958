"""Other processes work with the settings of this one."""

from __future__ import annotations

from pathlib import Path

import pytest

from douban_pipeline.douban.settings import load_settings
from douban_pipeline_tests.harness.benchmarks.stack_environment import FREE, pipeline_environment


def test_the_environment_gives_another_process_the_same_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = load_settings(
        database_url="mysql+pymysql://root:p%40ss@127.0.0.1:3306/library",
        excluded_type_ids={20, 6},
        field_policies={"vod_content": "never"},
        score_weights={"title": 46},
        daily_quotas={"bocha": 5},
        llm_fallback_models=("one", "two"),
        douban_url="http://127.0.0.1:1/douban.php",
        search_url="http://127.0.0.1:2/search",
        respect_vod_lock=False,
    )
    for name, value in pipeline_environment(own, tmp_path, batch_size=7, **FREE).items():
        monkeypatch.setenv(name, value)
    other = load_settings()
    changed = {"home": tmp_path, "batch_size": 7, **FREE}
    assert other.model_dump() == {**own.model_dump(), **changed}
    assert other.library_url == own.library_url
