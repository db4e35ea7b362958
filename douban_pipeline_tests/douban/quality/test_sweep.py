"""The curve of wrong links against coverage."""

from __future__ import annotations

from douban_pipeline.core.intervals import Rate
from douban_pipeline.douban.quality.sweep import Point, at_steps, sweep
from douban_pipeline_tests.douban.quality.rows import gold, none_row, result, trap_row

RESULTS = [
    result(score=95.0),
    result(score=90.0),
    result(score=90.0, best=101),
    result(verdict="REVIEW", score=88.0, reasons=("LEAD_TOO_SMALL",)),
    result(verdict="REVIEW", score=80.0, reasons=("BELOW_CONFIRM",), best=101),
    result(verdict="REVIEW", score=99.0, reasons=("BELOW_CONFIRM", "YEAR_OFF")),  # held by more than its score
    result(verdict="NOT_FOUND", best=None, reasons=("NO_CANDIDATES",)),
    result(none_row(), score=86.0),
    result(none_row(), "NOT_FOUND", 5, score=60.0, reasons=("BELOW_REVIEW",)),
    result(trap_row(), score=95.0, best=666),  # traps are neither
    result(gold(source="sites"), score=95.0),  # nor is what tests cleaning only
]


def point(threshold: float, linked: int, wrong: int, missing: int) -> Point:
    return Point(threshold, Rate(linked, 7), Rate(wrong, 7), Rate(missing, 2))


def test_a_higher_threshold_links_fewer_of_what_was_linked():
    assert sweep(RESULTS).clean == (point(95.0, 1, 0, 0), point(90.0, 3, 1, 0), point(86.0, 3, 1, 1))


def test_a_lower_one_adds_what_only_score_or_lead_held():
    assert sweep(RESULTS).loose == (
        point(95.0, 1, 0, 0),
        point(90.0, 3, 1, 0),
        point(88.0, 4, 1, 0),
        point(86.0, 4, 1, 1),
        point(80.0, 5, 2, 1),
        point(60.0, 5, 2, 2),
    )


def test_nothing_to_sweep():
    assert sweep([]).clean == sweep([]).loose == ()
    assert at_steps([], 5.0) == []


def test_round_thresholds_for_a_table():
    shown = at_steps(sweep(RESULTS).loose, 5.0)
    assert [(each.threshold, each.linked.hits, each.missing_wrong.hits) for each in shown] == [
        (95.0, 1, 0),
        (90.0, 3, 0),
        (85.0, 4, 1),
        (80.0, 5, 1),
        (75.0, 5, 1),
        (70.0, 5, 1),
        (65.0, 5, 1),
        (60.0, 5, 2),
    ]


def test_the_table_ends_at_or_under_the_lowest_score():
    shown = at_steps([point(92.0, 1, 0, 0), point(83.0, 2, 1, 0)], 5.0)
    assert [(each.threshold, each.linked.hits) for each in shown] == [(90.0, 1), (85.0, 1), (80.0, 2)]
