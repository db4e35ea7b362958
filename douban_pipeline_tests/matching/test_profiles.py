"""Profiles: the literal sum, and the share earned of what could be compared."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.matching import PROFILES, ItemOutcome, Thresholds, Weights, compare, make_profile
from douban_pipeline.matching.profiles import ENOUGH, PLAN
from douban_pipeline_tests.matching.cases import FILM, FILM_SUBJECT, THIN, THIN_SUBJECT
from douban_pipeline_tests.matching.drawn import matches

CALIBRATED = make_profile("calibrated")


def scores(video, subject):
    found = compare(video, subject)
    return PLAN.score(found), CALIBRATED.score(found)


@pytest.mark.parametrize(
    ("video", "subject", "plan", "calibrated"),
    [
        pytest.param(FILM, FILM_SUBJECT, 100, 100, id="everything agrees"),
        pytest.param(FILM, replace(FILM_SUBJECT, rating=None), 100, 100, id="a rating is no evidence"),
        pytest.param(THIN, THIN_SUBJECT, 77, 100, id="title and year are enough to be compared"),
        pytest.param(replace(THIN, year=None), THIN_SUBJECT, 70, 75, id="a title alone is not: 45 of at least 60"),
        pytest.param(replace(THIN, year=2018), THIN_SUBJECT, 72, 91.67, id="a year off"),
        pytest.param(
            replace(THIN, regions=("大陆",)), replace(THIN_SUBJECT, regions=("美国",)), 72, 85.71, id="another region"
        ),
        pytest.param(
            replace(THIN, year=None, regions=("大陆",)),
            replace(THIN_SUBJECT, regions=("中国大陆",)),
            75,
            91.67,
            id="55 of at least 60",
        ),
        pytest.param(replace(FILM, genres=()), FILM_SUBJECT, 97, 100, id="one field unknown"),
        pytest.param(replace(FILM, duration_minutes=None), FILM_SUBJECT, 95, 100, id="a length unknown"),
        pytest.param(
            replace(FILM, genres=("恐怖",)), replace(FILM_SUBJECT, rating=None), 95, 95, id="one field disagrees"
        ),
    ],
)
def test_scores(video, subject, plan, calibrated):
    assert scores(video, subject) == (plan, calibrated)


def test_an_almost_equal_title_costs_what_it_lacks():
    found = compare(replace(THIN, title="白夜追囚"), THIN_SUBJECT)
    share = found.item("title").points / 45
    assert 0.5 < share < 1
    assert CALIBRATED.score(found) == pytest.approx(100 * (45 * share + 15) / 60, abs=0.01)


def test_each_profile_shows_and_leads_by_points_of_its_own():
    found = compare(replace(FILM, year=None, directors=()), FILM_SUBJECT)
    shown = {profile.name: {item.name: item.points for item in profile.items(found)} for profile in (PLAN, CALIBRATED)}
    assert (shown["plan"]["year"], shown["plan"]["director"]) == (8, 6)
    assert (shown["calibrated"]["year"], shown["calibrated"]["director"]) == (0, 0)
    assert (PLAN.points(found), CALIBRATED.points(found)) == (87, 73)
    assert (PLAN.score(found), CALIBRATED.score(found)) == (87, 100)
    assert (PLAN.most, CALIBRATED.most) == (100, 100)


@pytest.mark.parametrize(
    ("video", "item", "plan", "calibrated"),
    [
        pytest.param({"year": 2000}, "year", 100 - 15 + 8, 100, id="another year"),
        pytest.param({"directors": ("冯小刚",)}, "director", 100 - 12 + 6, 100, id="another director"),
        pytest.param({"regions": ("美国",)}, "region", 100 - 10 + 5, 100, id="another region"),
        pytest.param({}, "region", 100 - 10 + 5, 100, id="what agrees is forgotten, too"),
    ],
)
def test_a_score_without_an_item_is_that_of_an_unknown_field(video, item, plan, calibrated):
    found = compare(replace(FILM, **video), replace(FILM_SUBJECT, release_years=()))
    assert (PLAN.score_without(found, item), CALIBRATED.score_without(found, item)) == (plan, calibrated)


def test_weights_and_thresholds_are_part_of_a_profile():
    weights, thresholds = Weights(title=10, year=10), Thresholds(confirm=50)
    for name in PROFILES:
        made = make_profile(name, weights=weights, thresholds=thresholds)
        assert (made.name, made.weights, made.thresholds) == (name, weights, thresholds)
    assert make_profile("plan") == PLAN
    light = compare(FILM, FILM_SUBJECT, weights)
    assert PLAN.score(light) == 60
    # 10 + 10 + 10 + 12 + 8 + 5 + 5 of 60, which is all that weighs.
    assert CALIBRATED.score(light) == 100
    thin = compare(THIN, THIN_SUBJECT, weights)
    assert CALIBRATED.score(thin) == pytest.approx(100 * 20 / ENOUGH, abs=0.01)


def test_there_are_no_others():
    with pytest.raises(ValueError, match="no profile 'lax'; there are plan, calibrated"):
        make_profile("lax")


@given(matches())
def test_the_plan_is_the_literal_sum_and_calibrated_a_percentage(match):
    video, (subject, *_) = match
    found = compare(video, subject)
    assert PLAN.score(found) == pytest.approx(sum(item.points for item in PLAN.items(found)[:-1]), abs=0.005)
    share = CALIBRATED.score(found)
    assert 0 <= share <= 100
    known = [item for item in found.items if item.name != "tie_break" and item.outcome is not ItemOutcome.UNKNOWN]
    if all(item.points == item.weight for item in known) and sum(item.weight for item in known) >= ENOUGH:
        rest = sum(item.points for item in found.items if item not in known)
        assert share == 100 or rest, "what nobody knows costs nothing"


@given(matches(), st.sampled_from(["directors", "actors", "regions", "genres", "duration_minutes"]))
def test_what_becomes_unknown_lowers_nothing_but_what_it_earned(match, name):
    """Taking away a field that disagreed never lowers; one that agreed never raises, above the floor."""
    video, (subject, *_) = match
    blank = replace(subject, **{name: None if name == "duration_minutes" else ()})
    before, after = compare(video, subject), compare(video, blank)
    field = {"directors": "director", "regions": "region", "genres": "genre", "duration_minutes": "length"}.get(
        name, name
    )
    if any(a != b for a, b in zip(before.items, after.items, strict=True) if a.name != field):
        return  # a kind or a cast may change what other items say
    item = before.item(field)
    if item.outcome is ItemOutcome.DISAGREE:
        assert CALIBRATED.score(after) >= CALIBRATED.score(before)
    elif item.points == item.weight:
        assert CALIBRATED.score(after) <= CALIBRATED.score(before)


@given(matches(), st.sampled_from(["title", "year", "director", "actors", "region", "genre", "length"]))
def test_more_agreement_never_lowers_a_score(match, name):
    video, (subject, *_) = match
    found = compare(video, subject)
    place = [item.name for item in found.items].index(name)
    better = replace(found)
    better.results = (
        (*found.outcomes[:place], ItemOutcome.AGREE, *found.outcomes[place + 1 :]),
        (*found.points[:place], found.most[place], *found.points[place + 1 :]),
    )
    assert CALIBRATED.score(better) >= CALIBRATED.score(found) - 0.005
