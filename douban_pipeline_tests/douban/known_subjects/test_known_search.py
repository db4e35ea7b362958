"""Searching begins with what is known: what it saves, and that it never takes the place of a search that is needed."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing

import pytest

from douban_pipeline.core.errors import SourceWall
from douban_pipeline.douban.known_subjects.archived import index_archived
from douban_pipeline.douban.known_subjects.known_search import (
    PROVIDER,
    archived_index,
    loaded_index,
    open_known_subjects,
)
from douban_pipeline.douban.known_subjects.name_index import NameIndex, build
from douban_pipeline.douban.known_subjects.subject_files import NamedSubject
from douban_pipeline_tests.douban.chain.match.test_requests import asked, facts, finder, ids
from douban_pipeline_tests.harness.fixtures.library import video
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, WHALE, row_of

NAMED = NamedSubject(RIVER["id"], RIVER["title"], "", (), RIVER["year"])


@pytest.fixture
def known(tmp_path):
    def make(*subjects):
        build(tmp_path / "loaded.sqlite", subjects, {"dump": len(subjects)})
        return open_known_subjects(tmp_path / "loaded.sqlite", tmp_path / "none.sqlite")

    return make


def test_a_known_subject_whose_people_agree_needs_no_search(stage, known):
    scenario = stage([row_of(RIVER, 4)], FILMS)
    found = finder(scenario, known=known(NAMED)).find(facts(scenario, 4))
    assert asked(scenario) == ([], [str(RIVER["id"])])
    assert (ids(found), found.requests, found.complete) == ([RIVER["id"]], 1, True)
    assert found.found_by(RIVER["id"]) == PROVIDER


def test_its_other_names_count(stage, known):
    scenario = stage([row_of(RIVER, 4, vod_name="另有其名的片子")], FILMS)
    named = NamedSubject(RIVER["id"], RIVER["title"], "", ("另有其名的片子",), RIVER["year"])
    found = finder(scenario, known=known(named)).find(facts(scenario, 4))
    assert asked(scenario)[1] == [str(RIVER["id"])]
    assert ids(found) == [RIVER["id"]]


@pytest.mark.parametrize(
    "row",
    [
        {"vod_director": "", "vod_actor": ""},
        {"vod_year": "0"},
        {"vod_director": "别人", "vod_actor": "另一个人"},
    ],
    ids=["no people", "no year", "other people"],
)
def test_what_is_not_sure_is_searched_for_as_ever(stage, known, row):
    scenario = stage([row_of(RIVER, 4, **row)], FILMS)
    found = finder(scenario, known=known(NAMED)).find(facts(scenario, 4))
    assert asked(scenario)[0], "the web was asked"
    without = finder(scenario).find(facts(scenario, 4))
    assert set(ids(found)) >= set(ids(without))
    assert found.hits == without.hits


def test_what_is_not_known_is_searched_for_and_costs_no_more(stage, known):
    scenario = stage([row_of(WHALE, 5)], FILMS)
    found = finder(scenario, known=known(NAMED)).find(facts(scenario, 5))
    assert (ids(found), found.requests) == ([WHALE["id"]], 2)


def test_a_known_title_of_somebody_else_is_neither_asked_about_nor_shown(stage, known):
    others = [NamedSubject(60_000 + number, f"长河{word}", "", (), 1990) for number, word in enumerate("东西南北")]
    scenario = stage([video(4, vod_name="长河无名", vod_year="2021")], FILMS)
    found = finder(scenario, known=known(*others)).find(facts(scenario, 4))
    assert (found.subjects, found.hits, asked(scenario)[1]) == ((), (), [])


def test_a_recheck_is_searched_for_too(stage, known):
    scenario = stage([row_of(RIVER, 4)], FILMS)
    finder(scenario, known=known(NAMED)).find(facts(scenario, 4), current=RIVER["id"])
    assert asked(scenario)[0], "the rivals of a link are looked for"


def test_what_the_archive_holds_is_known(stage, tmp_path):
    scenario = stage([row_of(RIVER, 4), row_of(RIVER, 5, vod_name=f"{RIVER['title']} 高清")], FILMS)
    finder(scenario).find(facts(scenario, 4))
    contents = index_archived(scenario.services.archive, tmp_path / "archived.sqlite")
    assert contents.sources == {"archive": contents.subjects}
    [subject] = NameIndex(tmp_path / "archived.sqlite").find([RIVER["title"]])
    assert (subject.douban_id, subject.title, subject.year) == (RIVER["id"], RIVER["title"], RIVER["year"])
    scenario.clock.advance(days=20)  # both answers are too old to be taken for what a source says now
    again = finder(scenario, known=open_known_subjects(tmp_path / "archived.sqlite")).find(facts(scenario, 5))
    assert (ids(again), again.requests) == ([RIVER["id"]], 1)


def test_errors_in_the_archive_tell_of_no_subject(stage, tmp_path):
    scenario = stage([row_of(RIVER, 4)], FILMS)
    scenario.upstream.faults.add("douban", "captcha")
    with pytest.raises(SourceWall):
        scenario.services.douban.subject(RIVER["id"], max_age=None)
    assert index_archived(scenario.services.archive, tmp_path / "archived.sqlite").subjects == 0


def test_an_index_that_cannot_be_read_is_passed_over_with_a_warning(tmp_path, caplog):
    path = tmp_path / "loaded.sqlite"
    path.write_bytes(b"broken" * 1000)
    with caplog.at_level(logging.WARNING):
        assert open_known_subjects(path) is None
    assert "index load FILE" in caplog.text


def test_a_damaged_index_fails_no_video(stage, tmp_path, caplog):
    scenario = stage([row_of(RIVER, 4)], FILMS)
    path = tmp_path / "loaded.sqlite"
    build(path, [NAMED], {"dump": 1})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE pair")
    with caplog.at_level(logging.WARNING):
        found = finder(scenario, known=open_known_subjects(path)).find(facts(scenario, 4))
    assert ids(found) == [RIVER["id"]], "the search found it"
    assert "damaged" in caplog.text


def test_runs_use_the_index_where_there_is_one(stage):
    scenario = stage([row_of(RIVER, 4)], FILMS)
    assert scenario.services.known_subjects is None, "there is none yet"
    build(loaded_index(scenario.services.settings.home), [NAMED], {})
    scenario = scenario.under()  # a run of its own
    assert scenario.services.known_subjects is not None
    assert scenario.run().success
    assert asked(scenario)[0] == []
    assert scenario.library.row(4)["vod_douban_id"] == RIVER["id"]


def test_the_nights_job_indexes_the_archive(stage):
    scenario = stage([row_of(RIVER, 4)], FILMS)
    scenario.services.douban.subject(RIVER["id"], max_age=None)
    run = scenario.launch("index_archive")
    assert run.success
    assert run.output["subjects"] == 1
    assert archived_index(scenario.services.settings.home).exists()
