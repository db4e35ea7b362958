"""What an evaluation prints: tables, and the evidence of a report or of one row, as text or JSON.

Evidence is the curve, the reasons of rows that were not linked with facts that agree or are missing, and all wrong
links.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Console

from douban_pipeline.core.intervals import Rate
from douban_pipeline.core.terminal_table import Table
from douban_pipeline.douban.quality.rates import grouped
from douban_pipeline.matching import RULE_VERSION, Video
from douban_pipeline_tests.tools.evaluate.labelled_replay import Result
from douban_pipeline_tests.tools.evaluate.labelled_rows import CorpusSubject
from douban_pipeline_tests.tools.evaluate.metrics import Measures, Point, at_steps
from douban_pipeline_tests.tools.evaluate.report import SWEEP_STEP, EvaluationReport, between, percent_or_dash

RIGHT_ON_TOP, WRONG_ON_TOP, NOT_AMONG = "right on top", "wrong on top", "not among the candidates"
"""Kinds of rows that were not linked, by their best candidate."""

_SUBJECT_FIELDS = ("title", "original_title", "aliases", "year", "regions", "genres", "directors", "actors")
_SUBJECT_NUMBERS = ("duration_minutes", "episodes")

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
        percent_or_dash(measures.linked.share),
        percent_or_dash(measures.reviewed.share),
        f"{measures.wrong.hits:,} · {between(measures.wrong)}",
        percent_or_dash(measures.review_shown_of_found.share),
        "—" if measures.requests.mean is None else f"{measures.requests.mean:.2f}",
    )


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


# --- evidence ---------------------------------------------------------------------------------------------------------


def evidence(report: EvaluationReport, corpus: Mapping[int, CorpusSubject]) -> dict[str, Any]:
    """Return the evidence of a report as JSON values.

    ``groups``, ``curve`` (linked rows, and those not linked only because of score or lead), ``reasons`` of headline
    rows that were not linked, with the facts of the best candidate, and ``wrong``: each wrong link with both subjects.
    """
    return {
        "rules": RULE_VERSION,
        "profile": report.profile.name,
        "groups": [
            {
                "name": group.name,
                "rows": group.measures.rows,
                "linked": _rounded(group.measures.linked),
                "wrong": group.measures.wrong.hits,
                "found": _rounded(group.measures.found),
                "requests": group.measures.requests.mean,
            }
            for group in report.glance.groups
        ],
        "curve": {
            "linked": [_point(point) for point in at_steps(report.sweep.clean, SWEEP_STEP)],
            "also held by score or lead only": [_point(point) for point in at_steps(report.sweep.loose, SWEEP_STEP)],
        },
        "reasons": reasons_left(report.results),
        "wrong": list(_wrong_links(report, corpus)),
    }


def reasons_left(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return the sets of reasons for which headline rows were not linked, the most frequent first.

    Each counts the rows with the true subject first, with another subject first, and without the true subject among the
    candidates; those whose subject's year is in the corpus (`fair`); and, for rows with a right or wrong first
    candidate, how many agree in each fact, disagree, or lack it.
    """
    held = [result for result in results if result.gold.headline and not result.confirmed]
    sets = grouped(held, lambda result: (result.reasons,))
    found = sorted(sets.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    return [_reason_set(codes, rows) for codes, rows in found]


def _reason_set(codes: tuple[str, ...], rows: Sequence[Result]) -> dict[str, Any]:
    tops = Counter(map(_top, rows))
    return {
        "reasons": list(codes),
        "rows": len(rows),
        "fair": sum(row.dated for row in rows),
        **{top: tops[top] for top in (RIGHT_ON_TOP, WRONG_ON_TOP, NOT_AMONG)},
        "facts": {
            top: _facts([row for row in rows if _top(row) == top]) for top in (RIGHT_ON_TOP, WRONG_ON_TOP) if tops[top]
        },
    }


def _top(result: Result) -> str:
    place = result.place_of_truth
    if place is None:
        return NOT_AMONG
    return RIGHT_ON_TOP if place == 1 else WRONG_ON_TOP


def _facts(rows: Sequence[Result]) -> dict[str, dict[str, int]]:
    """Count the outcomes of every fact; a fact that no row could compare is counted as unknown for all."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        for name, outcome in row.outcomes.items():
            counts[name][outcome] += 1
    return {name: dict(sorted(found.items())) for name, found in counts.items()}


def _wrong_links(report: EvaluationReport, corpus: Mapping[int, CorpusSubject]) -> Iterator[dict[str, Any]]:
    truths = {row.gold.key: row.gold.expected for row in report.results}
    for hidden, rows in ((False, report.wrong), (True, report.wrong_hidden)):
        for row in rows:
            yield {"truth taken out": hidden, **row_evidence(row, corpus, truth=truths[row.gold.key])}


def row_evidence(result: Result, corpus: Mapping[int, CorpusSubject], truth: int | None) -> dict[str, Any]:
    """Return the evidence of one row: the record, the best candidate, the true subject, and the facts."""
    return {
        "file": result.gold.file,
        "row": result.gold.row,
        "source": result.gold.source,
        "verdict": result.verdict,
        "reasons": list(result.reasons),
        "score": result.score,
        "lead": result.lead,
        "explanation": result.explanation,
        "facts": dict(result.outcomes),
        "place of the truth": result.place_of_truth,
        "requests": result.requests,
        "video": _video(result.gold.video),
        "best": _subject(result.douban_id, corpus),
        "truth": _subject(truth, corpus),
        "candidates": [
            {"douban_id": douban_id, "title": result.titles.get(douban_id, ""), "score": score}
            for douban_id, score in result.candidates
        ],
    }


def _video(video: Video) -> dict[str, Any]:
    return {name: value for name, value in asdict(video).items() if value not in (None, "", ()) and name != "vod_id"}


def _subject(douban_id: int | None, corpus: Mapping[int, CorpusSubject]) -> dict[str, Any] | None:
    if douban_id is None:
        return None
    known = corpus.get(douban_id)
    values = {} if known is None else {name: getattr(known.record, name) for name in _SUBJECT_FIELDS + _SUBJECT_NUMBERS}
    kind = known.kind if known is not None else ""
    filled = {"kind": kind, **values}
    return {"douban_id": douban_id, **{name: value for name, value in filled.items() if value not in (None, "", ())}}


def _rounded(rate: Rate) -> float | None:
    return None if rate.share is None else round(rate.share, 5)


def _point(point: Point) -> dict[str, Any]:
    return {
        "threshold": point.threshold,
        "linked": _rounded(point.linked),
        "wrong": point.wrong.hits,
        "wrong of missing": point.missing_wrong.hits,
    }


# --- evidence as text -------------------------------------------------------------------------------------------------


def evidence_text(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a report's evidence for a terminal."""
    yield f"{found['rules']}, profile {found['profile']}"
    for group in found["groups"]:
        linked, requests = percent_or_dash(group["linked"]), group["requests"]
        calls = "" if requests is None else f", {requests:.2f} requests"
        yield f"  {group['name']}: {group['rows']:,} rows, {linked} linked, {group['wrong']} wrong{calls}"
    for name, points in found["curve"].items():
        yield f"curve, {name}:"
        for point in points:
            wrong, missing = point["wrong"], point["wrong of missing"]
            linked = percent_or_dash(point["linked"])
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
