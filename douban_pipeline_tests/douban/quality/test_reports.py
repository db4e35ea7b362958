"""The reports as they are read: what they say, that they say all of it, and that titles cannot break them."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from douban_pipeline.matching.profiles import make_profile
from douban_pipeline_tests.douban.quality.rows import gold, none_row, result, trap_row
from douban_pipeline_tests.tools.evaluate import report_html
from douban_pipeline_tests.tools.evaluate.comparison import compare_with, predictions_of
from douban_pipeline_tests.tools.evaluate.labelled_replay import Result
from douban_pipeline_tests.tools.evaluate.report import EvaluationReport, Run, make_report

HOSTILE = "<img src=x onerror=alert(1)></style><script> | `*_[a](javascript:alert(2)) & \"' {{ 7*7 }}\n# 标题"
VOID = {"meta", "br", "path", "rect", "circle"}
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


class Page(HTMLParser):
    """Reads a page and refuses one whose elements do not close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.elements: set[str] = set()
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            if name == "id":
                assert value not in self.ids
                self.ids.add(value or "")
            if name in ("href", "src"):
                self.links.add(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data


@pytest.mark.parametrize("results", [RESULTS, RESULTS[:1], RESULTS[4:5], RESULTS[5:]], ids=len)
def test_the_page_is_well_formed_and_needs_nothing_else(results: list[Result]):
    page = Page(report_html.render(report_of(results, earlier=RESULTS[:2])))
    assert not page.elements & {"script", "link", "img", "iframe", "object"}
    assert {link[1:] for link in page.links if link.startswith("#")} <= page.ids
    assert all(link.startswith(("#", "https://movie.douban.com/subject/")) for link in page.links)


def test_plots_are_drawn_into_the_page():
    page = report_html.render(report_of(RESULTS))
    plots = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(plots) == 5
    titles = {ElementTree.fromstring(plot).attrib["aria-label"] for plot in plots}
    assert {"Wrong links against coverage", "Coverage by source", "Coverage by stratum"} <= titles


def test_titles_cannot_break_the_page():
    text = report_html.render(report_of(RESULTS))
    assert "<img" not in text
    assert " ".join(HOSTILE.split()) in " ".join(Page(text).text.split())


def test_what_was_evaluated_is_said():
    text = report_html.render(report_of(RESULTS))
    assert "3 rows of gold.jsonl (3) against the 1,234 subjects of corpus.jsonl" in text
    assert "2026-03-01 08:30 UTC" in text
    assert "Rows whose true subject is not in the corpus: 2." in text
    assert "Confirmed from 85 points with a lead of 8, reviewed from 70." in text
    assert "not the defaults" not in text


def test_other_thresholds_are_said():
    profile = make_profile("plan")
    profile = replace(profile, thresholds=replace(profile.thresholds, confirm=80.0))
    assert "not the defaults" in report_html.render(make_report(RUN, profile, RESULTS))


def test_rates_stand_with_their_rows_and_intervals():
    text = report_html.render(report_of(RESULTS))
    row = next(line for line in text.splitlines() if 'class="total"' in line)
    cells = [" ".join(re.sub("<[^>]*>", " ", cell).split()) for cell in row.split("</td>")]
    assert cells[:5] == [
        "Headline sources",
        "3",
        "66.7 % 20.8–93.9 % 2 / 3",
        "1 · 33.3 % 6.1–79.2 % 1 / 3",
        "1 · 50.0 % 9.5–90.5 % 1 / 2",
    ]
    assert "2.00 95 % ≤ 2 most 2" in cells


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


def test_no_wrong_link_is_said_to_be_none():
    assert "There is none." in report_html.render(report_of([result()]))
    assert "Every row was linked." in report_html.render(report_of([result()]))


def test_reasons_stand_with_what_they_mean():
    text = report_html.render(report_of(RESULTS))
    assert "BELOW_CONFIRM" in text
    assert "得分未达自动确认线" in text


def test_regressed_rows_come_first_and_what_is_left_out_is_counted():
    many = range(1, report_html.MOST_REGRESSED + 8)
    before = [*(result(gold(row)) for row in many), result(gold(900), "REVIEW")]
    after = [*(result(gold(row, title=f"退步{row}。"), best=101) for row in many), result(gold(900, title="进步"))]
    text = report_html.render(report_of(after, earlier=before))
    comparison = text[text.index("earlier/") :]
    assert comparison.index("Regressed") < comparison.index("退步1。") < comparison.index("进步")
    assert "… and 7 more" in comparison
    assert "review, truth on top" in comparison


def test_profiles_stand_side_by_side():
    reports = [report_of(RESULTS), report_of(RESULTS[:1], "calibrated")]
    reports[1] = replace(reports[1], glance=reports[0].glance)
    difference = compare_with(predictions_of(RESULTS), RESULTS, "plan")
    page = Page(report_html.render_summary(reports, difference))
    assert {"plan/report.html", "calibrated/report.html"} <= page.links
    assert "profiles plan and calibrated" in page.text
    assert "From plan to calibrated" in page.text
    assert "The whole report of plan" in page.text
    assert "Coverageplan" in page.text
    assert "Coveragecalibrated" in page.text
