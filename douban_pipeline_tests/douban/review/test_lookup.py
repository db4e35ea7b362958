"""Subjects that a reviewer looks up: through the gates, before automation, compared with the video like a candidate."""

from __future__ import annotations

import pytest

from douban_pipeline.core.errors import SourceUnavailable
from douban_pipeline.core.http import Fetcher
from douban_pipeline.douban.review.served.lookup import Lookup, NotLookedUp
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, WHALE, row_of


@pytest.fixture
def waiting(stage):
    """A video waits for a person: its people and its year are another film's."""
    wrong = {"vod_director": "别人", "vod_actor": "别人甲,别人乙", "vod_year": "2021"}
    scenario = stage([row_of(WHALE, 5, **wrong)], FILMS)
    scenario.library.set_state(5, douban_review_status="REVIEW")
    return scenario


def test_words_name_subjects_without_asking_douban_about_each(waiting):
    services = waiting.services
    hits = Lookup(services).by_words("长河落日记事")
    assert [hit["id"] for hit in hits] == [RIVER["id"]]
    assert hits[0]["title"].startswith("长河落日记事")
    assert waiting.upstream.requests.count("douban") == 0


def test_nothing_found_is_no_failure(waiting):
    assert Lookup(waiting.services).by_words("没有这样的片名") == []


def test_a_named_subject_is_compared_like_a_candidate(waiting):
    found = Lookup(waiting.services).by_id(5, WHALE["id"])
    assert (found["id"], found["title"], found["fetched"]) == (WHALE["id"], WHALE["title"], True)
    assert found["marks"]["title"][0] == "agree"
    assert found["marks"]["director"][0] == "disagree"
    assert found["saidBy"]["director"] in found["conflicts"]
    assert 0 < found["score"] < 85


def test_what_is_archived_costs_no_call(waiting):
    lookup = Lookup(waiting.services)
    first = lookup.by_id(5, WHALE["id"])
    assert lookup.by_id(5, WHALE["id"]) == first
    assert waiting.upstream.requests.count("douban") == 1


@pytest.mark.parametrize(
    ("vod_id", "douban_id", "sentence"),
    [(5, 99_999_999, "豆瓣没有这个条目"), (6, WHALE["id"], "这部影片已不在待审核之列")],
)
def test_what_there_is_not_is_said(waiting, vod_id, douban_id, sentence):
    with pytest.raises(NotLookedUp, match=sentence) as refused:
        Lookup(waiting.services).by_id(vod_id, douban_id)
    assert refused.value.missing


@pytest.mark.parametrize(("endpoint", "fault"), [("search", "captcha"), ("douban", "captcha")])
def test_a_source_that_fails_is_not_nothing_found(waiting, endpoint, fault):
    waiting.upstream.faults.add(endpoint, fault)
    lookup = Lookup(waiting.services)
    for _ in range(2):  # the call that fails, and one that the closed gate refuses
        with pytest.raises(NotLookedUp, match=r"没有答复|此刻不能查询") as refused:
            lookup.by_words("长河落日记事") if endpoint == "search" else lookup.by_id(5, WHALE["id"])
        assert not refused.value.missing


def test_a_person_s_search_goes_before_automation_s(waiting, monkeypatch):
    asked = []

    def get(_fetcher, _url, _params, call, **_named):
        asked.append(call.urgent)
        raise SourceUnavailable("searxng", "no answer in time")

    monkeypatch.setattr(Fetcher, "get", get)
    with pytest.raises(NotLookedUp, match="没有按时应答"):
        Lookup(waiting.services).by_words("长河落日记事")
    assert asked == [True]
