"""How times and memory are shown."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline_tests.harness.benchmarks.measuring import Samples, peak_memory_mb

TIMES = st.lists(st.floats(0, 1e6, allow_nan=False), min_size=1, max_size=200)


@given(TIMES)
def test_ninety_five_of_a_hundred_do_not_exceed_p95_and_fewer_do_not_exceed_less(times):
    p95 = Samples(times).p95
    assert p95 in times
    assert sum(value <= p95 for value in times) >= 0.95 * len(times)
    assert sum(value < p95 for value in times) < 0.95 * len(times)


@given(TIMES, st.randoms())
def test_percentiles_do_not_depend_on_the_order_and_keep_theirs(times, random):
    mixed = random.sample(times, len(times))
    assert (Samples(mixed).p50, Samples(mixed).p95) == (Samples(times).p50, Samples(times).p95)
    assert min(times) <= Samples(times).p50 <= max(times)
    # The median of two is their middle; of any more, p95 is not under it.
    assert len(times) == 2 or Samples(times).p50 <= Samples(times).p95


def test_a_block_that_fails_is_no_sample():
    samples = Samples()
    with samples.one():
        pass
    with pytest.raises(ZeroDivisionError), samples.one():
        1 / 0  # noqa: B018
    assert len(samples.milliseconds) == 1


def test_peak_memory_is_the_processes_own_whoever_started_it():
    ballast = bytearray(200_000_000)
    code = (
        "from douban_pipeline_tests.harness.benchmarks.measuring import peak_memory_mb as peak; "
        "a = peak(); b = bytearray(10**8)"
    )
    metadata = subprocess.run(
        [sys.executable, "-c", f"{code}; print(a, peak())"], capture_output=True, text=True, check=True
    )
    before, after = map(float, metadata.stdout.split())
    assert before < 200 < peak_memory_mb()
    assert after - before == pytest.approx(100, abs=15)
    del ballast
