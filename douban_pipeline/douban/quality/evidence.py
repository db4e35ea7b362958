"""Evidence of a report: the curve, reasons for unlinked rows with facts that agree or are missing, all wrong links."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from douban_pipeline.core.intervals import Rate
from douban_pipeline.douban.quality.labelled_replay import Result
from douban_pipeline.douban.quality.labelled_rows import CorpusSubject
from douban_pipeline.douban.quality.metrics import is_headline, place_of_truth
from douban_pipeline.douban.quality.report import SWEEP_STEP, EvaluationReport
from douban_pipeline.douban.quality.sweep import Point, at_steps
from douban_pipeline.matching import RULE_VERSION, Video

RIGHT_ON_TOP, WRONG_ON_TOP, NOT_AMONG = "right on top", "wrong on top", "not among the candidates"
"""Kinds of rows that were not linked, by their best candidate."""

_SUBJECT_FIELDS = ("title", "original_title", "aliases", "year", "regions", "genres", "directors", "actors")
_SUBJECT_NUMBERS = ("duration_minutes", "episodes")


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
                "linked": _share(group.measures.linked),
                "wrong": group.measures.wrong.hits,
                "found": _share(group.measures.found),
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
    sets: dict[tuple[str, ...], list[Result]] = defaultdict(list)
    for result in results:
        if is_headline(result.gold) and not result.confirmed:
            sets[tuple(map(str, result.reasons))].append(result)
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
    place = place_of_truth(result)
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
    truths = {(row.gold.file, row.gold.row): row.gold.expected for row in report.results}
    for hidden, rows in ((False, report.wrong), (True, report.wrong_hidden)):
        for row in rows:
            yield {
                "truth taken out": hidden,
                **row_evidence(row, corpus, truth=truths.get((row.gold.file, row.gold.row))),
            }


def row_evidence(result: Result, corpus: Mapping[int, CorpusSubject], truth: int | None) -> dict[str, Any]:
    """Return the evidence of one row: the record, the best candidate, the true subject, and the facts."""
    return {
        "file": result.gold.file,
        "row": result.gold.row,
        "source": result.gold.source,
        "verdict": result.verdict,
        "reasons": list(map(str, result.reasons)),
        "score": result.score,
        "lead": result.lead,
        "explanation": result.explanation,
        "facts": dict(result.outcomes),
        "place of the truth": place_of_truth(result),
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


def _share(rate: Rate) -> float | None:
    return None if rate.share is None else round(rate.share, 5)


def _point(point: Point) -> dict[str, Any]:
    return {
        "threshold": point.threshold,
        "linked": _share(point.linked),
        "wrong": point.wrong.hits,
        "wrong of missing": point.missing_wrong.hits,
    }
