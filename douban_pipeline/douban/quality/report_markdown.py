"""The report as Markdown, for a terminal, a diff or a merge request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from douban_pipeline.core.ui.presentation import Markdown, subject_link, table
from douban_pipeline.douban.quality.comparison import GradeChange, RunComparison, grade_name
from douban_pipeline.douban.quality.labelled_replay import Result
from douban_pipeline.douban.quality.metrics import HIDDEN, Section
from douban_pipeline.douban.quality.report import (
    MOST_IMPROVED,
    MOST_REGRESSED,
    SIDE_BY_SIDE,
    SWEEP_MEANING,
    TRUTH_COLUMNS,
    EvaluationReport,
    cell,
    columns_of,
    described,
    local_name,
    place_of,
    remarks,
    score_of,
    sentence,
    sweep_table,
    truth_name,
)


def render(report: EvaluationReport) -> str:
    """Return the whole report."""
    return "\n\n".join(_parts(report)) + "\n"


def render_summary(reports: Sequence[EvaluationReport], difference: RunComparison | None) -> str:
    """Return the results of several profiles on the same rows, side by side."""
    parts = ["# Evaluation: profiles side by side", described(*reports), "## Side by side", _side_by_side(reports)]
    if difference is not None:
        parts.append(f"## From {difference.earlier_name} to {reports[-1].profile.name}")
        parts += _comparison(difference)
    for report in reports:
        name = report.profile.name
        parts += [f"## Profile {name}", _table(report.glance), f"[The whole report of {name}]({name}/report.md)"]
    return "\n\n".join(parts) + "\n"


def _side_by_side(reports: Sequence[EvaluationReport]) -> str:
    rows = []
    for groups in zip(*(report.glance.groups for report in reports), strict=True):
        row: dict[str, Any] = {"": groups[0].name, "Rows": f"{groups[0].measures.rows:,}"}
        for column in SIDE_BY_SIDE:
            for report, group in zip(reports, groups, strict=True):
                value, *behind = cell(column, group.measures)
                row[f"{column.title}, {report.profile.name}"] = f"{value} ({behind[0]})" if behind else value
        rows.append(row)
    return table(rows, most=len(rows))


def _parts(report: EvaluationReport) -> Iterator[str]:
    yield f"# Evaluation: profile {report.profile.name}"
    yield described(report)
    yield "\n".join(f"- {remark}" for remark in remarks(report))
    yield "Plots are in report.html."
    yield f"## {report.glance.title}"
    yield _table(report.glance)
    yield report.glance.note
    if report.comparison is not None:
        yield f"## Against {_plain(report.comparison.earlier_name)}"
        yield from _comparison(report.comparison)
    yield f"## Wrong links ({len(report.wrong)})"
    yield table([_wrong_row(result) for result in report.wrong], most=len(report.wrong), empty="There is none.")
    if report.group(HIDDEN) is not None:
        yield f"## Links with the truth taken out ({len(report.wrong_hidden)})"
        rows = [_wrong_row(result) for result in report.wrong_hidden]
        yield table(rows, most=len(rows), empty="There is none.")
    yield "## What keeps rows from being linked"
    yield (
        "Headline sources and rows whose true subject is missing. *Alone* are rows with this reason and no other: had "
        "it not been there, *right* ones would have been linked well (what it costs), *wrong* ones wrongly (what it is "
        "good for)."
    )
    yield _workload(report)
    yield "## Wrong links against coverage"
    yield SWEEP_MEANING
    yield table(sweep_table(report), most=1000, empty="Nothing was linked.")
    for section in report.sections:
        yield f"## {section.title}"
        if section.note:
            yield section.note
        yield _table(section)
    yield "## How it is counted"
    yield "\n".join(f"- **{column.title}**: {column.meaning}." for column in TRUTH_COLUMNS)


def _table(section: Section) -> str:
    rows = []
    for group in section.groups:
        row: dict[str, Any] = {"": Markdown(f"**{_plain(group.name)}**") if group.total else group.name}
        row["Rows"] = f"{group.measures.rows:,}"
        for column in columns_of(section):
            value, *behind = cell(column, group.measures)
            row[column.title] = Markdown(f"{value} ({', '.join(behind)})" if behind else value)
        rows.append(row)
    return table(rows, most=len(rows))


def _plain(text: str) -> str:
    return " ".join(text.split())


def _wrong_row(result: Result) -> dict[str, Any]:
    gold = result.gold
    linked = result.douban_id or 0
    return {
        "row": place_of(gold),
        "source": gold.source,
        "local": local_name(gold),
        "linked": result.titles.get(linked, ""),
        "id": subject_link(linked),
        "truth": truth_name(result),
        "true id": subject_link(gold.expected or 0),
        "score": score_of(result),
        "explanation": result.explanation,
    }


def _workload(report: EvaluationReport) -> str:
    rows = [
        {
            "reason": held.code,
            "meaning": sentence(held.code),
            "rows": f"{held.rows:,}",
            "of them reviews": f"{held.reviewed:,}",
            "alone": f"{held.alone:,}",
            "alone, right": f"{held.alone_right:,}",
            "alone, wrong": f"{held.alone_wrong:,}",
        }
        for held in report.workload
    ]
    return table(rows, most=len(rows), empty="Every row was linked.")


def _comparison(comparison: RunComparison) -> Iterator[str]:
    yield (
        f"{len(comparison.regressed):,} regressed, {len(comparison.improved):,} improved, {comparison.unchanged:,} "
        f"unchanged ({comparison.relinked:,} of them with another verdict or best candidate), "
        f"{comparison.added:,} new rows, {comparison.gone:,} gone."
    )
    for title, changes, most in (
        ("Regressed", comparison.regressed, MOST_REGRESSED),
        ("Improved", comparison.improved, MOST_IMPROVED),
    ):
        if changes:
            yield f"### {title}"
            yield table([_change_row(change) for change in changes], most=most)


def _change_row(change: GradeChange) -> dict[str, Any]:
    gold = change.result.gold
    return {
        "row": place_of(gold),
        "local": local_name(gold),
        "truth": truth_name(change.result),
        "before": grade_name(gold, change.before),
        "after": grade_name(gold, change.after),
        "explanation": change.result.explanation,
    }
