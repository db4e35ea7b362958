"""Small tables, counted by hand."""

from __future__ import annotations

import pytest

from douban_pipeline.core.intervals import Rate, wilson
from douban_pipeline_tests.douban.quality.rows import gold, none_row, result, trap_row
from douban_pipeline_tests.tools.evaluate.labelled_replay import Result
from douban_pipeline_tests.tools.evaluate.labelled_rows import Expectation
from douban_pipeline_tests.tools.evaluate.metrics import (
    Point,
    ReasonCount,
    Section,
    at_steps,
    glance,
    measure,
    sections,
    sweep,
    workload,
)


def named(section: Section) -> dict[str, int]:
    return {group.name: group.measures.rows for group in section.groups}


def by_key(results: list[Result]) -> dict[str, Section]:
    return {section.key: section for section in sections(results)}


def test_every_row_is_one_of_three():
    assert [row.expectation for row in (gold(), none_row(), trap_row())] == list(Expectation)


def test_the_place_of_the_truth_counts_from_one():
    assert result(best=100, others=(7, 8)).place_of_truth == 1
    assert result(best=7, others=(8, 100)).place_of_truth == 3
    assert result(best=7).place_of_truth is None
    assert result(best=None).place_of_truth is None


def test_a_rate_of_nothing_has_no_share():
    assert Rate(0, 0).share is None
    assert Rate(0, 0).interval == (0.0, 1.0)
    assert Rate(1, 4).share == 0.25
    assert Rate(1, 4).interval == wilson(1, 4)


def test_no_rows_measure_nothing():
    nothing = measure([])
    assert nothing.rows == 0
    assert nothing.linked == nothing.wrong == nothing.found == nothing.review_shown == Rate(0, 0)
    assert nothing.requests.mean is None
    assert nothing.requests.p95 is None
    assert glance([]).groups == ()
    assert sections([]) == ()
    assert workload([]) == []


def test_gold_rows_are_counted():
    found = measure(
        [
            result(requests=1),
            result(requests=1),
            result(best=101, others=(100,), requests=2),  # wrong, though the truth was found
            result(verdict="REVIEW", best=100, requests=2),  # on top
            result(verdict="REVIEW", best=1, others=(2, 3, 4, 100), requests=3),  # fifth
            result(verdict="REVIEW", best=1, others=(2, 3, 4, 5, 100), requests=3),  # sixth
            result(verdict="REVIEW", best=1, requests=3),  # not found
            result(verdict="NOT_FOUND", best=100, requests=4),
            result(verdict="NOT_FOUND", best=None, requests=9),
        ]
    )
    assert found.rows == 9
    assert found.linked == Rate(3, 9)
    assert found.wrong == Rate(1, 9)
    assert found.wrong_of_linked == Rate(1, 3)
    assert found.reviewed == Rate(4, 9)
    assert found.review_top == Rate(1, 4)
    assert found.review_shown == Rate(2, 4)
    assert found.review_shown_of_found == Rate(2, 3)
    assert found.found == Rate(7, 9)
    assert found.requests.total == 28
    assert found.requests.mean == pytest.approx(28 / 9)
    assert (found.requests.p95, found.requests.most) == (9, 9)


def test_the_cost_that_95_of_100_do_not_exceed():
    assert measure([result(requests=n) for n in range(1, 101)]).requests.p95 == 95
    assert measure([result(requests=n) for n in range(1, 21)]).requests.p95 == 19


def test_rows_without_a_subject_have_no_truth_to_find():
    found = measure(
        [result(none_row(), best=5), result(none_row(), "REVIEW", 5), result(none_row(), "NOT_FOUND", None)]
    )
    assert found.linked == found.wrong == Rate(1, 3)
    assert found.wrong_of_linked == Rate(1, 1)
    assert found.reviewed == Rate(1, 3)
    assert found.found == found.review_top == found.review_shown == Rate(0, 0)


def test_a_trap_s_other_links_are_not_judged():
    found = measure([result(trap_row(), best=666), result(trap_row(), best=5), result(trap_row(), "REVIEW", 666)])
    assert found.linked == Rate(2, 3)
    assert found.wrong == Rate(1, 3)
    assert found.wrong_of_linked == Rate(1, 1)
    assert found.review_top == Rate(0, 0)


def test_a_glance_sums_up_headline_sources_only():
    results = [
        result(gold(1, rich=True)),
        result(gold(2, source="cbo", year=None)),
        result(gold(3, source="perturb"), best=101),
        result(none_row(1), "NOT_FOUND", None),
        result(none_row(2, rich=True), "NOT_FOUND", None),
        result(trap_row(1), "REVIEW", 666),
    ]
    assert named(glance(results)) == {
        "Headline sources": 2,
        "Headline, rich": 1,
        "Headline, thin": 1,
        "Headline, with a year": 1,
        "Title cleaning only": 1,
        "Subject missing": 2,
        "Subject missing, rich": 1,
        "Subject missing, thin": 1,
        "Traps": 1,
    }
    headline = glance(results).groups[0].measures
    assert headline.linked == Rate(2, 2)
    assert headline.wrong == Rate(0, 2)


def test_sections_split_by_source_stratum_tag_and_label():
    results = [
        result(gold(1, source="imdb", tags=("rivals", "no_year"), label="silver"), strata=("season", "thin")),
        result(gold(2, source="bangumi", tags=("rivals",)), strata=("thin",)),
        result(gold(3, source="bangumi"), "NOT_FOUND", None),
        result(gold(4, source="perturb", tags=("dirty",)), strata=("season",)),
        result(none_row(1, source="bangumi"), best=5, strata=("season",)),
        result(trap_row(1), "REVIEW", 666),
    ]
    found = by_key(results)
    # The largest first, and those of titles alone not among them.
    assert list(named(found["source"]).items()) == [
        ("Headline sources", 3),
        ("bangumi", 2),
        ("imdb", 1),
        ("Title cleaning only", 1),
        ("perturb", 1),
    ]
    assert named(found["stratum"]) == {"带季数、部数或续集号": 1, "本地无任何人员": 2}
    assert named(found["tag"]) == {"rivals": 2, "(no tag)": 1, "no_year": 1}
    assert named(found["cleaning"]) == {"dirty": 1}
    assert named(found["label"]) == {"gold": 3, "silver": 1}
    assert named(found["missing"]) == {"All": 1, "bangumi": 1, "带季数、部数或续集号": 1}
    assert named(found["traps"]) == {"All": 1, "sites": 1}
    assert not found["missing"].has_truth
    assert not found["traps"].has_truth
    assert found["missing"].groups[0].measures.wrong == Rate(1, 1)


def test_sections_without_rows_are_left_out():
    assert set(by_key([result()])) == {"source", "tag", "label"}


def test_reasons_are_counted_with_what_each_costs_and_is_good_for():
    found = workload(
        [
            result(),  # linked: no reason counts
            result(gold(), "REVIEW", 100, reasons=("LEAD_TOO_SMALL",)),
            result(gold(), "REVIEW", 101, reasons=("LEAD_TOO_SMALL",)),
            result(gold(), "REVIEW", 100, reasons=("LEAD_TOO_SMALL", "YEAR_OFF")),
            result(none_row(), "REVIEW", 5, reasons=("LEAD_TOO_SMALL",)),
            result(gold(), "NOT_FOUND", None, reasons=("NO_CANDIDATES",)),
        ]
    )
    assert found == [
        ReasonCount("LEAD_TOO_SMALL", rows=4, reviewed=4, alone=3, alone_right=1, alone_wrong=2),
        ReasonCount("NO_CANDIDATES", rows=1, reviewed=0, alone=1, alone_right=0, alone_wrong=1),
        ReasonCount("YEAR_OFF", rows=1, reviewed=1, alone=0, alone_right=0, alone_wrong=0),
    ]


# --- wrong links against coverage -------------------------------------------------------------------------------------


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
    result(gold(source="perturb"), score=95.0),  # nor is what tests cleaning only
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
