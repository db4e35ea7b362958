"""The score: golden values by hand, and what must hold of every order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.comments.heat import score
from douban_pipeline.comments.heat.factors import GRAPH, Z, wilson
from douban_pipeline.comments.heat.ranking import SHOWN_PARTS, Policy, rank
from douban_pipeline.comments.heat.score import HEAT, HeatWeights
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.intervals import wilson as wilson_of_one
from douban_pipeline_tests.comments.heat_columns import columns_of, ids_of

COUNTS = st.integers(0, 5000)
COMMENT = st.fixed_dictionaries(
    {
        "likes": COUNTS,
        "dislikes": COUNTS,
        "reports": st.integers(0, 50),
        "replies": st.integers(0, 500),
        "length": st.integers(0, 3000),
        "level": st.integers(0, 6),
        "age_hours": st.floats(0, 50_000),
        "impressions": st.integers(0, 100_000),
        "likes_day": st.integers(0, 100),
        "impressions_day": st.integers(0, 1000),
        "owner_liked": st.booleans(),
    }
)


@pytest.mark.parametrize(
    ("up", "down", "expected"), [(1, 0, 0.378), (10, 1, 0.739), (40, 20, 0.585), (0, 0, 0), (0, 9, 0)]
)
def test_the_bound_is_the_known_one(up, down, expected):
    assert wilson(np.array([up]), np.array([down]))[0] == pytest.approx(expected, abs=0.0006)


@given(st.lists(st.tuples(COUNTS, COUNTS), min_size=1, max_size=20))
def test_the_bound_of_columns_is_that_of_single_shares(pairs):
    ups, downs = (np.array(each) for each in zip(*pairs, strict=True))
    expected = [wilson_of_one(up, up + down, Z).low if up + down else 0.0 for up, down in pairs]
    assert wilson(ups, downs) == pytest.approx(expected, abs=1e-9)


def test_a_score_by_hand():
    comment = {
        "likes": 10,
        "dislikes": 1,
        "reports": 1,
        "replies": 3,
        "length": 8,
        "level": 4,
        "age_hours": 6,
        "impressions": 100,
        "likes_day": 10,
        "impressions_day": 100,
        "likes_week": 10,
        "impressions_week": 100,
        "owner_liked": True,
    }
    ranking = rank(ids_of([comment]), columns_of([comment]), Policy())
    approval = wilson_of_one(10, 14, Z).low * 0.875 * 1.08
    parts = {
        "approval": approval,
        "replies": 0.1 * math.log(4),
        "rate": 0.6 * wilson_of_one(10, 100, Z).low,
        "owner": 0.1,
        "decay": -0.12 * math.log(8),
        "rules": 0.0,
        "pin": 0.0,
    }
    assert {name: ranking.parts[name][0] for name in SHOWN_PARTS} == pytest.approx(parts, abs=1e-6)
    assert ranking.heat[0] == pytest.approx(HEAT * sum(parts.values()), abs=2)


@given(COMMENT, st.integers(1, 2000))
def test_more_likes_never_lower_a_comment(comment, more):
    liked = {**comment, "likes": comment["likes"] + more}
    read = columns_of([comment, liked])
    heat = dict(zip(*_heat(read, 2), strict=True))
    assert heat[102] >= heat[101]


@given(COMMENT, st.integers(1, 100))
def test_dislikes_and_reports_never_raise_a_comment(comment, more):
    worse = [{**comment, name: comment[name] + more} for name in ("dislikes", "reports")]
    heat = dict(zip(*_heat(columns_of([comment, *worse]), 3), strict=True))
    assert heat[102] <= heat[101]
    assert heat[103] <= heat[101]


@given(COMMENT, st.floats(0.1, 5000))
def test_age_lowers_a_comment_and_ever_more_slowly(comment, hours):
    older = {**comment, "age_hours": comment["age_hours"] + hours}
    oldest = {**comment, "age_hours": comment["age_hours"] + 2 * hours}
    heat = dict(zip(*_heat(columns_of([comment, older, oldest]), 3), strict=True))
    assert heat[101] >= heat[102] >= heat[103]
    assert heat[101] - heat[102] >= heat[102] - heat[103] - 2


@given(st.lists(COMMENT, min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_the_order_is_the_same_whatever_order_comments_come_in(comments, random):
    shuffled = list(range(len(comments)))
    random.shuffle(shuffled)
    read = columns_of(comments)
    ids = ids_of(comments)
    first = rank(ids, read, Policy())
    second = rank(ids[shuffled], {name: column[shuffled] for name, column in read.items()}, Policy())
    assert first.ids.tolist() == second.ids.tolist()
    assert first.heat.tolist() == second.heat.tolist()
    assert sorted(first.ids.tolist()) == ids.tolist()
    assert np.all(np.diff(first.heat) <= 0)


@given(st.lists(COMMENT, min_size=1, max_size=10))
def test_the_parts_that_are_shown_add_up_to_the_score(comments):
    ranking = rank(ids_of(comments), columns_of(comments), Policy())
    summed = sum(ranking.parts[name].astype(np.float64) for name in SHOWN_PARTS)
    assert ranking.heat == pytest.approx(HEAT * summed, abs=1)


def test_of_equals_the_newest_comes_first():
    same = [{"likes": 3}] * 4
    assert rank(ids_of(same), columns_of(same), Policy()).ids.tolist() == [104, 103, 102, 101]


def test_what_is_liked_now_passes_what_was_liked_long_ago():
    old = {"likes": 5000, "age_hours": 24 * 365, "impressions": 100_000, "replies": 20}
    fresh = {"likes": 40, "likes_day": 40, "likes_week": 40, "age_hours": 5, "replies": 3}
    fresh |= dict.fromkeys(("impressions", "impressions_day", "impressions_week"), 150)
    assert rank(ids_of([old, fresh]), columns_of([old, fresh]), Policy()).ids.tolist() == [102, 101]


def test_much_liked_and_much_disliked_is_not_hot():
    fought_over = {"likes": 900, "dislikes": 800}
    liked = {"likes": 12, "dislikes": 1}
    assert rank(ids_of([fought_over, liked]), columns_of([fought_over, liked]), Policy()).ids.tolist() == [102, 101]


def test_lost_impressions_make_no_impossible_rate():
    comment = {"likes": 8, "impressions": 0, "likes_day": 8, "impressions_day": 3}
    ranking = rank(ids_of([comment]), columns_of([comment]), Policy())
    assert 0 < ranking.parts["rate"][0] < HeatWeights().rate


def test_no_comments_are_an_empty_order():
    ranking = rank(ids_of([]), columns_of([]), Policy())
    assert len(ranking) == 0


@pytest.mark.parametrize(
    ("given_weights", "message"),
    [
        ({"decay": -1}, "权重 decay 应为不小于 0 的数，现为 -1"),
        ({"rate": math.nan}, "权重 rate 应为不小于 0 的数"),
        ({"rate_day": 0.8}, "rate_day 与 rate_week 之和不得超过 1"),
        ({"short": 1.5}, "短评不应比长评更占优"),
        ({"full_length": 0.5}, "full_length 不得小于 1"),
        ({"likes": 2}, "没有名为 likes 的权重；可用：decay"),
        ({"owner": "high"}, "权重 owner 应为不小于 0 的数"),
    ],
)
def test_weights_that_make_no_order_are_refused(given_weights, message):
    with pytest.raises(ProblemsError, match=message):
        HeatWeights.of(given_weights)


def _heat(read, count):
    ranking = rank(np.arange(101, 101 + count), read, Policy())
    return ranking.ids.tolist(), ranking.heat.tolist()


def test_parts_are_those_that_are_named():
    assert tuple(score.parts(_factors(), HeatWeights())) == score.PARTS


def _factors():
    return GRAPH.compute(score.FACTORS, columns_of([{"likes": 1}]))
