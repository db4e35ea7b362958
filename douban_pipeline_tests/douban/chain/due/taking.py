"""What is due, and taken on, in a library of a test."""

from __future__ import annotations

from douban_pipeline.douban.chain.due.due_videos import DueScope, DueVideos
from douban_pipeline.douban.chain.due.shard_work import ShardWork


def due_of(library):
    return DueVideos(library.services)


def work_of(library):
    return ShardWork(library.engine, library.tables, library.settings, library.clock)


FIRST_SHARDS = range(8)
"""Those of the videos that most tests have; a shard takes its time, whether it has any or not."""


def take(library, shards=FIRST_SHARDS, scope=DueScope.due, limit=50, run_id="run"):
    return due_of(library).take(library.queue(run_id), shards, scope=scope, limit=limit, run_id=run_id)


def taken(library, **given):
    return [video.vod_id for video in take(library, **given).taken]
