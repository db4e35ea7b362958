"""Cards 2 to 5 are as complete as card 1: what the search named is asked about when the queue is drawn up."""

from __future__ import annotations

from datetime import timedelta

import pytest

from douban_pipeline.douban.review.worklist.completion import completed
from douban_pipeline.douban.review.worklist.queue import review_queue_of
from douban_pipeline.douban.sources.douban_php import SOURCE as DOUBAN
from douban_pipeline_tests.douban.reports.planting import verdict
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, TRAM, WHALE, Scenario, row_of

FETCHED, SECOND, THIRD = RIVER["id"], WHALE["id"], TRAM["id"]
UNKNOWN = 90_000_999


@pytest.fixture
def waiting(stage) -> Scenario:
    """A video in review: of its candidates one was asked about, three were only named by the search."""
    return in_review(stage([row_of(WHALE, 4)], FILMS))


def in_review(scenario: Scenario) -> Scenario:
    verdict(scenario.library, 4, (FETCHED, 80.0), (SECOND, 75.0), (THIRD, 70.0), (UNKNOWN, 60.0))
    later = scenario.clock.now() + timedelta(days=3)
    scenario.library.set_state(4, douban_review_status="REVIEW", douban_next_sync_at=later)
    table = scenario.library.tables.candidate
    scenario.library.execute(table.update().where(table.c.rank > 1).values(fetched=False))
    return scenario


def cards(scenario: Scenario, most: int = 100):
    queue, done = completed(scenario.services, review_queue_of(scenario.services, most=10), most=most)
    [entry] = queue.first
    return entry.candidates, done


def test_what_was_only_named_is_asked_about_and_compared(waiting: Scenario) -> None:
    judged = {"select * from mac_douban_review_candidate", "select * from mac_douban_video", "select * from mac_vod"}
    before = {query: waiting.library.query(query) for query in judged}
    candidates, done = cards(waiting)
    assert (done.requests, done.known, done.left) == (3, 0, 0)
    assert waiting.upstream.requests.keys("douban") == [str(each) for each in (SECOND, THIRD, UNKNOWN)]
    assert [(each.douban_id, each.fetched) for each in candidates] == [
        (FETCHED, True),
        (SECOND, True),
        (THIRD, True),
        (UNKNOWN, False),
    ]
    second = candidates[1]
    assert (second.title, second.facts["directors"], second.rejects) == (WHALE["title"], ("蓝鲸导",), ())
    assert second.points["title"] == 45.0
    assert second.score > 80
    assert candidates[2].rejects, "what speaks against it is said too"
    assert {query: waiting.library.query(query) for query in judged} == before, "what was judged stays as it was"


def test_score_and_points_are_those_of_the_profile_in_force(stage) -> None:
    row = {**row_of(WHALE, 4), "vod_director": "", "vod_area": ""}
    second = {
        profile: cards(in_review(stage([row], FILMS, match_profile=profile)))[0][1]
        for profile in ("plan", "calibrated")
    }
    assert (second["plan"].points["director"], second["plan"].points["region"]) == (6.0, 5.0), "unknown has points"
    assert second["plan"].score == sum(second["plan"].points.values()) - second["plan"].points["tie_break"]
    assert (second["calibrated"].points["director"], second["calibrated"].points["region"]) == (0.0, 0.0)


def test_the_next_queue_asks_for_nothing(waiting: Scenario) -> None:
    cards(waiting)
    asked = list(waiting.upstream.requests.keys("douban"))
    candidates, done = cards(waiting)
    assert (done.requests, done.known) == (0, 2)
    assert [each.fetched for each in candidates] == [True, True, True, False]
    assert waiting.upstream.requests.keys("douban") == asked


def test_there_are_no_more_requests_than_allowed_and_a_fifth_of_them_while_videos_are_due(waiting: Scenario) -> None:
    assert cards(waiting, most=0)[1].requests == 0
    waiting.library.set_state(4, douban_next_sync_at=waiting.clock.now())
    _, done = cards(waiting, most=9)
    assert (done.requests, done.left) == (1, 2)


def test_a_closed_source_is_left_alone_and_the_queue_is_drawn_up(waiting: Scenario) -> None:
    waiting.services.gate.status()
    waiting.services.gate.open(DOUBAN, waiting.clock.now() + timedelta(hours=1), "test", by="小王")
    candidates, done = cards(waiting)
    assert waiting.upstream.requests.keys("douban") == []
    assert [each.fetched for each in candidates] == [True, False, False, False]
    assert done.left >= 1
