"""A subject that a person names is asked for at the source and compared; what rules it out is said in words."""

from __future__ import annotations

import pytest

from douban_pipeline.core.errors import GateClosed
from douban_pipeline.douban.decisions.refusals import conflicts_of
from douban_pipeline.douban.sources.errors import SubjectMissing
from douban_pipeline_tests.harness.fixtures.scenario import RIVER, TRAM, WHALE, row_of, subject

FAR = subject(90_000_301, "长河落日记事", 2011, directors=["别人"], regions=["美国"])


@pytest.fixture
def scenario(stage):
    return stage([row_of(RIVER, 4)], [RIVER, WHALE, TRAM, FAR])


def ask(scenario, douban_id):
    return conflicts_of(scenario.services, scenario.library.row(4), douban_id)


def test_nothing_speaks_against_what_fits(scenario):
    assert ask(scenario, RIVER["id"]) == ""


def test_all_that_rules_a_subject_out_is_said(scenario):
    conflicts = ask(scenario, FAR["id"])
    assert conflicts.startswith("与《长河落日记事》（2011）对不上：年份冲突：差 10 年；")
    assert "地区冲突：本地 大陆 / 豆瓣 美国" in conflicts
    assert "导演冲突：本地 长河导 / 豆瓣 别人" in conflicts
    assert ask(scenario, TRAM["id"]).startswith("与《午夜电车站台》（2023）对不上：标题冲突：相似度 0.")


def test_softer_conflicts_are_a_persons_business(scenario):
    scenario.library.set_cms(4, vod_actor="子,丑,寅", vod_year="2020", vod_director="")
    assert ask(scenario, RIVER["id"]) == ""


def test_the_limits_in_force_count(stage):
    scenario = stage([row_of(RIVER, 4, vod_year="2017")], [RIVER])
    assert ask(scenario, RIVER["id"]) == "与《长河落日记事》（2021）对不上：年份冲突：差 4 年"


def test_an_answer_of_today_is_not_asked_for_again(scenario):
    for hours, requests in ((0, 1), (23, 1), (2, 2)):
        scenario.clock.advance(hours=hours)
        ask(scenario, RIVER["id"])
        assert scenario.upstream.requests.count("douban") == requests


def test_a_subject_that_is_missing_and_a_source_that_is_closed_are_two_things(scenario):
    with pytest.raises(SubjectMissing):
        ask(scenario, 90_000_999)
    scenario.services.gate.open("douban", scenario.clock.now().replace(year=2030), "测试")
    with pytest.raises(GateClosed):
        ask(scenario, RIVER["id"])
