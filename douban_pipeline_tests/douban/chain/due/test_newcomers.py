"""Videos that the feeds' resource sites added or changed make intake look at the library's rows of their titles."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import dagster as dg
import pytest
import sqlalchemy as sa

from douban_pipeline.core.database import open_engine
from douban_pipeline.douban.chain.due import newcomers
from douban_pipeline.douban.chain.due.intake import Intake
from douban_pipeline.douban.chain.due.jobs import take_in_changes
from douban_pipeline.douban.chain.due.newcomers import Newcomers
from douban_pipeline.douban.sensors import intake_sensor
from douban_pipeline.feeds.store.entries import hand_over
from douban_pipeline.feeds.store.tables import newcomer
from douban_pipeline.feeds.types import Entry
from douban_pipeline_tests.harness.fixtures.library import GivenSettings, video

FAR = timedelta(days=30)

_FOR_REAL = {"ops": {"take_in": {"config": {"dry_run": False}}}}


@pytest.fixture
def library(shared_library):
    """Five videos that are visited in a month, and the feeds' table beside them."""
    rows = [video(n, vod_name=name) for n, name in enumerate(("狂飙", "漫长的季节", "三体", "繁花", "三体"), start=1)]
    fresh = shared_library.renewed(rows, systems=("douban", "feeds"))
    newcomer.drop(fresh.engine, checkfirst=True)
    newcomer.create(fresh.engine)
    fresh.execute(sa.update(fresh.tables.video).values(douban_next_sync_at=fresh.clock.now() + FAR))
    yield fresh
    newcomer.drop(fresh.engine, checkfirst=True)


def told(library, *names, changed=(), engine=None):
    """Leave word as the feeds do."""
    entries = [Entry(f"g{name}", "", name, "", None, {"vod_id": "7"}, edit_publishes=True) for name in names]
    edited = [Entry(f"g{name}", "", name, "", None, {"vod_id": "7"}, edit_publishes=True) for name in changed]
    with (engine or library.engine).begin() as connection:
        hand_over(connection, "s1", entries, edited, int(library.clock.now().timestamp()))


def take(library, services=None):
    services = services or library.services
    return Newcomers(services).take(Intake.of(services))


def due(library):
    now = library.clock.now()
    return {vod_id for vod_id, state in library.states().items() if state["douban_next_sync_at"] <= now}


def test_rows_of_a_new_title_are_looked_at_and_those_without_a_subject_searched_again(library):
    told(library, "三体", "没有的片", "😀", changed=["狂飙"])
    library.execute("UPDATE mac_vod SET vod_year = '1999' WHERE vod_id = 1")  # a batch edit: vod_time stays
    assert not Intake.of(library.services).waiting()
    report = take(library)
    assert [(each.name, ids) for each, ids in report.taken] == [("狂飙", (1,)), ("三体", (3, 5))]
    assert (report.searched_again, report.waiting, report.given_up) == (2, 2, 0)
    # What only changed there is no reason to search again; but its row did change here, and that is.
    assert (report.intake.seen, report.intake.changed) == (3, 1)
    assert due(library) == {1, 3, 5}
    again = take(library)
    assert (again.taken, again.waiting) == ([], 2)


@pytest.mark.parametrize(
    "state",
    [
        {"douban_review_status": "CONFIRMED"},
        {"douban_review_status": "IGNORED"},
        {"douban_review_status": "REVIEW"},
        {"douban_sync_fail_count": 2},
    ],
)
def test_visits_of_others_stay_where_they_are(library, state):
    library.set_state(4, **state)
    told(library, "繁花")
    assert take(library).searched_again == 0
    assert due(library) == set()


def test_what_the_collector_does_not_bring_is_given_up_after_a_week(library):
    told(library, "没有的片")
    library.clock.advance(days=newcomers.DAYS, hours=-1)
    assert take(library).waiting == 1
    library.clock.advance(hours=2)
    assert take(library).given_up == 1
    assert take(library).waiting == 0


def test_the_wait_ends_also_for_what_was_not_looked_at(library, monkeypatch):
    monkeypatch.setattr(newcomers, "MOST", 1)
    told(library, "没有的片", "也没有的片", "还是没有的片")
    assert take(library).waiting == 1
    library.clock.advance(days=newcomers.DAYS, hours=1)
    told(library, "狂飙")
    report = take(library)
    assert ([each.name for each, _ in report.taken], report.given_up) == (["狂飙"], 3)
    assert take(library).given_up == 0


def test_one_that_changes_while_it_is_taken_is_taken_again(library):
    told(library, "繁花")

    class Meanwhile(Intake):
        def look_at(self, vod_ids, report):
            library.clock.advance(seconds=5)
            told(library, changed=["繁花"])
            super().look_at(vod_ids, report)

    assert len(Newcomers(library.services).take(Meanwhile.of(library.services)).taken) == 1
    assert len(take(library).taken) == 1
    assert take(library).taken == []


def test_they_are_read_where_a_setting_says_and_not_where_it_says_no(library, tmp_path):
    elsewhere = tmp_path / "feeds.sqlite"
    given = {"database_url": library.url, "feeds_url": f"sqlite:///{elsewhere}"}
    settings = library.services.settings
    there = replace(
        library.services, settings=settings.model_copy(update={"feeds_url": GivenSettings(**given).feeds_url})
    )
    assert take(library, there).taken == []
    assert not elsewhere.exists(), "asking makes no file"
    engine = open_engine(given["feeds_url"])
    newcomer.create(engine)
    told(library, "繁花", engine=engine)
    told(library, "狂飙")
    assert [each.name for each, _ in take(library, there).taken] == ["繁花"]
    engine.dispose()
    alone = replace(library.services, settings=settings.model_copy(update={"systems": ("douban",)}))
    assert take(library, alone).taken == [], "what another installation left"
    assert not Newcomers(alone).any_in_library()
    newcomer.drop(library.engine)
    assert take(library).taken == [], "an installation whose feeds are not set up yet"


def test_the_sensor_launches_and_the_run_shows_what_came(library):
    with dg.DagsterInstance.ephemeral() as instance:

        def tick(services):
            return intake_sensor(dg.build_sensor_context(instance=instance, resources={"services": services}))

        told(library, "没有的片")
        assert isinstance(tick(library.services), dg.SkipReason), "nothing can be done before the collector"
        told(library, "繁花")
        assert isinstance(tick(library.services), dg.RunRequest)
        done = take_in_changes.execute_in_process(
            _FOR_REAL, instance=instance, resources={"services": library.services}
        )
        [event] = [each for each in done.all_events if each.event_type_value == "STEP_OUTPUT"]
        shown = event.step_output_data.metadata
        assert (shown["newcomers_taken"].value, shown["newcomers_waiting"].value) == (1, 1)
        assert "繁花" in shown["newcomers"].value
        assert isinstance(tick(library.services), dg.SkipReason)
        settings = library.services.settings
        dead = GivenSettings(database_url=library.url, feeds_url="postgresql+psycopg2://nobody@127.0.0.1:1/x").feeds_url
        broken = replace(library.services, settings=settings.model_copy(update={"feeds_url": dead}))
        assert "来源系统的新片无法读取" in tick(broken).skip_message
        done = take_in_changes.execute_in_process(_FOR_REAL, instance=instance, resources={"services": broken})
        [event] = [each for each in done.all_events if each.event_type_value == "STEP_OUTPUT"]
        assert "newcomers_problem" in event.step_output_data.metadata
