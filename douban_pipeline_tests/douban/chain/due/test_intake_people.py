"""Whoever looks at the CMS's rows tells the dictionary of people whom they name."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import video

VIDEOS = [
    video(7, vod_actor="张国荣,张丰毅", vod_director="陳凱歌", vod_writer="芦苇,李碧华"),
    video(8, vod_actor="内详", vod_director=""),
]
NAMES = {"张国荣", "张丰毅", "陳凱歌", "陈凯歌", "芦苇", "李碧华"}
"""Traditional names are kept in both forms: an introduction is simplified before it is looked through."""


@pytest.fixture
def library(shared_library):
    return shared_library.renewed(VIDEOS, taken_in=False)


def names(library):
    with library.engine.connect() as connection:
        return set(connection.execute(sa.select(library.tables.person.c.name)).scalars())


@pytest.mark.parametrize("look", ["initialise", "sweep"])
def test_a_library_that_was_taken_in_before_there_was_one_fills_it_too(library, look):
    library.intake.initialise()
    library.execute(sa.delete(library.tables.person))
    before = library.states()
    report = library.intake.initialise() if look == "initialise" else library.intake.sweep(0, 1)
    assert (report.new, report.changed) == (0, 0)
    assert names(library) == NAMES
    assert library.states() == before


def test_a_changed_row_brings_its_new_people_and_the_old_ones_stay(library):
    library.intake.initialise()
    library.clock.advance(minutes=5)
    vod = library.cms.vod
    library.execute(
        sa.update(vod).where(vod.c.vod_id == 8).values(vod_actor="巩俐", vod_time=int(START.timestamp()) + 60)
    )
    library.intake.changes()
    assert names(library) == NAMES | {"巩俐"}


def test_a_writer_is_no_ground_of_a_verdict(library):
    library.intake.initialise()
    before = library.states()
    library.execute(sa.update(library.cms.vod).values(vod_writer="王倦"))
    assert library.intake.sweep(0, 1).changed == 0
    assert library.states() == before
    assert names(library) == NAMES | {"王倦"}
