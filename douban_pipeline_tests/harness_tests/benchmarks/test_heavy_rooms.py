"""What the heavy rooms are measured by: planted rows are what runs leave, and nothing of them stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.services import open_services
from douban_pipeline_tests.conftest import server_url
from douban_pipeline_tests.harness.benchmarks.measures import archive_size, duplicates, reverting
from douban_pipeline_tests.harness.benchmarks.measuring import Measure, World
from douban_pipeline_tests.harness.benchmarks.planting import planted_changes, planted_verdicts, spread
from douban_pipeline_tests.harness.benchmarks.prepare import fill_library, take_in
from douban_pipeline_tests.harness.fixtures.library import GivenSettings
from douban_pipeline_tests.harness.rig.databases import MARIADB, scratch_database

SIZE = 300
MEASURES = (*duplicates.MEASURES, *reverting.MEASURES, *archive_size.MEASURES)

pytestmark = pytest.mark.mariadb


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Iterator[World]:
    """A small generated library, filled and taken in."""
    server_url("mariadb")
    folder: Path = tmp_path_factory.mktemp("world")
    with scratch_database(MARIADB, "test_heavy") as url:
        address = url.render_as_string(hide_password=False)
        services = open_services(GivenSettings(database_url=address, dry_run=False, home=folder))
        try:
            fill_library(services, SIZE, 1, lambda words: None)
            take_in(services, lambda words: None)
            yield World(services, SIZE, 1, folder, lambda words: None)
        finally:
            services.close()


@pytest.fixture(autouse=True)
def nothing_stays(world: World) -> Iterator[None]:
    """Whatever a test does, the library is the same afterwards."""
    before = contents(world)
    yield
    assert contents(world) == before


def contents(world: World) -> dict[str, int]:
    with world.services.engine.connect() as connection:
        names = sa.inspect(connection).get_table_names()
        return {name: connection.execute(sa.text(f"CHECKSUM TABLE `{name}`")).one()[1] for name in names}


def count(world: World, table: sa.Table, *conditions: sa.ColumnElement[bool]) -> int:
    with world.services.engine.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(table).where(*conditions)).scalar_one()


@pytest.mark.parametrize("measure", MEASURES, ids=[measure.name for measure in MEASURES])
def test_every_measure_finds_figures(world, measure: Measure):
    figures = [*measure.run(world)]
    assert figures
    assert all(figure.value > 0 for figure in figures)
    assert all((figure.baseline is None) == (not figure.against) for figure in figures)


def test_planted_verdicts_rest_on_archived_answers(world):
    tables = world.services.tables
    verdicts_before = count(world, tables.verdict)
    with planted_verdicts(world, spread(SIZE, 100)) as planted:
        assert count(world, tables.verdict) == verdicts_before + planted.videos == 100
        fetched = count(world, tables.candidate, tables.candidate.c.fetched == sa.true())
        assert fetched == planted.fetched > 100
        answered = tables.candidate.c.snapshot_id.in_(sa.select(tables.snapshot.c.snapshot_id))
        assert count(world, tables.candidate, answered) == fetched
        assert 3.5 < planted.candidates / planted.videos < 5.5
        kinds = sa.select(tables.verdict.c.verdict.distinct())
        with world.services.engine.connect() as connection:
            assert set(connection.execute(kinds).scalars()) >= {"CONFIRMED", "REVIEW"}


def test_planted_changes_stand_in_the_cms(world):
    with planted_changes(world, [3, 4, 250], writes=2) as batch_id:
        log, vod = world.services.tables.log, world.services.cms.vod
        query = sa.select(log.c.new_values, vod.c.vod_douban_id, vod.c.vod_actor).join(
            vod, vod.c.vod_id == log.c.vod_id
        )
        with world.services.engine.connect() as connection:
            rows = connection.execute(query.where(log.c.batch_id == batch_id)).all()
        assert len(rows) == 3
        assert count(world, log) == 6
        for new, douban_id, actors in rows:
            assert (new["vod_douban_id"], new["vod_actor"]) == (douban_id, actors)
