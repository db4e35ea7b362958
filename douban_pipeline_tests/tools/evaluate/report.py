"""Content of a report, for a page and for a terminal: groups, wrong links, curves and plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from douban_pipeline.core.intervals import Rate
from douban_pipeline.matching import RULE_VERSION
from douban_pipeline.matching.profiles import Profile
from douban_pipeline_tests.tools.evaluate.comparison import Grade, RunComparison, grade, grade_name, prediction_of
from douban_pipeline_tests.tools.evaluate.labelled_replay import Result
from douban_pipeline_tests.tools.evaluate.labelled_rows import CLEANING_SOURCES, Expectation
from douban_pipeline_tests.tools.evaluate.local_sources import SearchKind
from douban_pipeline_tests.tools.evaluate.metrics import (
    HEADLINE,
    MISSING,
    Measures,
    ReasonCount,
    Section,
    Sweep,
    glance,
    sections,
    sweep,
    workload,
)
from douban_pipeline_tests.tools.evaluate.plots import Bar, Line, bars, curve, percent

SWEEP_STEP = 5.0
ENOUGH = 100
"""Number of rows from which a group determines the scale of a plot."""


@dataclass(frozen=True, slots=True)
class Run:
    """Inputs of an evaluation.

    Attributes:
        corpus_name: Name of the corpus file.
        subjects: Number of subjects in it.
        files: Number of rows read from every gold file.
        truths_not_in_corpus: Number of rows whose true subject the corpus does not have: it cannot be found.
        made_at: Time of the evaluation, in UTC.
        search: Kind of search for candidates.
    """

    corpus_name: str
    subjects: int
    files: Mapping[str, int]
    truths_not_in_corpus: int
    made_at: datetime
    search: SearchKind = SearchKind.SUGGESTIONS


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """Content of one profile's report.

    ``grades`` holds, for the headline rows and those whose subject is missing, the number of rows by grade: the grade's
    name, the grade and the count, best first. ``wrong_hidden`` are the links of rows whose true subject was removed.
    """

    run: Run
    profile: Profile
    results: Sequence[Result]
    glance: Section
    sections: tuple[Section, ...]
    wrong: tuple[Result, ...]
    wrong_hidden: tuple[Result, ...]
    grades: Mapping[str, Sequence[tuple[str, Grade, int]]]
    workload: Sequence[ReasonCount]
    sweep: Sweep
    comparison: RunComparison | None

    @property
    def headline(self) -> Measures | None:
        """The metrics of the headline sources; None without any of their rows."""
        return self.group(HEADLINE)

    def group(self, name: str) -> Measures | None:
        """Return the metrics of a group of the overview."""
        return next((group.measures for group in self.glance.groups if group.name == name), None)


def make_report(
    run: Run,
    profile: Profile,
    results: Sequence[Result],
    comparison: RunComparison | None = None,
    hidden: Sequence[Result] = (),
) -> EvaluationReport:
    """Return a report; ``hidden`` are results of rows judged again without their true subject."""
    headline = [result for result in results if result.gold.headline]
    missing = [result for result in results if result.gold.expectation is Expectation.NONE]
    return EvaluationReport(
        run=run,
        profile=profile,
        results=results,
        glance=glance(results, hidden),
        sections=sections(results),
        wrong=tuple(result for result in results if result.wrong),
        wrong_hidden=tuple(result for result in hidden if result.wrong),
        grades={name: _grades(rows) for name, rows in ((HEADLINE, headline), (MISSING, missing)) if rows},
        workload=workload([*headline, *missing]),
        sweep=sweep(results),
        comparison=comparison,
    )


def _grades(results: Sequence[Result]) -> list[tuple[str, Grade, int]]:
    counts: dict[tuple[Grade, str], int] = {}
    for result in results:
        found = grade(result.gold, prediction_of(result))
        key = found, grade_name(result.gold, found)
        counts[key] = counts.get(key, 0) + 1
    return [(name, found, count) for (found, name), count in sorted(counts.items(), reverse=True)]


def between(rate: Rate) -> str:
    """Return the interval of a rate as text."""
    low, high = (percent(bound) for bound in rate.interval)
    return f"{low.removesuffix(' %')}–{high}"


def percent_or_dash(share: float | None) -> str:
    """Return a share as text; a dash if there are no rows."""
    return "—" if share is None else percent(share)


_SEARCHES = {
    SearchKind.SUGGESTIONS: "titles and years",
    SearchKind.SIX: "titles and years of six subjects a page",
    SearchKind.WEB: "bare titles",
}


def described(*reports: EvaluationReport) -> str:
    """Return a sentence about the inputs of the evaluation; the reports differ only in their profiles."""
    run = reports[0].run
    files = ", ".join(f"{name} ({rows:,})" for name, rows in run.files.items())
    profiles = " and ".join(report.profile.name for report in reports)
    return (
        f"{sum(run.files.values()):,} rows of {files} against the {run.subjects:,} subjects of {run.corpus_name}, "
        f"searched with {_SEARCHES[run.search]}; "
        f"rules {RULE_VERSION}, profile{'s' if len(reports) > 1 else ''} {profiles}; {run.made_at:%Y-%m-%d %H:%M} UTC"
    )


def remarks(report: EvaluationReport) -> list[str]:
    """Return remarks needed to interpret the numbers."""
    profile, default = report.profile, Profile(report.profile.name)
    lines = [
        f"Confirmed from {profile.thresholds.confirm:g} points with a lead of {profile.thresholds.lead:g}, "
        f"reviewed from {profile.thresholds.review:g}."
    ]
    if profile != default:
        lines.append(f"Weights or thresholds are not the defaults: {profile.weights}, {profile.thresholds}.")
    if report.run.truths_not_in_corpus:
        lines.append(
            f"Rows whose true subject is not in the corpus: {report.run.truths_not_in_corpus:,}. "
            "They count, and cannot be found."
        )
    lines.append(
        "Intervals are Wilson's, 95 %. Requests are search calls and detail calls; what an archive holds costs none."
    )
    return lines


# --- plots ------------------------------------------------------------------------------------------------------------


def plots(report: EvaluationReport) -> list[str]:
    """Return the plots of a report as SVG."""
    return [plot for plot in (*sweep_plots([report]), *_bars(report)) if plot]


def _bars(report: EvaluationReport) -> list[str]:
    found = {section.key: section for section in report.sections}
    drawn = []
    for key in ("source", "stratum"):
        if key in found:
            groups = [
                each for each in found[key].groups if key != "source" or each.total or each.name not in CLEANING_SOURCES
            ]
            linked = [Bar.of_rate(each.name, each.measures.linked) for each in groups]
            drawn.append(bars(linked, title=f"Coverage by {key}", high=1.0))
    wrong = [Bar.of_rate(each.name, each.measures.wrong) for each in report.glance.groups]
    large = [each.measures.wrong.interval.high for each in report.glance.groups if each.measures.rows >= ENOUGH]
    # The interval of a small group is so wide that it would make all others too small to read.
    drawn.append(bars(wrong, title="Wrong links, of all rows", high=2 * max(large) if large else None))
    return drawn


def sweep_plots(reports: Sequence[EvaluationReport]) -> list[str]:
    """Return the curves of wrong links against coverage, of one profile or of several in one plot."""
    headline: list[Line] = []
    missing: list[Line] = []
    for colour, report in enumerate(reports, start=1):
        name, found = report.profile.name, report.sweep
        for points, label, dashed in (
            (found.loose, f"{name}: also held by score or lead only", True),
            (found.clean, f"{name}: what was linked", False),
        ):
            for lines, up in ((headline, "wrong"), (missing, "missing_wrong")):
                shares = [(point.linked.share, getattr(point, up).share) for point in points]
                known = [(across, high) for across, high in shares if across is not None and high is not None]
                mark = known[-1] if known and not dashed else None
                if known:
                    lines.append(Line(label, known, mark, dashed, colour))
    labels = {"x_label": "coverage of the headline sources"}
    return [
        curve(headline, title="Wrong links against coverage", y_label="wrong links, headline sources", **labels),
        curve(missing, title="… where the true subject is missing", y_label="linked, all wrongly", **labels),
    ]
