"""The order of candidates, and what is compared of those with another name."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.matching import Code, Thresholds, compare, judge, make_profile, rank
from douban_pipeline.matching.ranking import is_certainly_out, is_near
from douban_pipeline_tests.matching.cases import FILM, FILM_SUBJECT
from douban_pipeline_tests.matching.drawn import SUBJECTS, VIDEOS, matches

PROFILES = [
    make_profile("plan"),
    make_profile("calibrated"),
    make_profile("calibrated", thresholds=Thresholds(title_floor=0.9)),
    make_profile("plan", thresholds=Thresholds(title_floor=0.0)),
]
OTHER = replace(FILM_SUBJECT, douban_id=5, title="白夜追凶", original_title="", aliases=(), year=1990, release_years=())


@given(VIDEOS, SUBJECTS, st.sampled_from(PROFILES))
def test_only_what_is_rejected_and_not_near_is_out_by_its_name(video, subject, profile):
    found = compare(video, subject, profile.weights, profile.thresholds)
    if is_certainly_out(found):
        assert Code.TITLE_TOO_FAR in found.rejects
        assert not is_near(found, profile)


@given(matches(), st.sampled_from(PROFILES))
def test_the_order_does_not_depend_on_when_it_is_asked_for(match, profile):
    video, subjects = match
    ranked = rank(video, subjects, profile)
    first = ranked[0]
    assert ranked.eligible == [each for each in ranked if not each.comparison.rejects]
    assert [each.rank for each in ranked] == list(range(1, len(ranked) + 1))
    assert ranked[0] is first
    assert {id(each.comparison) for each in ranked} == {id(each) for each in ranked.comparisons}
    assert list(ranked) == sorted(ranked, key=lambda each: bool(each.comparison.rejects) and not each.near)
    rejected = [each.score for each in ranked if each.comparison.rejects and not each.near]
    assert rejected == sorted(rejected, reverse=True)


@pytest.mark.parametrize("profile", PROFILES[:2], ids=lambda each: each.name)
def test_of_other_names_no_more_is_compared_than_the_verdict_needs(profile):
    verdict = judge(FILM, [FILM_SUBJECT, OTHER], profile=profile)
    (other,) = [each for each in verdict.candidates.comparisons if each.subject == OTHER]
    assert "results" not in vars(other)
    assert verdict.to_json()["candidates"][1]["rejects"] == ["TITLE_TOO_FAR", "YEAR_GAP"]


def test_where_all_have_other_names_the_best_of_them_comes_first():
    further = replace(OTHER, douban_id=4, genres=(), regions=(), directors=(), actors=())
    verdict = judge(FILM, [further, OTHER])
    assert [each.subject.douban_id for each in verdict.candidates] == [5, 4]
    assert verdict.candidates[-1].rank == len(verdict.candidates[:5]) == 2
    assert verdict.codes[:2] == (Code.ALL_REJECTED, Code.TITLE_TOO_FAR)
