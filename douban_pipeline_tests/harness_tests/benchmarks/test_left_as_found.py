"""A measure leaves the library as it found it."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from douban_pipeline.cms.people import People
from douban_pipeline.douban.store.states import TaskStage, TaskType
from douban_pipeline.douban.store.tasks import NewTask
from douban_pipeline_tests.harness.benchmarks.left_as_found import left_as_found
from douban_pipeline_tests.harness.fixtures.library import Library, build_library, video


def contents(library: Library) -> dict[str, list[Any]]:
    with library.engine.connect() as connection:
        names = sa.inspect(connection).get_table_names()
        return {name: sorted(map(str, connection.execute(sa.text(f"SELECT * FROM {name}")))) for name in names}


def test_rows_that_were_added_changed_or_removed_are_restored(sqlite_url: str) -> None:
    with build_library(sqlite_url, [video(1), video(2), video(3)]) as library:
        tables, cms = library.tables, library.services.cms
        _ = library.services.gate
        library.enqueue(library.queue(), [NewTask(3, TaskType.MATCH_DOUBAN_ID, TaskStage.SEARCH)])
        library.clock.advance(hours=1)
        people = People(library.engine, tables.person, library.clock)
        people.remember(["张曼玉"])
        before = contents(library)
        with left_as_found(library.services, [1, 2]):
            library.enqueue(library.queue(), [NewTask(1, TaskType.MATCH_DOUBAN_ID, TaskStage.SEARCH)])
            library.execute(sa.update(cms.vod).where(cms.vod.c.vod_id == 1).values(vod_name="other"))
            library.execute(sa.delete(tables.video).where(tables.video.c.vod_id == 2))
            library.execute(sa.update(tables.gate).values(granted=7))
            assert people.remember(["王家卫"]) == 1
            assert contents(library) != before
        assert contents(library) == before
