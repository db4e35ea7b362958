"""Metrics of the matcher on labelled rows: rates with confidence intervals, by group.

Rows are of three kinds: *gold* (the true subject is known), *none* (the subject is not in the corpus, so every link is
wrong) and *trap* (there is one subject it must not be linked to; other links are not judged).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas
from pandas import DataFrame

from douban_pipeline.core.intervals import Rate
from douban_pipeline.douban.quality.labelled_replay import Result
from douban_pipeline.douban.quality.labelled_rows import HEADLINE_SOURCES, GoldRow, link_is_wrong
from douban_pipeline.matching.strata import STRATA

SHOWN = 5
"""Number of candidates shown to a reviewer."""

HEADLINE, FAIR = "Headline sources", "Headline, fair"
MISSING, HIDDEN, TRAPS = "Subject missing", "Truth taken out", "Traps"
"""Groups of the overview."""


class Expectation(enum.StrEnum):
    """Kind of a row's label."""

    GOLD = "gold"
    NONE = "none"
    TRAP = "trap"


def expectation(gold: GoldRow) -> Expectation:
    """Return the kind of a row's label."""
    if gold.trap is not None:
        return Expectation.TRAP
    return Expectation.NONE if gold.expected is None else Expectation.GOLD


def is_headline(gold: GoldRow) -> bool:
    """Return whether a row has a true subject and comes from a headline source."""
    return expectation(gold) is Expectation.GOLD and gold.source in HEADLINE_SOURCES


def place_of_truth(result: Result) -> int | None:
    """Return the place of the true subject among the candidates, from 1; None if it was not found."""
    places = (place for place, (found, _) in enumerate(result.candidates, 1) if found == result.gold.expected)
    return next(places, None)


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests of verdicts: search calls and detail calls; an answer from the archive is not a request."""

    total: int
    mean: float | None
    p95: int | None
    most: int | None


@dataclass(frozen=True, slots=True)
class Measures:
    """The metrics of a group of rows.

    Attributes:
        rows: Their number.
        linked: Rows that were CONFIRMED, of all rows.
        wrong: Wrong links, of all rows.
        wrong_of_linked: Wrong links, of links that can be judged.
        reviewed: Rows that went to REVIEW, of all rows.
        review_top: Reviews that show the truth on top, of reviews of gold rows.
        review_shown: Reviews that show the truth among the first five, of reviews of gold rows.
        review_shown_of_found: The same, of reviews whose candidates include the truth.
        found: Rows whose candidates include the truth, of gold rows.
        requests: Requests of the verdicts.
    """

    rows: int
    linked: Rate
    wrong: Rate
    wrong_of_linked: Rate
    reviewed: Rate
    review_top: Rate
    review_shown: Rate
    review_shown_of_found: Rate
    found: Rate
    requests: Requests


def measure(results: Sequence[Result]) -> Measures:
    """Return the measures of a group."""
    return _measured(_table(results))


def _table(results: Iterable[Result]) -> DataFrame:
    """Return results as a table: columns that define groups, and columns that are counted."""
    columns: dict[str, list[Any]] = {
        "expected": [],
        "source": [],
        "headline": [],
        "rich": [],
        "dated": [],
        "fair": [],
        "label": [],
        "tags": [],
        "strata": [],
        "linked": [],
        "reviewed": [],
        "wrong": [],
        "judged": [],
        "place": [],
        "requests": [],
    }
    for result in results:
        gold = result.gold
        for name, value in (
            ("expected", str(expectation(gold))),
            ("source", gold.source),
            ("headline", is_headline(gold)),
            ("rich", gold.rich),
            ("dated", gold.video.year is not None),
            ("fair", is_headline(gold) and result.dated),
            ("label", gold.label),
            ("tags", list(gold.tags) or ["(no tag)"]),
            ("strata", list(map(str, result.strata))),
            ("linked", result.verdict == "CONFIRMED"),
            ("reviewed", result.verdict == "REVIEW"),
            ("wrong", result.wrong),
            # For a trap, only a link to it can be judged.
            ("judged", gold.trap is None or result.wrong),
            ("place", place_of_truth(result) if gold.expected is not None else None),
            ("requests", result.requests),
        ):
            columns[name].append(value)
    flags = ("headline", "rich", "dated", "fair", "linked", "reviewed", "wrong", "judged")
    return pandas.DataFrame(columns).astype({**dict.fromkeys(flags, bool), "place": float, "requests": int})


def _measured(rows: DataFrame) -> Measures:
    count = len(rows)
    with_truth = rows["expected"] == Expectation.GOLD
    places = rows.loc[rows["reviewed"] & with_truth, "place"]
    wrong, shown = int(rows["wrong"].sum()), int((places <= SHOWN).sum())
    return Measures(
        rows=count,
        linked=Rate(int(rows["linked"].sum()), count),
        wrong=Rate(wrong, count),
        wrong_of_linked=Rate(wrong, int((rows["linked"] & rows["judged"]).sum())),
        reviewed=Rate(int(rows["reviewed"].sum()), count),
        review_top=Rate(int((places == 1).sum()), len(places)),
        review_shown=Rate(shown, len(places)),
        review_shown_of_found=Rate(shown, int(places.count())),
        found=Rate(int(rows.loc[with_truth, "place"].count()), int(with_truth.sum())),
        requests=_requests(rows["requests"].sort_values().to_list()),
    )


def _requests(costs: Sequence[int]) -> Requests:
    if not costs:
        return Requests(0, None, None, None)
    count = len(costs)
    # Nearest-rank percentile: the least cost that 95 % of the rows do not exceed.
    return Requests(sum(costs), sum(costs) / count, costs[math.ceil(0.95 * count) - 1], costs[-1])


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A named group of rows.

    Attributes:
        name: As shown in reports.
        measures: Their metrics.
        total: Whether it is the sum of other groups of its section.
    """

    name: str
    measures: Measures
    total: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """Groups that reports show together.

    Attributes:
        key: Short name, for links.
        title: As shown in reports.
        note: What the rows are and how they may overlap.
        groups: The groups, without empty ones.
        has_truth: Whether the rows have a true subject that could be found.
    """

    key: str
    title: str
    note: str
    groups: tuple[RowGroup, ...]
    has_truth: bool = True


def glance(results: Sequence[Result], hidden: Sequence[Result] = ()) -> Section:
    """Return the overview: the headline sources, their easy and hard parts, and rows that must not be linked.

    Args:
        results: Results of the rows.
        hidden: Results of rows whose true subject was removed from the index.
    """
    rows, without = _table(results), _table(hidden)
    headline, missing, traps = rows[rows["headline"]], _of(rows, Expectation.NONE), _of(rows, Expectation.TRAP)
    gold = _of(rows, Expectation.GOLD)
    return Section(
        "glance",
        "At a glance",
        "Headline sources are real records with labels of their own. Of fair rows the corpus knows the subject's year. "
        "Rich rows know the year and people, thin rows do not. Where the true subject is missing, or was taken out of "
        "the index to see what happens, every link is wrong; of a trap only the link to its trap is judged.",
        _groups(
            (HEADLINE, headline, True),
            (FAIR, headline[headline["fair"]]),
            ("Headline, rich", headline[headline["rich"]]),
            ("Headline, thin", headline[~headline["rich"]]),
            ("Headline, with a year", headline[headline["dated"]]),
            ("Title cleaning only", gold[~gold["headline"]]),
            (MISSING, missing, True),
            ("Subject missing, rich", missing[missing["rich"]]),
            ("Subject missing, thin", missing[~missing["rich"]]),
            (HIDDEN, without, True),
            (f"{HIDDEN}, rich", without[without["rich"]]),
            (f"{HIDDEN}, thin", without[~without["rich"]]),
            (TRAPS, traps, True),
        ),
    )


def sections(results: Sequence[Result]) -> tuple[Section, ...]:
    """Return the measures by source, richness, tag, label and stratum; sections without rows are left out."""
    rows = _table(results)
    gold, none, traps = (_of(rows, each) for each in Expectation)
    headline, cleaning = gold[gold["headline"]], gold[~gold["headline"]]
    found = (
        Section(
            "source",
            "By source",
            "Rows whose true subject is known. The sources under “Title cleaning only” are not part of the headline.",
            _groups(
                (HEADLINE, headline, True),
                *_split(headline, "source", HEADLINE_SOURCES),
                ("Title cleaning only", cleaning, True),
                *_split(cleaning, "source"),
            ),
        ),
        Section(
            "stratum",
            "By stratum",
            "Headline sources. A row may be in several strata; without a candidate it is in none.",
            _groups(*_split(headline, "strata", STRATA, STRATA.__getitem__)),
        ),
        Section(
            "tag",
            "By tag",
            "Headline sources, by what the labellers noted as hard. A row may have several tags.",
            _groups(*_split(headline, "tags")),
        ),
        Section("cleaning", "By tag, title cleaning only", "", _groups(*_split(cleaning, "tags"))),
        Section(
            "label",
            "By label",
            "All rows whose true subject is known, by how the label was made. Labels are not perfect.",
            _groups(*_split(gold, "label")),
        ),
        Section(
            "missing",
            MISSING,
            "Every link is wrong here.",
            _groups(
                ("All", none, True),
                *_split(none, "source"),
                *_split(none, "strata", STRATA, STRATA.__getitem__),
            ),
            has_truth=False,
        ),
        Section(
            "traps",
            TRAPS,
            "Only a link to the trap is wrong; other links are not judged.",
            _groups(("All", traps, True), *_split(traps, "source")),
            has_truth=False,
        ),
    )
    return tuple(section for section in found if section.groups)


def _of(rows: DataFrame, wanted: Expectation) -> DataFrame:
    return rows[rows["expected"] == wanted]


def _groups(*named: tuple[str, DataFrame] | tuple[str, DataFrame, bool]) -> tuple[RowGroup, ...]:
    return tuple(RowGroup(name, _measured(rows), bool(total)) for name, rows, *total in named if len(rows))


def _split(
    rows: DataFrame, column: str, order: Iterable[str] = (), shown: Callable[[str], str] = str
) -> list[tuple[str, DataFrame]]:
    """Return the rows by the values of ``column``, in ``order``; other values follow, the largest group first."""
    parts = dict(iter(rows.explode(column).dropna(subset=[column]).groupby(column)))
    first = [str(name) for name in order]
    others = sorted(parts.keys() - set(first), key=lambda name: (-len(parts[name]), name))
    return [(shown(name), parts[name]) for name in (*first, *others) if name in parts]


@dataclass(slots=True)
class ReasonCount:
    """Number of rows of the kinds gold and none that one reason prevented from being linked.

    Attributes:
        code: The reason.
        rows: Rows with this reason.
        reviewed: Those that go to review.
        alone: Rows with no other reason.
        alone_right: Rows of ``alone`` whose best candidate is the true subject: the cost of the reason.
        alone_wrong: The other rows of ``alone``: the benefit of the reason.
    """

    code: str
    rows: int = 0
    reviewed: int = 0
    alone: int = 0
    alone_right: int = 0
    alone_wrong: int = 0


def workload(results: Iterable[Result]) -> list[ReasonCount]:
    """Return the reasons for which rows were not linked, the most frequent first."""
    open_rows = [
        {
            "code": list(dict.fromkeys(map(str, result.reasons))),
            "reviewed": result.verdict == "REVIEW",
            "alone": len(set(map(str, result.reasons))) == 1,
            "wrong": result.douban_id is None or link_is_wrong(result.gold, result.douban_id),
        }
        for result in results
        if result.verdict != "CONFIRMED"
    ]
    if not open_rows:
        return []
    rows = pandas.DataFrame(open_rows).explode("code").dropna(subset=["code"])
    rows = rows.astype({"reviewed": bool, "alone": bool, "wrong": bool})
    rows["alone_wrong"] = rows["alone"] & rows["wrong"]
    rows["alone_right"] = rows["alone"] & ~rows["wrong"]
    counts = rows.groupby("code")[["reviewed", "alone", "alone_right", "alone_wrong"]].sum()
    counts.insert(0, "rows", rows["code"].value_counts())
    counts = counts.reset_index().sort_values(["rows", "code"], ascending=[False, True])
    return [ReasonCount(code, *map(int, numbers)) for code, *numbers in counts.itertuples(index=False)]
