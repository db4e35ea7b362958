"""What the upstream saw of the requests is counted rightly."""

from __future__ import annotations

import httpx
import pytest

from douban_pipeline_tests.harness.benchmarks.measures.budget import used_of
from douban_pipeline_tests.harness.benchmarks.requests_seen import (
    TimedReplay,
    busy_seconds,
    most_within,
    used_share,
)


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        pytest.param([], 0.0, id="none"),
        pytest.param([(1.0, 2.0), (3.0, 4.5)], 2.5, id="apart"),
        pytest.param([(3.0, 4.0), (1.0, 3.5)], 3.0, id="overlapping"),
        pytest.param([(1.0, 5.0), (2.0, 3.0)], 4.0, id="one-within-another"),
    ],
)
def test_requests_at_the_same_time_count_once(spans: list[tuple[float, float]], seconds: float) -> None:
    assert busy_seconds(spans) == pytest.approx(seconds)


def test_the_fullest_window_is_found_wherever_it_begins() -> None:
    assert most_within([], 60) == 0
    assert most_within([100.0, 0.0, 59.0, 59.5, 61.0], 60) == 4
    assert most_within([0.0, 60.0], 60) == 1, "a window ends just before it is over"


def test_the_share_is_of_what_the_window_allows() -> None:
    every_second = [float(second) for second in range(61)]
    assert used_share(every_second, 0.5, 30.5, 60) == pytest.approx(1.0)
    assert used_share(every_second, 0.5, 30.5, 120) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="no window"):
        used_share(every_second, 5, 5, 60)


def test_a_budget_that_is_broken_outside_of_the_window_is_still_broken() -> None:
    rush = [float(second) for second in range(60)] + [200.0 + part / 10 for part in range(100)]
    used = used_of(rush, 0, 59.5, 60)
    assert used.share < 101
    assert used.minute == pytest.approx(100 * 100 / 60)
    assert used.ten_seconds == pytest.approx(1000)


def test_the_upstream_remembers_each_request_and_when_it_was() -> None:
    with TimedReplay([]) as upstream:
        assert httpx.get(f"{upstream.search_url}?q=x&format=json").status_code == 200
        [seen] = upstream.seen
    assert (seen.path, seen.target) == ("/search", "/search?q=x&format=json")
    assert seen.ended >= seen.began > 0
