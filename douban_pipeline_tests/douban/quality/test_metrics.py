"""Small tables, counted by hand."""

from __future__ import annotations

import pytest

from douban_pipeline.core.intervals import Rate
from douban_pipeline_tests.douban.quality.rows import gold, none_row, result, trap_row
from douban_pipeline_tests.tools.evaluate.labelled_replay import Result
from douban_pipeline_tests.tools.evaluate.metrics import ReasonCount, Section, measure, sections, workload


def named(section: Section) -> dict[str, int]:
    return {group.name: group.measures.rows for group in section.groups}


def by_key(results: list[Result]) -> dict[str, Section]:
    return {section.key: section for section in sections(results)}


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


def test_a_trap_s_other_links_are_not_judged():
    found = measure([result(trap_row(), best=666), result(trap_row(), best=5), result(trap_row(), "REVIEW", 666)])
    assert found.linked == Rate(2, 3)
    assert found.wrong == Rate(1, 3)
    assert found.wrong_of_linked == Rate(1, 1)
    assert found.review_top == Rate(0, 0)


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
