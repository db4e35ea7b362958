"""A measure counts only videos that the chain visits."""

from __future__ import annotations

from pathlib import Path

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline_tests.harness.benchmarks.due_batch import videos_of_shard
from douban_pipeline_tests.harness.benchmarks.measuring import World
from douban_pipeline_tests.harness.fixtures.library import build_library, video
from douban_pipeline_tests.harness.generated.videos import video_of


def test_a_video_that_the_site_locked_is_not_waited_for(sqlite_url: str, tmp_path: Path) -> None:
    """With seed 1 the first video of shard 31 is locked: of 64 videos one was then never done."""
    assert video_of(31, 1, SystemClock().now())["vod_lock"] == 1
    rows = [video(31, vod_lock=1), video(31 + SHARDS), video(32)]
    with build_library(sqlite_url, rows) as library:
        world = World(library.services, len(rows), 1, tmp_path, lambda _: None)
        assert [videos_of_shard(world, shard, 1) for shard in (31, 32, 33)] == [[31 + SHARDS], [32], []]
