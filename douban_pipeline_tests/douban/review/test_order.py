"""The order of the review queue: the documented numbers, and that more of a reason never stands further back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.douban.review.worklist.order import ConfirmLines, doubt_of, value_of
from douban_pipeline_tests.harness.fixtures.clocks import START

LINES = ConfirmLines(85.0, 8.0)

hits = st.integers(0, 4_294_967_295)
ages = st.timedeltas(timedelta(days=-3), timedelta(days=9000))
scores = st.none() | st.floats(0, 102)
leads = st.none() | st.floats(-20, 102)
reasons = st.fixed_dictionaries({"in_cms": st.booleans(), "failing": st.booleans()})


@pytest.mark.parametrize(
    ("watched", "days", "value"),
    [
        (0, None, 0.05),
        (0, 0, 0.35),
        (0, 90, 0.20),
        (0, 180, 0.125),
        (0, -5, 0.35),  # a clock that goes wrong makes nothing more than new
        (999, None, 0.375),
        (999_999, 0, 1.0),
        (4_294_967_295, 0, 1.0),
        (-1, None, 0.05),
    ],
)
def test_what_a_video_is_worth(watched: int, days: float | None, value: float):
    updated = None if days is None else START - timedelta(days=days)
    assert value_of(watched, updated, START) == pytest.approx(value)


@pytest.mark.parametrize(
    ("watched", "comments", "value"),
    [(0, 99, 0.05 + 0.65 / 2), (0, 9_999, 0.70), (999, 9, 0.375), (0, 5_000_000, 0.70), (0, -1, 0.05)],
)
def test_a_discussion_counts_as_being_watched_does(watched: int, comments: int, value: float):
    assert value_of(watched, None, START, comments) == pytest.approx(value)


@pytest.mark.parametrize(
    ("score", "lead", "given_reasons", "doubt"),
    [
        (None, None, {}, 0.1),
        (85.0, None, {}, 1 - 0.9 * 0.4),
        (70.0, None, {}, 1 - 0.9 * 0.7),
        (100.0, None, {}, 1 - 0.9 * 0.7),
        (55.0, None, {}, 0.1),
        (20.0, None, {}, 0.1),
        (20.0, 0.0, {}, 1 - 0.9 * 0.6),
        (20.0, -3.0, {}, 1 - 0.9 * 0.6),
        (20.0, 12.0, {}, 1 - 0.9 * 0.8),
        (20.0, 24.0, {}, 0.1),
        (None, None, {"in_cms": True}, 1 - 0.9 * 0.3),
        (None, None, {"failing": True}, 1 - 0.9 * 0.5),
        (85.0, 0.0, {"in_cms": True, "failing": True}, 1 - 0.9 * 0.4 * 0.6 * 0.3 * 0.5),
    ],
)
def test_what_a_look_may_change(score: float | None, lead: float | None, given_reasons: dict, doubt: float):
    reasons = {"in_cms": False, "failing": False, **given_reasons}
    assert doubt_of(score, lead, LINES, **reasons) == pytest.approx(doubt)


def test_a_site_that_asks_for_no_lead_has_rivals_only_where_they_are_level():
    assert doubt_of(None, 0.0, ConfirmLines(85.0, 0.0), in_cms=False, failing=False) > 0.1
    assert doubt_of(None, 0.1, ConfirmLines(85.0, 0.0), in_cms=False, failing=False) == pytest.approx(0.1)


@given(hits, hits, ages, ages)
def test_the_more_watched_and_the_newer_is_never_worth_less(one: int, other: int, old: timedelta, new: timedelta):
    few, many = sorted((one, other))
    older, newer = sorted((START - old, START - new))
    values = [value_of(watched, moment, START) for watched in (few, many) for moment in (None, older, newer)]
    assert all(0.05 <= value <= 1.0 for value in values)
    assert values[:3] == sorted(values[:3])
    assert values[3:] == sorted(values[3:])
    assert all(less <= more for less, more in zip(values[:3], values[3:], strict=True))


@given(st.floats(0, 102), st.floats(0, 102), leads, reasons)
def test_the_closer_call_is_never_less_in_doubt(one: float, other: float, lead: float | None, given_reasons: dict):
    near, far = sorted((one, other), key=lambda score: abs(score - LINES.confirm))
    assert doubt_of(near, lead, LINES, **given_reasons) >= doubt_of(far, lead, LINES, **given_reasons)
    assert doubt_of(far, lead, LINES, **given_reasons) >= doubt_of(None, lead, LINES, **given_reasons)


@given(scores, st.floats(-20, 102), st.floats(-20, 102), reasons)
def test_the_nearer_rival_is_never_less_in_doubt(score: float | None, one: float, other: float, given_reasons: dict):
    small, large = sorted((one, other))
    assert doubt_of(score, small, LINES, **given_reasons) >= doubt_of(score, large, LINES, **given_reasons)
    assert doubt_of(score, large, LINES, **given_reasons) >= doubt_of(score, None, LINES, **given_reasons)


@given(scores, leads, st.booleans())
def test_every_reason_adds_to_the_doubt_and_none_makes_it_certain(score: float | None, lead: float | None, other: bool):
    plain = doubt_of(score, lead, LINES, in_cms=False, failing=other)
    in_cms = doubt_of(score, lead, LINES, in_cms=True, failing=other)
    failing = doubt_of(score, lead, LINES, in_cms=other, failing=True)
    assert 0.1 - 1e-9 <= plain < in_cms < 1
    assert failing > doubt_of(score, lead, LINES, in_cms=other, failing=False)
