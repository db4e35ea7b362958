"""What the tests of this folder share: videos to decide about."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from douban_pipeline_tests.harness.fixtures.scenario import RIVER, TRAM, WHALE, Scenario, row_of, subject

RIVAL = subject(90_000_203, "长河落日记事", 2021, directors=["别人"], actors=["子", "丑", "寅"])


@pytest.fixture
def doubtful(stage: Callable[..., Scenario]) -> Scenario:
    """Video 4 waits for a person: two subjects carry its name. Video 5 is linked by the CMS."""
    poor = {"vod_director": "", "vod_actor": "", "vod_class": ""}
    rows = [row_of(RIVER, 4, **poor), row_of(WHALE, 5, vod_douban_id=WHALE["id"])]
    scenario = stage(rows, [RIVER, RIVAL, WHALE, TRAM], videos_at_once=1)
    assert scenario.play().success
    assert scenario.library.state(4)["douban_review_status"] == "REVIEW"
    scenario.clock.advance(seconds=30)
    return scenario
