"""What is reported: growth, targets, what the libraries do alone, and what an earlier run found."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Target
from douban_pipeline_tests.harness.benchmarks.report import endings, rows_of
from douban_pipeline_tests.harness.benchmarks.results import (
    Outcome,
    Results,
    ResultsError,
    read_results,
    write_results,
)

SMALL, LARGE = 170_000, 1_700_000


def results(*outcomes, sizes=(SMALL, LARGE)):
    machine = {"cores": "2", "database": "10.11-MariaDB"}
    return Results(datetime(2026, 5, 4, 3, 2, tzinfo=UTC), 1, sizes, machine, list(outcomes), {SMALL: 31.5})


def look(value, size, **more):
    return Outcome("look", size, 3.0, (Figure("p95", value, "ms", **more),))


def row(*outcomes):
    [found] = rows_of(results(*outcomes))
    return found


@pytest.mark.parametrize(
    ("small", "large", "target", "met", "misses"),
    [
        (10, 15, Target(most=50, growth=2), True, []),
        (10, 51, Target(most=50), False, ["51 ms at 1,700,000, at most 50 ms"]),
        (10, 21, Target(growth=2), False, ["grows 2.10×, at most 2×"]),
        (900, 1100, Target(least=1000), False, ["900 ms at 170,000, at least 1,000 ms"]),
        (50, 50, Target(most=50, least=50, growth=1), True, []),
        (10, 15, None, None, []),
    ],
)
def test_a_target_is_met_on_every_library_or_it_is_missed(small, large, target, met, misses):
    found = row(look(small, SMALL, target=target), look(large, LARGE, target=target))
    assert (found.met, found.misses) == (met, misses)


@pytest.mark.parametrize(
    ("unit", "value", "baseline", "ratios"),
    [("s", 30, 10, "3.00×"), ("/s", 1_000, 4_000, "4.00×"), ("%", 50, 100, "2.00×"), ("s", 3, 0, ""), ("/s", 0, 4, "")],
)
def test_a_cost_of_three_is_three_times_the_libraries_work_whatever_the_unit(unit, value, baseline, ratios):
    figure = Figure("it", value, unit, None, baseline, "bare")
    assert row(Outcome("measure", SMALL, 1, (figure,))).ratios == ratios


def test_what_was_found_is_the_same_after_writing_and_reading(tmp_path):
    target = Target(most=50, growth=2)
    before = results(
        look(12.5, SMALL, target=target, baseline=4.0, against="bare SELECT", note="还有中文"),
        Outcome("broken", SMALL, 1.0, failure="killed by SIGKILL\nlast words"),
        Outcome("untidy", SMALL, 1.0, changed=("mac_vod",)),
    )
    write_results(tmp_path / "new" / "results.json", before)
    assert read_results(tmp_path / "new" / "results.json") == before
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["results.json"]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 1}', '{"format": 99}', None])
def test_a_file_of_something_else_is_named(tmp_path, content):
    path = tmp_path / "other.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ResultsError, match=r"other\.json"):
        read_results(path)


def test_what_was_missed_changed_or_failed_is_said_in_the_end():
    target = Target(most=50, growth=2)
    found = results(
        look(12.5, SMALL, target=target),
        Outcome("broken", SMALL, 1.0, failure="killed by SIGKILL\nlast words"),
        look(80, LARGE, target=target),
        Outcome("untidy", 0, 1.0, (Figure("answers", 1234567, ""),), changed=("mac_vod",)),
    )
    missed, changed, failed = endings(found)
    assert missed == "missed: look: p95: 80 ms at 1,700,000, at most 50 ms; grows 6.40×, at most 2×"
    assert changed == "changed: untidy did not leave mac_vod as it was"
    assert failed.endswith("last words")
