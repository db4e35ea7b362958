"""The report as an HTML page: the most important results first.

This module prepares plain values; `report.html.j2` renders the page and escapes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from douban_pipeline.core.intervals import Rate
from douban_pipeline.core.ui import templates
from douban_pipeline.core.ui.templates import Card, problem_tone
from douban_pipeline.matching.codes import SENTENCES
from douban_pipeline.matching.strata import STRATA
from douban_pipeline_tests.tools.evaluate.comparison import GradeChange, RunComparison, grade_name
from douban_pipeline_tests.tools.evaluate.labelled_replay import Result
from douban_pipeline_tests.tools.evaluate.labelled_rows import GoldRow, titled
from douban_pipeline_tests.tools.evaluate.metrics import (
    HIDDEN,
    MISSING,
    SHOWN,
    TRAPS,
    Measures,
    Point,
    Requests,
    RowGroup,
    Section,
    at_steps,
)
from douban_pipeline_tests.tools.evaluate.plots import percent
from douban_pipeline_tests.tools.evaluate.report import (
    SWEEP_STEP,
    EvaluationReport,
    between,
    described,
    percent_or_dash,
    plots,
    remarks,
    sweep_plots,
)

MOST_REGRESSED = 50
MOST_IMPROVED = 20

_CURVES = (
    "Whiskers are 95 % intervals. The curves move the score threshold over all rows that were linked; dashed, also "
    "over rows that only their score or lead kept back. Points mark the threshold in force."
)
_SWEEP_MEANING = (
    "Were the score threshold another one: “linked” moves it over rows that were linked, “loose” also over rows that "
    "only score or lead kept back; “missing” are rows whose true subject is not in the corpus."
)
_WORKLOAD = (
    "Headline sources and rows whose true subject is missing. “Alone” are rows with this reason and no other: "
    "without it the right ones would have been linked well, which is what it costs, and the wrong ones wrongly, "
    "which is what it is good for."
)


@dataclass(frozen=True, slots=True)
class _Chapter:
    """A part of the page: ``kind`` is the macro that renders it, ``of`` the macro's argument."""

    key: str
    title: str
    kind: str
    of: Any


@dataclass(frozen=True, slots=True)
class _Head:
    """A column header; ``of`` names the profile where several are shown together."""

    title: str
    meaning: str = ""
    of: str = ""


@dataclass(frozen=True, slots=True)
class _Cell:
    """A metric: its text, the counts it is computed from, whether it is good or bad, and its share in percent."""

    value: str
    behind: Sequence[str] = ()
    tone: str = ""
    share: float | None = None


@dataclass(frozen=True, slots=True)
class _Fact:
    """A line of a result: our own text, a title, a subject."""

    term: str
    text: str
    title: str
    douban_id: int | None


@dataclass(frozen=True, slots=True)
class _Column:
    """One metric as shown in reports.

    Attributes:
        title: Title of the column.
        meaning: What it is a share of.
        value: Returns the metric.
        bad: Whether every value above 0 is bad.
    """

    title: str
    meaning: str
    value: Callable[[Measures], Rate | Requests]
    bad: bool = False


_LINKED = _Column("Coverage", "rows linked without a person (CONFIRMED), of all rows", lambda each: each.linked)
_WRONG = _Column(
    "Wrong links", "rows linked to a subject that they are not, of all rows", lambda each: each.wrong, True
)
_WRONG_OF_LINKED = _Column(
    "Wrong of links", "wrong links, of all links that can be judged", lambda each: each.wrong_of_linked, True
)
_REQUESTS = _Column(
    "Requests",
    "mean requests for a verdict: search calls and detail calls; an answer from the archive costs none",
    lambda each: each.requests,
)
_REVIEWED = _Column("To review", "rows that a person has to look at, of all rows", lambda each: each.reviewed)
_TRUTH_COLUMNS = (
    _LINKED,
    _WRONG,
    _WRONG_OF_LINKED,
    _REVIEWED,
    _Column("Truth on top", "reviews whose best candidate is the truth, of all reviews", lambda each: each.review_top),
    _Column(
        "Truth in top 5", f"reviews with the truth among the first {SHOWN}, of all reviews", lambda e: e.review_shown
    ),
    _Column(
        "… when found",
        f"reviews with the truth among the first {SHOWN}, of those whose candidates hold it",
        lambda each: each.review_shown_of_found,
    ),
    _Column("Found at all", "rows whose candidates hold the truth, of all rows with one", lambda each: each.found),
    _REQUESTS,
)
"""Columns for rows that have a true subject."""

_PLAIN_COLUMNS = (
    _Column("Linked", _LINKED.meaning, lambda each: each.linked),
    _WRONG,
    _REVIEWED,
    _REQUESTS,
)
"""Columns for rows that have none."""


_SIDE_BY_SIDE = (_LINKED, _WRONG, _REVIEWED)
"""Columns in which profiles are compared."""


def render(report: EvaluationReport) -> str:
    """Return the whole report as one page."""
    return _page("Evaluation", report.profile.name, described(report), list(_chapters(report)), _cards(report))


def render_summary(reports: Sequence[EvaluationReport], difference: RunComparison | None) -> str:
    """Return the results of several profiles on the same rows, side by side, as one page."""
    chapters = [_Chapter("side", "Side by side", "table", _side_by_side(reports))]
    drawn = [Markup(plot) for plot in sweep_plots(reports) if plot]
    if drawn:
        shown = {"about": "", "plots": drawn, "curves": ()}
        chapters.append(_Chapter("plots", "Wrong links against coverage", "plots", shown))
    if difference is not None:
        title = f"From {difference.earlier_name} to {reports[-1].profile.name}"
        chapters.append(_Chapter("comparison", title, "comparison", _comparison(difference)))
    for report in reports:
        name = report.profile.name
        glance = {"name": name, "cards": _cards(report), "grades": report.grades, "table": _table(report.glance)}
        chapters.append(_Chapter(f"profile-{name}", f"Profile {name}", "profile", glance))
    return _page("Evaluation: profiles side by side", "", described(*reports), chapters, ())


def _page(title: str, badge: str, about: str, chapters: Sequence[_Chapter], cards: Sequence[Card]) -> str:
    values = {"title": title, "badge": badge, "about": about, "chapters": chapters, "cards": cards}
    return templates.render(__package__, "report.html.j2", lang="en", percent=percent, **values)


def _cards(report: EvaluationReport) -> list[Card]:
    found = []
    if (headline := report.headline) is not None:
        found += [
            _rate_card("Coverage, headline sources", headline.linked),
            _wrong_card("Wrong links, headline", headline.wrong),
        ]
    for name, title in (
        (MISSING, "Linked, subject missing"),
        (HIDDEN, "Linked, truth taken out"),
        (TRAPS, "Traps linked"),
    ):
        if (measures := report.group(name)) is not None:
            found.append(_wrong_card(title, measures.wrong))
    if headline is not None:
        found.append(_rate_card("Truth in top 5 of reviews, when found", headline.review_shown_of_found))
        if headline.requests.mean is not None:
            requests = headline.requests
            found.append(Card("Requests for a verdict", f"{requests.mean:.2f}", f"95 % ≤ {requests.p95}"))
    return found


def _rate_card(label: str, rate: Rate) -> Card:
    if rate.share is None:
        return Card(label, "—", "no such row")
    return Card(label, percent(rate.share), f"{between(rate)} of {rate.total:,}")


def _wrong_card(label: str, rate: Rate) -> Card:
    return Card(label, f"{rate.hits}", f"{between(rate)} of {rate.total:,}", problem_tone(rate.hits))


def _chapters(report: EvaluationReport) -> Iterator[_Chapter]:
    glance = {"grades": report.grades, "table": _table(report.glance), "note": report.glance.note}
    yield _Chapter("glance", report.glance.title, "glance", {**glance, "remarks": remarks(report)})
    if report.comparison is not None:
        compared = {**_comparison(report.comparison), "earlier": report.comparison.earlier_name}
        yield _Chapter("comparison", "Comparison", "comparison", compared)
    yield _Chapter("wrong", f"Wrong links ({len(report.wrong):,})", "results", list(map(_wrong, report.wrong)))
    if report.group(HIDDEN) is not None:
        title = f"Links with the truth taken out ({len(report.wrong_hidden):,})"
        yield _Chapter("hidden", title, "results", list(map(_wrong, report.wrong_hidden)))
    drawn = [Markup(plot) for plot in plots(report)]
    curves = {"curves": _sweep_table(report), "curves_about": _SWEEP_MEANING}
    yield _Chapter("plots", "Plots", "plots", {"about": _CURVES, "plots": drawn, **curves})
    workload = {
        "about": _WORKLOAD,
        "rows": [(held, SENTENCES.get(held.code, "")) for held in report.workload],
        "most": max((held.rows for held in report.workload), default=0),
    }
    yield _Chapter("workload", "What keeps rows from being linked", "workload", workload)
    for section in report.sections:
        yield _Chapter(section.key, section.title, "section", {"note": section.note, "table": _table(section)})
    yield _Chapter("meaning", "How it is counted", "meaning", _TRUTH_COLUMNS)


def _table(section: Section) -> dict[str, Any]:
    columns = _TRUTH_COLUMNS if section.has_truth else _PLAIN_COLUMNS
    rows = [_row(group, [_cell(column, group.measures) for column in columns]) for group in section.groups]
    return {"heads": [_Head(column.title, column.meaning) for column in columns], "rows": rows}


def _side_by_side(reports: Sequence[EvaluationReport]) -> dict[str, Any]:
    rows = []
    for groups in zip(*(report.glance.groups for report in reports), strict=True):
        rows.append(_row(groups[0], [_cell(column, group.measures) for column in _SIDE_BY_SIDE for group in groups]))
    heads = [_Head(column.title, of=report.profile.name) for column in _SIDE_BY_SIDE for report in reports]
    return {"heads": heads, "rows": rows}


def _row(group: RowGroup, cells: Sequence[_Cell]) -> Mapping[str, Any]:
    return {"total": group.total, "name": group.name, "count": f"{group.measures.rows:,}", "cells": cells}


def _cell(column: _Column, measures: Measures) -> _Cell:
    value = column.value(measures)
    if isinstance(value, Requests):
        if value.mean is None:
            return _Cell("—")
        return _Cell(f"{value.mean:.2f}", (f"95 % ≤ {value.p95}", f"most {value.most}"))
    if value.share is None:
        return _Cell("—")
    share, behind = percent(value.share), (between(value), f"{value.hits:,} / {value.total:,}")
    if column.bad:
        return _Cell(f"{value.hits:,} · {share}", behind, tone=problem_tone(value.hits))
    return _Cell(share, behind, share=100 * value.share)


def _wrong(result: Result) -> Mapping[str, Any]:
    gold = result.gold
    linked = result.titles.get(result.douban_id or 0, "")
    people = "、".join((*gold.video.directors, *gold.video.actors)[:5])
    also = "，".join(filter(None, ("、".join(gold.video.regions), people)))
    facts = [
        _Fact("linked", "", linked, result.douban_id),
        _Fact("truth", "", _truth_name(result), gold.expected),
    ]
    return {**_result(result, facts), "also": also, "better": False}


def _change(change: GradeChange) -> Mapping[str, Any]:
    result = change.result
    gold = result.gold
    before, after = (grade_name(gold, each) for each in (change.before, change.after))
    facts = [
        _Fact("before", before, "", change.earlier.douban_id),
        _Fact("after", after, result.titles.get(result.douban_id or 0, ""), result.douban_id),
        _Fact("truth", "", _truth_name(result), gold.expected),
    ]
    return {**_result(result, facts), "also": "", "better": change.after > change.before}


def _result(result: Result, facts: Sequence[_Fact]) -> dict[str, Any]:
    gold = result.gold
    chips = [_place_of(gold), f"{gold.source}, {gold.label}", _score_of(result), *gold.tags]
    chips += [STRATA.get(code, code) for code in result.strata]
    named = {"title": titled(gold.video.title, gold.video.year), "explanation": result.explanation}
    return {**named, "facts": facts, "chips": list(filter(None, chips))}


def _comparison(comparison: RunComparison) -> dict[str, Any]:
    regressed, improved = comparison.regressed, comparison.improved
    relinked = f"{comparison.relinked:,} with another verdict or best candidate"
    return {
        "earlier": "",
        "cards": [
            Card("Regressed", f"{len(regressed):,}", "fare worse", problem_tone(len(regressed))),
            Card("Improved", f"{len(improved):,}", "fare better", "good" if improved else ""),
            Card("Unchanged", f"{comparison.unchanged:,}", relinked),
            Card("New rows", f"{comparison.added:,}", f"{comparison.gone:,} gone"),
        ],
        "changes": [
            _changes("Regressed", regressed, MOST_REGRESSED, opened=True),
            _changes("Improved", improved, MOST_IMPROVED, opened=False),
        ],
    }


def _changes(title: str, changes: Sequence[GradeChange], most: int, *, opened: bool) -> Mapping[str, Any]:
    first = [_change(change) for change in changes[:most]]
    return {"title": title, "count": len(changes), "first": first, "left_out": len(changes) - most, "open": opened}


# --- words ------------------------------------------------------------------------------------------------------------


def _place_of(gold: GoldRow) -> str:
    """Return a row's file, line and id."""
    return f"{gold.file}:{gold.row}" + (f" {gold.gid}" if gold.gid else "")


def _truth_name(result: Result) -> str:
    """Return the name of the row's true subject."""
    if result.gold.expected is not None:
        return result.truth_titles or "not in the corpus"
    return "anything but this" if result.gold.trap is not None else "no subject of the corpus"


def _score_of(result: Result) -> str:
    """Return score and lead as text."""
    if result.score is None:
        return ""
    return f"score {result.score:.1f}" + (f", lead {result.lead:.1f}" if result.lead is not None else ", no rival")


def _sweep_table(report: EvaluationReport) -> list[dict[str, str]]:
    """Return both curves at round thresholds, from the highest down, as rows of a table."""
    found: dict[float, dict[str, Point]] = {}
    for name, points in (("linked", report.sweep.clean), ("loose", report.sweep.loose)):
        for point in at_steps(points, SWEEP_STEP):
            found.setdefault(point.threshold, {})[name] = point
    rows = []
    for threshold in sorted(found, reverse=True):
        row = {"Score from": f"{threshold:g}"}
        for name in ("linked", "loose"):
            at = found[threshold].get(name)
            shares = (at.linked.share, at.wrong.share, at.missing_wrong.share) if at else (None, None, None)
            for title, share in zip(("coverage", "wrong", "wrong, missing"), shares, strict=True):
                row[f"{name}: {title}"] = percent_or_dash(share)
        rows.append(row)
    return rows
