"""What the soak's outsiders do to the CMS is exactly what they write down, on SQLite and on MariaDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from threading import Thread

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import Library
from douban_pipeline_tests.harness.soak.audit.explained import every_change_is_explained, every_write_is_signed
from douban_pipeline_tests.harness.soak.audit.records import Records, read
from douban_pipeline_tests.harness.soak.evidence import Evidence, snapshot_of
from douban_pipeline_tests.harness.soak.journal import Entry, Fate, Journal
from douban_pipeline_tests.harness.soak.life import Life
from douban_pipeline_tests.harness.soak.outside import Outside
from douban_pipeline_tests.harness.soak.site import Site
from douban_pipeline_tests.harness.soak.values import canonical_row
from douban_pipeline_tests.harness_tests.soak.site_source import Films


@pytest.fixture
def library(shared_library: Library, tmp_path: Path) -> Library:
    source = Films()
    return shared_library.renewed([source.row(vod_id) for vod_id in range(1, 6)], home=tmp_path)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal.jsonl") as kept:
        yield kept


@pytest.fixture
def outside(library: Library, journal: Journal) -> Iterator[Outside]:
    way = Outside(library.settings.library_url, journal)
    yield way
    way.close()


@pytest.fixture
def site(outside: Outside) -> Site:
    return Site(outside, Films(), Random(1))


def done(journal: Journal) -> list[Entry]:
    return [entry for entry in journal.entries() if entry.happened]


def test_a_stale_form_restores_the_values_of_when_it_was_opened(library: Library, site: Site, journal: Journal) -> None:
    site.open_form(2)
    library.set_cms(2, vod_douban_id=90_000_102, vod_douban_score=7.9)
    site.save_form()
    assert library.row(2)["vod_douban_id"] == 0
    [entry] = done(journal)
    assert entry.edges()["vod_douban_id"] == ("90000102", "0")
    assert entry.edges()["vod_douban_score"] == ("7.9", "0.0")
    assert "vod_recycle_time" not in entry.edges()


def test_the_collector_replaces_what_its_rules_name_and_leaves_a_locked_row(library: Library, site: Site) -> None:
    library.set_cms(1, vod_actor="别人", vod_douban_id=5, vod_name="改过的名字")
    before = library.row(1)["vod_time"]
    site.collect(1)
    row = library.row(1)
    assert (row["vod_actor"] != "别人", row["vod_douban_id"], row["vod_name"]) == (True, 5, "改过的名字")
    assert row["vod_time"] > before
    library.set_cms(2, vod_actor="别人", vod_lock=1)
    assert site.collect(2) == 0
    assert library.row(2)["vod_actor"] == "别人"


def test_batch_edits_and_other_programs_leave_the_update_time_alone(
    library: Library, site: Site, journal: Journal
) -> None:
    times = [library.row(vod_id)["vod_time"] for vod_id in (1, 2, 3)]
    for _ in range(10):
        site.edit_in_batch([1, 2, 3])
        site.write_directly(2)
        site.toggle_lock(3)
        site.recycle(3)
        site.bring_back(3)
    assert [library.row(vod_id)["vod_time"] for vod_id in (1, 2, 3)] == times
    assert not any("vod_time" in entry.edges() for entry in done(journal))
    assert {entry.vod_id for entry in done(journal)} == {1, 2, 3}


def test_a_row_that_comes_and_goes_is_reported_in_every_column(library: Library, site: Site, journal: Journal) -> None:
    assert site.arrive(9)
    assert not site.arrive(9)
    in_cms = canonical_row(library.query("SELECT * FROM mac_vod WHERE vod_id = 9")[0])
    assert site.delete(9) == 1
    assert site.delete(9) == 0
    came, went = done(journal)
    assert came.after == went.before == in_cms


def test_two_writers_at_once_lose_no_write_of_each_other(library: Library, journal: Journal) -> None:
    """What one reads under the lock, the other cannot change before it is written: sums add up."""
    ways = [Outside(library.settings.library_url, journal) for _ in range(2)]

    def count_up(way: Outside) -> None:
        for _ in range(15):
            way.change("program", "counted", [1], lambda row: {"vod_hits": row["vod_hits"] + 1})

    threads = [Thread(target=count_up, args=(way,)) for way in ways]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for way in ways:
        way.close()
    assert library.query("SELECT vod_hits FROM mac_vod WHERE vod_id = 1") == [{"vod_hits": 30}]
    assert sorted(int(str(entry.edges()["vod_hits"][1])) for entry in done(journal)) == list(range(1, 31))


def test_a_value_that_does_not_fit_is_no_write(library: Library, outside: Outside, journal: Journal) -> None:
    if not library.mysql:
        pytest.skip("SQLite keeps whatever it is given")
    assert outside.change("program", "wrote", [1], lambda row: {"vod_area": "很" * 30}) == 0
    [entry] = journal.entries()
    assert entry.fate is Fate.MISSED


class GoneError(Exception):
    """What a driver says when the server is gone."""


@pytest.mark.parametrize(("took_effect", "fate"), [(True, "done"), (False, "missed")])
def test_a_write_whose_connection_died_is_marked_and_looked_up(
    library: Library, outside: Outside, journal: Journal, took_effect: bool, fate: str
) -> None:
    if not library.mysql:
        pytest.skip("SQLite has no connection that could die")

    def die(_connection: object, cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("UPDATE"):
            raise OperationalError(statement, {}, GoneError("server has gone away"))

    when = "after_cursor_execute" if took_effect else "before_cursor_execute"
    sa.event.listen(outside.engine, when, die)
    assert outside.change("admin", "saved", [1], lambda row: {"vod_tag": "热播"}) == 0
    sa.event.remove(outside.engine, when, die)
    [entry] = journal.entries()
    assert entry.fate is Fate.UNKNOWN
    assert entry.edges() == {"vod_tag": ("", "热播")}
    assert outside.settle() == 1
    [entry] = journal.entries()
    assert (entry.looked, entry.doubtful) == (fate, True)


def test_a_lively_hour_is_explained_by_its_journal_alone(library: Library, journal: Journal) -> None:
    initial = snapshot_of(library.services)
    life = Life(
        services=library.services,
        journal=journal,
        rng=Random(7),
        seed=1,
        videos=5,
        most_arrivals=5,
        source=Films(),
    )
    acts = {life.step() for _ in range(120)}
    life.settle()
    life.close()
    assert {"collected", "saved a form", "arrived", "deleted", "typed an id"} <= acts
    assert not any("Error" in act for act in acts)
    evidence = Evidence(library.services, journal, initial, {}, {}, [], START, START, START)
    records = Records(library.engine, library.prefix)
    finding = every_change_is_explained(evidence, records)
    assert finding.held, finding.examples
    assert finding.checked > 5
    library.set_cms(1, vod_writer="没有人写过")
    assert not every_change_is_explained(evidence, records).held


def test_an_id_that_the_site_cleared_is_told_once_by_the_log_and_the_journal(
    library: Library, outside: Outside, journal: Journal
) -> None:
    library.set_cms(1, vod_douban_id=90_000_101)
    library.intake.sweep(0, 1)
    initial = snapshot_of(library.services)
    outside.change("admin", "cleared an id", [1], lambda row: {"vod_douban_id": 0})
    library.intake.sweep(0, 1)
    evidence = Evidence(library.services, journal, initial, {}, {}, [], START, START, START)
    records = read(evidence)
    assert [change.action for change in records.changes] == ["clear_id"]
    for audit in (every_change_is_explained, every_write_is_signed):
        finding = audit(evidence, records)
        assert finding.held, finding.examples
