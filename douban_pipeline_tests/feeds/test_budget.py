"""The budget profile's rules: intensities, shares of a budget, and the next look."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from douban_pipeline.feeds import budget
from douban_pipeline.feeds.intensity import (
    SLOTS,
    Knowledge,
    everyone_of,
    fitted_model,
    intensity,
    model_from,
    profiles_of,
)
from douban_pipeline_tests.feeds.stage import DAY, HOUR, START

OFFSET = 8 * HOUR
EVEN = np.full(SLOTS, 1 / SLOTS)


def daily_at(hour: int, days: int = 12) -> list[int]:
    midnight = START - (START + OFFSET) % DAY
    return [midnight - back * DAY + hour * HOUR for back in range(days, 0, -1)]


def test_a_source_is_likeliest_in_its_own_hours_and_after_a_day() -> None:
    knowledge = Knowledge.of([daily_at(18)], OFFSET)
    profiles = profiles_of(knowledge, EVEN, 2 / 7)
    midnight = START - (START + OFFSET) % DAY
    times = np.array([midnight + hour * HOUR for hour in (3.0, 18.0, 23.0)])
    found = intensity(knowledge, profiles, np.zeros(3, dtype=int), times)
    assert found[1] > 20 * found[0]
    assert found[1] > 5 * found[2]


def test_more_publications_are_a_higher_rate_and_none_the_prior() -> None:
    times = [[START - HOUR * back for back in range(100, 0, -1)], daily_at(9), []]
    knowledge = Knowledge.of(times, OFFSET)
    quick, slow = knowledge.rates(np.arange(3), np.full(3, float(START)))
    assert slow[0] > 10 > slow[1] > 0.5
    assert quick[2] == slow[2] == 0.5
    assert np.isfinite(intensity(knowledge, profiles_of(knowledge, EVEN, 2 / 7), np.arange(3), np.full(3, START))).all()


def test_knowledge_is_the_same_at_once_or_one_by_one() -> None:
    times = daily_at(10)
    whole, single = Knowledge.of([times], OFFSET), Knowledge(1, OFFSET)
    for moment in times:
        single.add(0, [moment])
        single.add(0, [moment])  # a second time is nothing new
    assert np.allclose(whole.slots, single.slots)
    assert whole.known[0] == single.known[0] == len(times)


@settings(max_examples=60)
@given(
    densities=st.lists(st.floats(0.01, 1e6), min_size=1, max_size=30),
    daily=st.floats(1, 1e5),
    max_gap=st.integers(900, 7 * DAY),
)
def test_the_budget_is_spent_and_no_source_is_forgotten(densities: list[float], daily: float, max_gap: int) -> None:
    values = np.array(densities)
    made = budget.allocate(values, ["h"] * len(values), daily, max_gap=max_gap)
    polls = np.maximum(values / made.constant, DAY / max_gap)
    assert polls.sum() == pytest.approx(max(daily, len(values) * DAY / max_gap), rel=0.02)
    assert (DAY / polls <= max_gap * 1.0001).all()


def test_a_host_costs_no_more_than_it_may_and_others_get_what_it_leaves() -> None:
    values, hosts = np.array([100.0, 100.0, 100.0, 100.0]), ["a", "a", "a", "b"]
    made = budget.allocate(values, hosts, 400, max_gap=7 * DAY, host_polls_per_day=90)
    polls = [value / made.constant_of(host) for value, host in zip(values, hosts, strict=True)]
    assert sum(polls[:3]) == pytest.approx(90, rel=0.02)
    assert polls[3] <= 91


def test_the_next_look_says_what_decided() -> None:
    knowledge = Knowledge.of([daily_at(18)], OFFSET)
    profiles = profiles_of(knowledge, EVEN, 2 / 7)
    [daily] = budget.daily_density(knowledge, profiles, START)

    def look(constant: float, floor: float = 0.0) -> budget.NextLook:
        made = budget.Allocation(constant)
        return budget.next_look(
            knowledge, profiles, 0, made, host="h", polls_per_day=24, now=START, max_gap=DAY, floor=floor
        )

    often, rarely = look(daily / 48), look(daily * 50)
    assert often.bound == "budget"
    assert START < often.at < START + 6 * HOUR
    assert (rarely.bound, rarely.at) == ("max_gap", START + DAY)
    assert rarely.expected > often.expected > 0
    held = look(daily / 48, floor=START + 9 * HOUR)
    assert (held.bound, held.at) == ("floor", START + 9 * HOUR)
    assert rarely.share == pytest.approx(1 / 24)


def test_looks_are_denser_where_more_is_expected() -> None:
    knowledge = Knowledge.of([[START - HOUR * back for back in range(60, 0, -1)], daily_at(18)], OFFSET)
    dense = budget.daily_density(knowledge, profiles_of(knowledge, EVEN, 2 / 7), START)
    assert dense[0] > dense[1] > 0


def test_everyone_s_hours_are_shares_of_a_day() -> None:
    assert everyone_of(np.zeros((3, SLOTS))).sum() == pytest.approx(1.0)
    knowledge = Knowledge.of([daily_at(18), daily_at(18)], OFFSET)
    assert int(np.argmax(everyone_of(knowledge.slots))) // 12 == 18


def test_a_model_of_another_shape_is_refused() -> None:
    model = fitted_model()
    stored = {"columns": model.columns.tolist()[:-1], "ages": model.ages.tolist(), "today": model.today.tolist()}
    with pytest.raises(ValueError, match="another shape"):
        model_from(stored)
