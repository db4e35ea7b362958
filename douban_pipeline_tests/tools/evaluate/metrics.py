"""Metrics of the matcher on labelled rows: rates with confidence intervals by group, and over score thresholds.

The kinds of rows are those of `Expectation`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from douban_pipeline.core.intervals import Rate
from douban_pipeline.douban.quality.rates import grouped
from douban_pipeline.matching import Code
from douban_pipeline.matching.strata import STRATA
from douban_pipeline_tests.tools.evaluate.labelled_replay import Result
from douban_pipeline_tests.tools.evaluate.labelled_rows import Expectation

SHOWN = 5
"""Number of candidates shown to a reviewer."""

HEADLINE, FAIR = "Headline sources", "Headline, fair"
MISSING, HIDDEN, TRAPS = "Subject missing", "Truth taken out", "Traps"
"""Groups of the overview."""


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
    count = len(results)
    linked = [result for result in results if result.confirmed]
    with_truth = _of(results, Expectation.GOLD)
    wrong = sum(result.wrong for result in linked)
    reviews = [result.place_of_truth for result in with_truth if result.reviewed]
    places = [place for place in reviews if place is not None]
    shown = sum(place <= SHOWN for place in places)
    return Measures(
        rows=count,
        linked=Rate(len(linked), count),
        wrong=Rate(wrong, count),
        # For a trap, only a link to it can be judged.
        wrong_of_linked=Rate(wrong, sum(result.gold.trap is None or result.wrong for result in linked)),
        reviewed=Rate(sum(result.reviewed for result in results), count),
        review_top=Rate(places.count(1), len(reviews)),
        review_shown=Rate(shown, len(reviews)),
        review_shown_of_found=Rate(shown, len(places)),
        found=Rate(sum(result.place_of_truth is not None for result in with_truth), len(with_truth)),
        requests=_requests(sorted(result.requests for result in results)),
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
    gold, missing, traps = (_of(results, each) for each in Expectation)
    headline = [result for result in gold if result.gold.headline]
    return Section(
        "glance",
        "At a glance",
        "Headline sources are real records with labels of their own. Of fair rows the corpus knows the subject's year. "
        "Rich rows know the year and people, thin rows do not. Where the true subject is missing, or was taken out of "
        "the index to see what happens, every link is wrong; of a trap only the link to its trap is judged.",
        _groups(
            (HEADLINE, headline, True),
            (FAIR, [result for result in headline if result.dated]),
            *_by_richness("Headline", headline),
            ("Headline, with a year", [result for result in headline if result.gold.video.year is not None]),
            ("Title cleaning only", [result for result in gold if not result.gold.headline]),
            (MISSING, missing, True),
            *_by_richness(MISSING, missing),
            (HIDDEN, hidden, True),
            *_by_richness(HIDDEN, hidden),
            (TRAPS, traps, True),
        ),
    )


def sections(results: Sequence[Result]) -> tuple[Section, ...]:
    """Return the measures by source, richness, tag, label and stratum; sections without rows are left out."""
    gold, none, traps = (_of(results, each) for each in Expectation)
    headline = [result for result in gold if result.gold.headline]
    cleaning = [result for result in gold if not result.gold.headline]
    found = (
        Section(
            "source",
            "By source",
            "Rows whose true subject is known. The sources under “Title cleaning only” are not part of the headline.",
            _groups(
                (HEADLINE, headline, True),
                *_split(headline, _source),
                ("Title cleaning only", cleaning, True),
                *_split(cleaning, _source),
            ),
        ),
        Section(
            "stratum",
            "By stratum",
            "Headline sources. A row may be in several strata; without a candidate it is in none.",
            _groups(*_split(headline, _strata, STRATA)),
        ),
        Section(
            "tag",
            "By tag",
            "Headline sources, by what the labellers noted as hard. A row may have several tags.",
            _groups(*_split(headline, _tags)),
        ),
        Section("cleaning", "By tag, title cleaning only", "", _groups(*_split(cleaning, _tags))),
        Section(
            "label",
            "By label",
            "All rows whose true subject is known, by how the label was made. Labels are not perfect.",
            _groups(*_split(gold, _label)),
        ),
        Section(
            "missing",
            MISSING,
            "Every link is wrong here.",
            _groups(
                ("All", none, True),
                *_split(none, _source),
                *_split(none, _strata, STRATA),
            ),
            has_truth=False,
        ),
        Section(
            "traps",
            TRAPS,
            "Only a link to the trap is wrong; other links are not judged.",
            _groups(("All", traps, True), *_split(traps, _source)),
            has_truth=False,
        ),
    )
    return tuple(section for section in found if section.groups)


def _of(results: Iterable[Result], wanted: Expectation) -> list[Result]:
    return [result for result in results if result.gold.expectation is wanted]


def _by_richness(name: str, results: Sequence[Result]) -> tuple[tuple[str, list[Result]], ...]:
    rich, thin = ([result for result in results if result.gold.rich is each] for each in (True, False))
    return (f"{name}, rich", rich), (f"{name}, thin", thin)


def _source(result: Result) -> tuple[str, ...]:
    return (result.gold.source,)


def _label(result: Result) -> tuple[str, ...]:
    return (result.gold.label,)


def _tags(result: Result) -> tuple[str, ...]:
    return result.gold.tags or ("(no tag)",)


def _strata(result: Result) -> tuple[str, ...]:
    return result.strata


def _groups(*named: tuple[str, Sequence[Result]] | tuple[str, Sequence[Result], bool]) -> tuple[RowGroup, ...]:
    return tuple(RowGroup(name, measure(rows), bool(total)) for name, rows, *total in named if rows)


def _split(
    results: Iterable[Result], names: Callable[[Result], Iterable[str]], known: Iterable[str] | Mapping[str, str] = ()
) -> list[tuple[str, list[Result]]]:
    """Return results by the groups that ``names`` says, ``known`` ones first; of others the largest group is first.

    A mapping of known groups says how they are shown.
    """
    parts = grouped(results, names)
    shown = known if isinstance(known, Mapping) else {name: name for name in known}
    others = sorted(parts.keys() - shown.keys(), key=lambda name: (-len(parts[name]), name))
    return [(shown.get(name, name), parts[name]) for name in (*shown, *others) if name in parts]


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
    counts: dict[str, ReasonCount] = {}
    for result in results:
        if result.confirmed:
            continue
        codes = set(result.reasons)
        right = result.douban_id is not None and not result.gold.wrong_with(result.douban_id)
        for code in codes:
            count = counts.setdefault(code, ReasonCount(code))
            count.rows += 1
            count.reviewed += result.reviewed
            if len(codes) == 1:
                count.alone += 1
                count.alone_right += right
                count.alone_wrong += not right
    return sorted(counts.values(), key=lambda count: (-count.rows, count.code))


# --- wrong links against coverage -------------------------------------------------------------------------------------


SCORE_REASONS = frozenset({str(Code.LEAD_TOO_SMALL), str(Code.BELOW_CONFIRM), str(Code.BELOW_REVIEW)})
"""Reasons that concern only the score."""


@dataclass(frozen=True, slots=True)
class Point:
    """Number of links if all eligible rows with at least a given score were linked.

    Attributes:
        threshold: The minimum score.
        linked: Links of headline rows.
        wrong: Wrong links of headline rows.
        missing_wrong: Links of rows whose true subject is missing.
    """

    threshold: float
    linked: Rate
    wrong: Rate
    missing_wrong: Rate


@dataclass(frozen=True, slots=True)
class Sweep:
    """Two curves of wrong links against coverage.

    Attributes:
        clean: Over confirmed rows: the effect of a higher threshold.
        loose: Also over rows not confirmed only because of score or lead: the effect of a lower threshold.
    """

    clean: tuple[Point, ...]
    loose: tuple[Point, ...]


def sweep(results: Sequence[Result]) -> Sweep:
    """Return both curves, with every score as a threshold, from the highest down."""
    headline = [result for result in results if result.gold.headline]
    missing = _of(results, Expectation.NONE)
    return Sweep(tuple(_points(headline, missing, loose=False)), tuple(_points(headline, missing, loose=True)))


def _points(headline: Sequence[Result], missing: Sequence[Result], *, loose: bool) -> Iterator[Point]:
    events = [
        (result.score, row_is_headline, result.gold.wrong_with(result.douban_id))
        for row_is_headline, rows in ((True, headline), (False, missing))
        for result in rows
        if result.score is not None and result.douban_id is not None and _may_be_linked(result, loose)
    ]
    events.sort(key=lambda event: -event[0])
    linked = wrong = missing_wrong = 0
    for number, (score, row_is_headline, is_wrong) in enumerate(events):
        linked += row_is_headline
        wrong += row_is_headline and is_wrong
        missing_wrong += not row_is_headline
        if number + 1 == len(events) or events[number + 1][0] != score:
            total = len(headline)
            yield Point(score, Rate(linked, total), Rate(wrong, total), Rate(missing_wrong, len(missing)))


def _may_be_linked(result: Result, loose: bool) -> bool:
    return result.confirmed or (loose and bool(result.reasons) and SCORE_REASONS.issuperset(result.reasons))


def at_steps(points: Sequence[Point], step: float) -> list[Point]:
    """Return the points at multiples of ``step``, from the highest down, for a table."""
    if not points:
        return []
    found: list[Point] = []
    threshold = step * (points[0].threshold // step)
    place = 0
    while True:
        while place + 1 < len(points) and points[place + 1].threshold >= threshold:
            place += 1
        point = points[place]
        if point.threshold >= threshold:
            found.append(Point(threshold, point.linked, point.wrong, point.missing_wrong))
        if place + 1 == len(points):
            return found
        threshold = round(threshold - step, 6)
