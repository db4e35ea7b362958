"""The plan of troubles: the same for the same seed, and nothing left out that a soak is to prove."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from douban_pipeline.demo.stand_ins.faults import Fault
from douban_pipeline_tests.harness.soak.troubles import ENDPOINTS, QUIET_SHARE, Kind, Trouble, covered, plan


def soaks(test: Callable[[float, int], None]) -> Callable[[], None]:
    """Try ``test`` with soaks of any length and seed."""
    tried: Callable[[], None] = given(minutes=st.floats(2, 240), seed=st.integers(0, 2**32))(test)
    return settings(max_examples=25, deadline=None)(tried)


def of(kind: Kind, troubles: tuple[Trouble, ...]) -> list[Trouble]:
    return [trouble for trouble in troubles if trouble.kind is kind]


@soaks
def test_the_same_seed_makes_the_same_plan(minutes: float, seed: int):
    assert plan(minutes, seed) == plan(minutes, seed)


@soaks
def test_every_source_fails_and_every_server_dies_once(minutes: float, seed: int):
    troubles = plan(minutes, seed)
    assert covered(troubles) == set(ENDPOINTS)
    assert [len(of(kind, troubles)) for kind in (Kind.kill_database, Kind.kill_daemon, Kind.kill_code)] == [1, 1, 1]


@soaks
def test_all_happens_in_order_and_is_over_before_the_end(minutes: float, seed: int):
    troubles = plan(minutes, seed)
    assert [trouble.at for trouble in troubles] == sorted(trouble.at for trouble in troubles)
    assert troubles[0].at >= 0
    faults = of(Kind.fault, troubles)
    assert all(trouble.at + trouble.seconds <= minutes * 60 * (1 - QUIET_SHARE) + 1e-6 for trouble in faults)


@soaks
def test_a_source_has_one_illness_at_a_time(minutes: float, seed: int):
    for endpoint in ENDPOINTS:
        own = [trouble for trouble in of(Kind.fault, plan(minutes, seed)) if trouble.endpoint == endpoint]
        assert all(before.at + before.seconds <= after.at + 1e-6 for before, after in itertools.pairwise(own))


@soaks
def test_the_replay_upstream_knows_every_fault(minutes: float, seed: int):
    for trouble in of(Kind.fault, plan(minutes, seed)):
        Fault(trouble.endpoint, trouble.fault, retry_after=trouble.retry_after)


@pytest.mark.parametrize(("minutes", "kills"), [(3, 2), (6, 5), (30, 26)])
def test_about_a_run_a_minute_is_killed(minutes: float, kills: int):
    found = of(Kind.kill_run, plan(minutes, 1))
    assert abs(len(found) - kills) <= 1
    assert len({int(trouble.at // 60) for trouble in found}) == len(found)
