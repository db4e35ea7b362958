"""The reports as they are read: what they say, that they say all of it, and that titles cannot break them."""

from __future__ import annotations

import html
from datetime import UTC, datetime

from douban_pipeline.matching.profiles import make_profile
from douban_pipeline_tests.douban.quality.rows import gold, none_row, result, trap_row
from douban_pipeline_tests.tools.evaluate import report_html
from douban_pipeline_tests.tools.evaluate.comparison import compare_with, predictions_of
from douban_pipeline_tests.tools.evaluate.labelled_replay import Result
from douban_pipeline_tests.tools.evaluate.report import EvaluationReport, Run, make_report

HOSTILE = "<img src=x onerror=alert(1)></style><script> | `*_[a](javascript:alert(2)) & \"' {{ 7*7 }}\n# 标题"
RUN = Run("corpus.jsonl", 1234, {"gold.jsonl": 3}, 2, datetime(2026, 3, 1, 8, 30, tzinfo=UTC))
RESULTS = [
    result(gold(1), strata=("season", "thin")),
    result(gold(2, title=HOSTILE, tags=(HOSTILE,), source="cbo"), best=101, titles={101: HOSTILE}, explanation=HOSTILE),
    result(gold(3), "REVIEW", 100, others=(7,)),
    result(gold(4, source="perturb"), "NOT_FOUND", None, reasons=("NO_CANDIDATES",)),
    result(none_row(1), "REVIEW", 5),
    result(trap_row(1), "NOT_FOUND", 666, reasons=("BELOW_REVIEW",)),
]


def report_of(results: list[Result], profile: str = "plan", earlier: list[Result] | None = None) -> EvaluationReport:
    comparison = compare_with(predictions_of(earlier), results, "earlier/") if earlier is not None else None
    return make_report(RUN, make_profile(profile), results, comparison)


def test_titles_cannot_break_the_page():
    text = report_html.render(report_of(RESULTS, earlier=RESULTS[:2]))
    assert "<img" not in text
    assert " ".join(HOSTILE.split()) in " ".join(html.unescape(text).split())


def test_every_wrong_link_is_listed_with_both_subjects_and_its_explanation():
    wrong = [
        result(gold(row, title=f"片名{row}"), best=101, titles={101: "错的 (1999)"}, explanation=f"说明{row}。")
        for row in range(1, 121)
    ]
    text = report_html.render(report_of([*wrong, result(none_row(7, title="没有"), best=5, titles={5: "别的 (2001)"})]))
    assert "Wrong links (121)" in text
    for row in range(1, 121):
        assert f"片名{row} (2015)" in text
        assert f"说明{row}。" in text
    for expected in (
        "错的 (1999)",
        "青石巷 (2015)",
        "https://movie.douban.com/subject/101/",
        "no subject of the corpus",
    ):
        assert expected in text
