"""The guard: the rules of a confirmation once more, on plain values."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.matching import Thresholds, violations
from douban_pipeline.matching import guard as guards

SOUND = {
    "verdict": "CONFIRMED",
    "score": 90.0,
    "lead": 10.0,
    "rejects": (),
    "complete": True,
    "source_healthy": True,
    "locked": False,
    "ignored": False,
    "profile_in_force": True,
    "braked": False,
    "chosen_otherwise": False,
    "thresholds": Thresholds(),
}


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        ({}, ()),
        ({"score": 85.0, "lead": 8.0}, ()),
        ({"lead": None}, ()),
        ({"rejects": ("YEAR_GAP",)}, (guards.HARD_REJECT,)),
        ({"score": 84.99}, (guards.SCORE_UNDER_THRESHOLD,)),
        ({"score": None}, (guards.SCORE_UNDER_THRESHOLD,)),
        ({"score": math.nan}, (guards.SCORE_UNDER_THRESHOLD,)),
        ({"lead": 7.99}, (guards.LEAD_UNDER_THRESHOLD,)),
        ({"lead": -3.0}, (guards.LEAD_UNDER_THRESHOLD,)),
        ({"complete": False}, (guards.SOURCE_DEGRADED,)),
        ({"source_healthy": False}, (guards.SOURCE_DEGRADED,)),
        ({"locked": True}, (guards.LOCKED,)),
        ({"ignored": True}, (guards.IGNORED,)),
        ({"profile_in_force": False}, (guards.OTHER_PROFILE,)),
        ({"braked": True}, (guards.STRATUM_BRAKED,)),
        ({"chosen_otherwise": True}, (guards.PERSON_CHOSE_OTHER,)),
        ({"locked": True, "score": 1.0}, (guards.SCORE_UNDER_THRESHOLD, guards.LOCKED)),
        ({"thresholds": Thresholds(confirm=95.0)}, (guards.SCORE_UNDER_THRESHOLD,)),
    ],
)
def test_the_guard_names_every_broken_rule(change, broken):
    assert violations(**{**SOUND, **change}) == broken
    assert set(broken) <= set(guards.VIOLATION_SENTENCES)


@given(
    st.sampled_from(["REVIEW", "NOT_FOUND", "UNDECIDED", "IGNORED", ""]),
    st.none() | st.floats(),
    st.booleans(),
    st.booleans(),
)
def test_the_guard_has_nothing_to_say_of_other_verdicts(verdict, score, locked, healthy):
    assert (
        violations(**{**SOUND, "verdict": verdict, "score": score, "locked": locked, "source_healthy": healthy}) == ()
    )
