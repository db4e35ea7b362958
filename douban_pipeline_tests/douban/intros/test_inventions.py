"""Two hundred intros by a model that invents in a known share: all of it is caught, and what is faithful passes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from douban_pipeline.cms.people import names_of_row
from douban_pipeline.demo.sample import load_subjects
from douban_pipeline_tests.douban.intros.room import Room, linked, room_of
from douban_pipeline_tests.harness.fixtures.library import build_library
from douban_pipeline_tests.stand_ins.faults import Fault, inventing
from douban_pipeline_tests.stand_ins.replay import ReplayServer

SHARE, STUBBORN = 0.5, 0.3
FAITHFUL = 0.95
"""Least share of faithful texts that must pass."""

CAUGHT_AS = {
    "invented_name": {"person"},
    "borrowed_name": {"person"},
    "invented_year": {"number"},
    "invented_number": {"number"},
    "invented_title": {"title"},
    "invented_link": {"address"},
    "invented_contact": {"contact"},
    "invented_award": {"claim"},
    "invented_rating": {"claim"},
    "invented_platform": {"claim", "advert"},
    "too_short": {"length"},
    "too_long": {"length"},
    "markup": {"markup"},
    "emoji": {"emoji"},
}

FILMS = [entry for entry in load_subjects() if not entry.get("fault") and entry["summary"]][:200]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Room, dict[tuple[str, int], Fault | None]]]:
    """The two hundred films after one run, and what the model was asked to invent about each."""
    faults_by_film: dict[tuple[str, int], Fault | None] = {}
    choose = inventing(SHARE, tuple(CAUGHT_AS), stubborn=STUBBORN)

    def invent(number, facts):
        return faults_by_film.setdefault((facts["title"], facts["year"]), choose(number, facts))

    rows = [linked(entry, vod_id, vod_content="<p>原有简介</p>") for vod_id, entry in enumerate(FILMS, start=1)]
    url = f"sqlite:///{tmp_path_factory.mktemp('inventions') / 'library.sqlite'}"
    with ReplayServer(FILMS) as upstream, build_library(url) as blank:
        house = room_of(blank, upstream, rows, run_seconds=1500)
        # As the intake of the library tells them.
        people, cms = house.library.services.people, house.library.cms
        people.remember(name for row in rows for name in names_of_row({"vod_writer": "", **row}, cms.widths))
        upstream.invent = invent
        house.run()
        yield house, faults_by_film


@pytest.fixture
def answers(written):
    """Every answer of the model with what was invented in it, the first of a film and the second apart."""
    house, faults_by_film = written
    first, second, seen = [], [], set()
    for intro in house.intros():
        rule = faults_by_film[intro["fact_sheet"]["title"], intro["fact_sheet"]["year"]]
        again = intro["vod_id"] in seen
        seen.add(intro["vod_id"])
        (second if again else first).append((intro, rule if rule and (rule.stubborn or not again) else None))
    return first, second


def codes(intro):
    return {violation["code"] for violation in intro["violations"]}


def test_every_invention_is_caught_for_what_it_is(answers, record_testsuite_property):
    invented = [(intro, rule) for part in answers for intro, rule in part if rule]
    missed = [(rule.fault, intro["intro_text"]) for intro, rule in invented if intro["state"] != "refused"]
    record_testsuite_property("inventions caught", f"{len(invented) - len(missed)} of {len(invented)}")
    assert missed == []
    for intro, rule in invented:
        assert codes(intro) & CAUGHT_AS[rule.fault], (rule.fault, intro["reason"], intro["intro_text"])


def test_what_is_faithful_passes(answers, record_testsuite_property):
    faithful = [intro for part in answers for intro, rule in part if not rule]
    refused = [(intro["reason"], intro["intro_text"]) for intro in faithful if intro["state"] != "written"]
    passed = len(faithful) - len(refused)
    record_testsuite_property("faithful intros passed", f"{passed} of {len(faithful)}")
    assert passed / len(faithful) >= FAITHFUL, refused


def test_nothing_invented_is_in_the_cms(written, answers):
    house, _ = written
    clean = {intro["vod_id"] for part in answers for intro, rule in part if not rule and intro["state"] == "written"}
    for vod_id, state in house.library.states().items():
        assert (house.content(vod_id) != "<p>原有简介</p>") is state["intro_locked"] is (vod_id in clean)
        assert bool(state["intro_ai_fail_count"]) is (vod_id not in clean)
    assert {change["vod_id"] for change in house.changes()} == clean
    assert house.failed_guards() == {}
    assert house.library.services.settings.llm_budget_usd_per_day > sum(intro["cost_usd"] for intro in house.intros())
