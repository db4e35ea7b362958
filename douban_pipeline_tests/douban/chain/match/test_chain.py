"""Several search providers, one after another: what one cannot say the next one does, and half an answer is none."""

from __future__ import annotations

from datetime import timedelta

import pytest

from douban_pipeline.core.gate_rules import GateState
from douban_pipeline_tests.harness.fixtures.library import video
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, TRAM, WHALE, row_of

VIDEOS = [row_of(RIVER, 4), row_of(WHALE, 5), row_of(TRAM, 6)]
SUBJECTS = {4: 90_000_101, 5: 90_000_102, 6: 90_000_103}
UNKNOWN = video(7, vod_name="查无此片之谜", vod_year="2021", vod_director="某人")
KEY = "sk-very-secret"


@pytest.fixture
def chained(stage):
    """Set a scenario whose chain asks ``providers`` of the replay, in their order."""

    def play(videos, *providers, **options):
        scenario = stage(videos, FILMS)
        urls = {name: getattr(scenario.upstream, f"{place}_url") for name, place in ENDPOINTS.items()}
        chain = {name: urls[name] for name in providers}
        # One call after the other, so that what is counted does not rest on who came first.
        alone = {"videos_at_once": 1}
        return scenario.under(search_provider="chain", search_chain=chain, bocha_api_key=KEY, **alone, **options)

    return play


ENDPOINTS = {"searxng": "search", "douban_suggest": "suggest", "bocha": "bocha"}


def asked(scenario):
    return {name: scenario.upstream.requests.count(name) for name in ENDPOINTS.values()}


def gates(scenario):
    return {status.source: status for status in scenario.services.gate.status()}


def linked(scenario):
    return {vod_id: scenario.cms(vod_id, "vod_douban_id")[0] for vod_id in SUBJECTS}


@pytest.mark.parametrize(
    ("fault", "second"),
    [
        ("forbidden", "bocha"),
        ("forbidden", "douban_suggest"),
        ("captcha", "douban_suggest"),
        ("throttled", "douban_suggest"),
        ("server_error", "bocha"),
    ],
)
def test_what_the_first_cannot_say_the_second_does(chained, fault, second):
    scenario = chained(VIDEOS, "searxng", second)
    scenario.upstream.faults.add("search", fault)
    run = scenario.play()
    assert run.success
    assert (run.metadata("search_candidates")["deferred"], run.metadata("search_candidates")["failed"]) == (0, 0)
    assert run.metadata("synced_fields")["written"] == 3
    assert linked(scenario) == SUBJECTS
    assert {verdict["verdict"] for verdict in scenario.verdicts()} == {"CONFIRMED"}
    assert asked(scenario)[ENDPOINTS[second]] == 3
    if fault in ("forbidden", "throttled"):
        assert gates(scenario)["searxng"].state is GateState.OPEN
        assert asked(scenario)["search"] == 1, "while it is open, nobody asks it"


def test_a_spent_quota_is_seen_and_goes_on_to_the_next(chained):
    scenario = chained(VIDEOS, "bocha", "searxng", daily_quotas={"bocha": 1})
    assert scenario.play().metadata("synced_fields")["written"] == 3
    assert linked(scenario) == SUBJECTS
    assert asked(scenario) == {"search": 2, "bocha": 1, "suggest": 0}
    status = gates(scenario)["bocha"]
    assert (status.used_today, status.requests_per_day, status.state) == (1, 1, GateState.CLOSED)


def test_nobody_knows_it_only_when_everybody_says_so(chained):
    scenario = chained([*VIDEOS, UNKNOWN], "searxng", "bocha")
    scenario.services.gate.open("bocha", scenario.clock.now() + timedelta(hours=6), "维护")
    run = scenario.play()
    assert run.success
    assert linked(scenario) == SUBJECTS, "the others are not kept waiting"
    assert scenario.verdicts(7) == [], "an empty answer and an unasked provider are no verdict"
    assert scenario.task(7)["status"] == "PENDING"
    assert "bocha" in scenario.task(7)["last_error"]
    scenario.clock.advance(hours=7)
    assert scenario.play().success
    assert [verdict["verdict"] for verdict in scenario.verdicts(7)] == ["NOT_FOUND"]
    (verdict,) = scenario.verdicts(7)
    sources = [scenario.services.archive.get(number).source for number in verdict["snapshots"]]
    assert sorted(sources) == ["bocha"] * 3 + ["searxng"] * 3, "it rests on what both of them said"


def test_the_key_is_nowhere_to_be_read(chained):
    scenario = chained(VIDEOS, "bocha", "searxng")
    scenario.upstream.faults.add("bocha", "error_in_200", times=1)
    assert scenario.play().success
    everything = [scenario.library.query(table.select()) for table in scenario.library.tables.metadata.sorted_tables]
    assert KEY not in repr(everything)
    assert KEY not in repr(scenario.services)
