"""Videos of the library that are due, and the upstream that knows just their works."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select, update

from douban_pipeline.core.database import chunks, reading
from douban_pipeline.douban.store.videos import cms_locked
from douban_pipeline_tests.harness.benchmarks.left_as_found import left_as_found
from douban_pipeline_tests.harness.benchmarks.measuring import World
from douban_pipeline_tests.harness.benchmarks.requests_seen import TimedReplay
from douban_pipeline_tests.harness.benchmarks.stack_environment import pipeline_environment
from douban_pipeline_tests.harness.generated.videos import work_id_of
from douban_pipeline_tests.harness.generated.works import known, subject_id_of, work_of

LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)
"""Whoever is due since then comes before all others."""


def videos_of_shard(world: World, shard: int, count: int, *, unmatched: bool = False) -> list[int]:
    """Return the first ``count`` videos of a shard that are visited at all, fewer if it has no more.

    The CMS's own lock keeps the chain from a video: whoever counted one of those would wait for it in vain.

    Args:
        world: Where.
        shard: Which.
        count: How many.
        unmatched: Only videos without a subject.
    """
    video = world.services.tables.video
    query = select(video.c.vod_id).where(
        video.c.shard == shard,
        video.c.douban_next_sync_at.is_not(None),
        ~cms_locked(world.services.tables, world.services.settings.table_prefix),
    )
    if unmatched:
        query = query.where(video.c.vod_douban_id == 0)
    with reading(world.services.engine) as connection:
        return list(connection.execute(query.order_by(video.c.vod_id).limit(count)).scalars())


def make_due(world: World, vod_ids: Sequence[int], since: datetime = LONG_AGO) -> None:
    """Let videos be due ``since``."""
    video = world.services.tables.video
    with world.services.engine.begin() as connection:
        for some in chunks(vod_ids):
            connection.execute(update(video).where(video.c.vod_id.in_(some)).values(douban_next_sync_at=since))


def subjects_of(world: World, vod_ids: Sequence[int]) -> list[dict[str, Any]]:
    """Return the subjects of the videos' works, as far as Douban knows them, in the replay upstream's form."""
    works = {work_id_of(vod_id, world.seed) for vod_id in vod_ids}
    subjects = {subject_id_of(work): work_of(work, world.seed) for work in works if known(work, world.seed)}
    return [subjects[number] for number in sorted(subjects)]


@contextmanager
def due_at_upstream(
    world: World, vod_ids: Sequence[int], home: Path, **changes: Any
) -> Iterator[tuple[TimedReplay, dict[str, str]]]:
    """Let videos be due and an upstream know their works; all is as before after the block.

    Args:
        world: Where.
        vod_ids: Which.
        home: `DOUBAN_PIPELINE_HOME` of who works on them.
        changes: Settings of theirs that are to be others.

    Yields:
        The upstream, and the variables under which other processes work on the videos; they write.
    """
    with left_as_found(world.services, vod_ids), TimedReplay(subjects_of(world, vod_ids)) as upstream:
        make_due(world, vod_ids)
        yield (
            upstream,
            pipeline_environment(
                world.services.settings,
                home,
                douban_url=upstream.douban_url,
                search_url=upstream.search_url,
                search_provider="searxng",
                dry_run=False,
                **changes,
            ),
        )
