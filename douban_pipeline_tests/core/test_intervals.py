"""The Wilson interval against values worked out by hand and from the literature."""

from __future__ import annotations

import pytest

from douban_pipeline.core.intervals import Interval, wilson


@pytest.mark.parametrize(
    ("successes", "total", "low", "high"),
    [
        (0, 600, 0.0, 0.0064),  # 3.8416 / 603.8416
        (1, 600, 0.0003, 0.0094),
        (2, 600, 0.0009, 0.0121),
        # Newcombe 1998, table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_known_values(successes: int, total: int, low: float, high: float) -> None:
    assert tuple(wilson(successes, total)) == pytest.approx((low, high), abs=5e-5)


def test_it_is_the_same_seen_from_the_other_side() -> None:
    low, high = wilson(7, 50)
    assert tuple(wilson(43, 50)) == pytest.approx((1 - high, 1 - low))


def test_nothing_looked_at_says_nothing() -> None:
    assert wilson(0, 0) == Interval(0.0, 1.0)


@pytest.mark.parametrize("total", [1, 3, 10, 600, 100_000])
def test_the_ends_are_the_ends(total: int) -> None:
    assert wilson(0, total).low == 0.0
    assert wilson(total, total).high == 1.0
    assert 0.0 < wilson(0, total).high < 1.0


def test_a_wider_confidence_is_a_wider_interval() -> None:
    narrow, wide = wilson(3, 40), wilson(3, 40, z=2.576)
    assert wide.low < narrow.low < 3 / 40 < narrow.high < wide.high


@pytest.mark.parametrize(("successes", "total"), [(1, 0), (-1, 5), (6, 5)])
def test_what_is_no_share_is_refused(successes: int, total: int) -> None:
    with pytest.raises(ValueError, match="not a share"):
        wilson(successes, total)
