"""How long the list of likely duplicates takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rapidfuzz.utils import default_process
from sqlalchemy import text, update

from douban_pipeline.douban.reports.lists.assets import duplicate_reports
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline_tests.harness.benchmarks.measuring import (
    SMALL,
    Figure,
    Measure,
    Target,
    World,
    bare_cursor,
    peak_memory_mb,
    stopwatch,
)
from douban_pipeline_tests.harness.fixtures.runs import function_of


def duplicates(world: World) -> list[Figure]:
    """Write the list of the whole library, with the ids that the CMS has as links that stand."""
    services = world.services
    before = peak_memory_mb()
    with _linked_as_the_cms_has_it(world):
        world.say("looking for duplicates")
        with stopwatch() as ours:
            found_groups = function_of(duplicate_reports)(services=services).metadata
        memory = peak_memory_mb()
        world.say("the same by the driver and rapidfuzz alone")
        with stopwatch() as bare:
            groups = _bare_groups(world)
    target = world.size <= SMALL
    by_subject, by_title = found_groups["groups_by_subject"], found_groups["groups_by_title"]
    found = f"{by_subject:,} groups by subject, {by_title:,} by title at {world.size:,}"
    return [
        Figure(
            "the list",
            ours.wall,
            "s",
            Target(most=20) if target else None,
            bare.wall,
            "bare SELECT, rapidfuzz's default_process, a dict",
            f"{found}; {ours.cpu:.0f} s of CPU in this process; the bare way finds {groups:,} groups of equal names",
        ),
        Figure(
            "peak memory",
            memory,
            "MB",
            Target(most=600) if target else None,
            note=f"{before:.0f} MB before it began at {world.size:,}",
        ),
    ]


@contextmanager
def _linked_as_the_cms_has_it(world: World) -> Iterator[None]:
    engine, video = world.services.engine, world.services.tables.video
    aside = f"{video.name}_aside"
    # The copy is what is changed and dropped again: putting a table of millions back row by row takes many minutes.
    with engine.begin() as connection:
        connection.execute(text(f"RENAME TABLE {video.name} TO {aside}"))
    try:
        with engine.begin() as connection:
            connection.execute(text(f"CREATE TABLE {video.name} LIKE {aside}"))
            connection.execute(text(f"INSERT INTO {video.name} SELECT * FROM {aside}"))
            linked = {"douban_review_status": str(ReviewStatus.CONFIRMED), "douban_id_source": "cms"}
            connection.execute(update(video).where(video.c.vod_douban_id > 0).values(linked))
        yield
    finally:
        with engine.begin() as connection:
            connection.execute(text(f"DROP TABLE IF EXISTS {video.name}"))
            connection.execute(text(f"RENAME TABLE {aside} TO {video.name}"))


def _bare_groups(world: World) -> int:
    """Group all videos by their names, folded by rapidfuzz, and by year and category; return how many groups."""
    vod = world.services.cms.vod.name
    members: dict[tuple[str, str, int], list[int]] = {}
    with bare_cursor(world.services.engine) as cursor:
        cursor.execute(f"SELECT vod_id, vod_name, vod_year, type_id, vod_douban_id FROM {vod}")
        for vod_id, name, year, type_id, _ in cursor.fetchall():
            members.setdefault((default_process(name), year, type_id), []).append(vod_id)
    return sum(len(group) > 1 for group in members.values())


MEASURES: tuple[Measure, ...] = (
    Measure("duplicates", "the list of likely duplicates over the whole library", duplicates),
)
