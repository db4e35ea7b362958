"""Terminal output of an evaluation: tables, and the evidence of a report or of one row, as text or JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from douban_pipeline.core.intervals import Rate
from douban_pipeline.core.ui.plots import percent
from douban_pipeline.douban.quality.evidence import NOT_AMONG, RIGHT_ON_TOP, WRONG_ON_TOP, evidence, row_evidence
from douban_pipeline.douban.quality.labelled_replay import Result
from douban_pipeline.douban.quality.labelled_rows import CorpusSubject
from douban_pipeline.douban.quality.metrics import Measures
from douban_pipeline.douban.quality.report import EvaluationReport, between

_SHOWN_SETS = 40
_AGREES, _DISAGREES = "agree", "disagree"
_OUTCOMES = ("CONFIRMED", "WRONG", "REVIEW", "NOT_FOUND")


def print_tables(reports: Sequence[EvaluationReport], console: Console) -> None:
    """Print the overview of every report."""
    for report in reports:
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        table.add_column(f"profile {report.profile.name}", no_wrap=True)
        for title in ("rows", "coverage", "review", "wrong, 95 %", "top 5*", "calls"):
            table.add_column(title, justify="right", no_wrap=True)
        for group in report.glance.groups:
            table.add_row(*_line(group.name, group.measures), style="bold" if group.total else "")
        console.print(table)
        if report.comparison is not None:
            found = report.comparison
            console.print(
                f"regressed {len(found.regressed)}, improved {len(found.improved)}, unchanged {found.unchanged}, "
                f"new {found.added}, gone {found.gone}",
                highlight=False,
            )
    console.print("* the truth, of reviews whose candidates hold it; calls: requests a row", style="dim")


def print_changes(profiles: Sequence[str], changed: Sequence[Counter[tuple[str, str]]], console: Console) -> None:
    """Print what added facts changed, a table per profile: rows by verdict without the facts, columns with them."""
    if not changed:
        console.print("facts added: no row has another source's row of the same work", highlight=False, soft_wrap=True)
    for profile, counted in zip(profiles, changed, strict=False):
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        table.add_column(f"facts added, {profile}", no_wrap=True)
        for outcome in _OUTCOMES:
            table.add_column(f"→ {outcome}", justify="right", no_wrap=True)
        for before in _OUTCOMES:
            table.add_row(before, *(f"{counted[before, after]:,}" for after in _OUTCOMES))
        console.print(table)


def _line(name: str, measures: Measures) -> tuple[str, ...]:
    return (
        name,
        f"{measures.rows:,}",
        _share(measures.linked),
        _share(measures.reviewed),
        f"{measures.wrong.hits:,} · {between(measures.wrong)}",
        _share(measures.review_shown_of_found),
        "—" if measures.requests.mean is None else f"{measures.requests.mean:.2f}",
    )


def _share(rate: Rate) -> str:
    return "—" if rate.share is None else percent(rate.share)


def print_row(
    judged: Sequence[Result], corpus: Mapping[int, CorpusSubject], truth: int | None, as_json: bool, console: Console
) -> None:
    """Print the evidence of the verdict on a row; later results of several are without the true subject."""
    found = [
        {"truth taken out": place > 0, **row_evidence(result, corpus, truth=truth)}
        for place, result in enumerate(judged)
    ]
    if as_json:
        _print_plain([json.dumps(found, ensure_ascii=False)], console)
    else:
        for each in found:
            _print_plain(row_text(each), console)


def print_evidence(
    reports: Sequence[EvaluationReport], corpus: Mapping[int, CorpusSubject], as_json: bool, console: Console
) -> None:
    """Print the evidence of reports; as JSON it is a list, one item per profile."""
    found = [evidence(report, corpus) for report in reports]
    if as_json:
        _print_plain([json.dumps(found, ensure_ascii=False)], console)
    else:
        for each in found:
            _print_plain(evidence_text(each), console)


def _print_plain(lines: Iterable[str], console: Console) -> None:
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


# --- evidence as text -------------------------------------------------------------------------------------------------


def evidence_text(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a report's evidence for a terminal."""
    yield f"{found['rules']}, profile {found['profile']}"
    for group in found["groups"]:
        linked, requests = _percent(group["linked"]), group["requests"]
        calls = "" if requests is None else f", {requests:.2f} requests"
        yield f"  {group['name']}: {group['rows']:,} rows, {linked} linked, {group['wrong']} wrong{calls}"
    for name, points in found["curve"].items():
        yield f"curve, {name}:"
        for point in points:
            wrong, missing = point["wrong"], point["wrong of missing"]
            linked = _percent(point["linked"])
            yield f"  from {point['threshold']:g}: {linked} linked, {wrong} wrong, {missing} of missing subjects"
    yield "reasons left, headline rows:"
    for each in found["reasons"][:_SHOWN_SETS]:
        tops = ", ".join(f"{each[top]} {top}" for top in (RIGHT_ON_TOP, WRONG_ON_TOP, NOT_AMONG))
        yield f"  {' + '.join(each['reasons']) or '(none)'}: {each['rows']} rows ({tops}; {each['fair']} fair)"
        for top, facts in each["facts"].items():
            yield f"    {top}: {_counted(facts, each[top])}"
    if len(found["reasons"]) > _SHOWN_SETS:
        rest = found["reasons"][_SHOWN_SETS:]
        yield f"  {len(rest)} more sets of reasons: {sum(each['rows'] for each in rest)} rows (--json has them)"
    yield f"wrong links: {len(found['wrong'])}"
    for link in found["wrong"]:
        yield from row_text(link)


def row_text(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of one row."""
    hidden = ", truth taken out" if row.get("truth taken out") else ""
    yield f"{row['file']}:{row['row']} ({row['source']}{hidden}) {row['verdict']} {' + '.join(row['reasons'])}".rstrip()
    yield f"  {row['explanation']}"
    for name in ("video", "best", "truth"):
        yield f"  {name:5} {_subject_line(row[name])}"
    facts = [f"{name} {outcome}" for name, outcome in row["facts"].items() if outcome in (_AGREES, _DISAGREES)]
    unknown = [name for name, outcome in row["facts"].items() if outcome not in (_AGREES, _DISAGREES)]
    yield f"  facts {', '.join(facts) or 'none'}; unknown: {', '.join(unknown) or 'none'}"


def _subject_line(values: Mapping[str, Any] | None) -> str:
    if values is None:
        return "—"
    return "; ".join(f"{name} {_plain(value)}" for name, value in values.items())


def _plain(value: object) -> str:
    return "、".join(map(str, value[:6])) if isinstance(value, tuple) else str(value)


def _percent(share: float | None) -> str:
    return "—" if share is None else percent(share)


def _counted(facts: Mapping[str, Mapping[str, int]], rows: int) -> str:
    """Return, for each fact, how many of ``rows`` agree, disagree or lack it."""
    parts = []
    for name, outcomes in facts.items():
        agree, disagree = outcomes.get(_AGREES, 0), outcomes.get(_DISAGREES, 0)
        if agree or disagree:
            parts.append(f"{name} {agree} agree, {disagree} disagree, {rows - agree - disagree} unknown")
        else:
            parts.append(f"{name} unknown")
    return "; ".join(parts)
