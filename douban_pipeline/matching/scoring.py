"""Scores one candidate item by item: its points, by evidence and by the plan, and its conflicts.

Every item is three-valued: agree, disagree, unknown. As evidence, unknown earns nothing and is no conflict; a conflict
needs both sides known. The plan also gives points for unknown fields (`plan_points`). The profile determines which of
the two decides.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from douban_pipeline.matching import people
from douban_pipeline.matching.codes import HARD_REJECTS, Code
from douban_pipeline.matching.conflicts import Codes, Conflict, find, finding_of, versus, year_note
from douban_pipeline.matching.facts import Subject, Video
from douban_pipeline.matching.fields import Fields, YearGap, compare_fields, local_years, year_gap
from douban_pipeline.matching.plan_points import plan_share
from douban_pipeline.matching.similarity import TitleMatch, match_titles
from douban_pipeline.matching.weights import (
    DEFAULT_THRESHOLDS,
    DEFAULT_WEIGHTS,
    ITEMS,
    Thresholds,
    Weights,
)


class ItemOutcome(enum.StrEnum):
    """Outcome of one compared field."""

    AGREE = "agree"
    DISAGREE = "disagree"
    UNKNOWN = "unknown"


_OUTCOMES = {None: ItemOutcome.UNKNOWN, True: ItemOutcome.AGREE, False: ItemOutcome.DISAGREE}


class Item(NamedTuple):
    """One compared field.

    Attributes:
        name: Field of :class:`Weights`.
        outcome: Agree, disagree or unknown.
        points: Points earned by evidence, 0 to ``weight``.
        weight: Points that could be earned.
        note: What was compared, in Chinese, short.
        fact: Whether an agreement counts as an independent fact beside the title.
    """

    name: str
    outcome: ItemOutcome
    points: float
    weight: float
    note: str = ""
    fact: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the stored form of the item."""
        return {
            "name": self.name,
            "outcome": str(self.outcome),
            "points": round(self.points, 2),
            "weight": self.weight,
            "note": self.note,
        }


@dataclass
class Comparison:
    """Comparison of a video and a subject: names and years. Everything else is compared when it is first asked for.

    Most candidates of a search have another name altogether, which mostly decides. A candidate that is stored or shown
    is compared in full by that.

    Attributes:
        video: The local video.
        subject: The subject.
        title: The names that matched best.
        year: Distance in years, None when unknown.
        weights: Most points of each item.
        thresholds: Thresholds of the conflicts.
    """

    video: Video
    subject: Subject
    title: TitleMatch
    year: YearGap | None
    weights: Weights
    thresholds: Thresholds

    @cached_property
    def fields(self) -> Fields:
        """Their fields, compared."""
        return compare_fields(self.video, self.subject, self.title, self.year)

    @cached_property
    def results(self) -> tuple[tuple[ItemOutcome, ...], tuple[float, ...]]:
        """Outcomes of all items, and their points."""
        return _results(self)

    @cached_property
    def _codes(self) -> Codes:
        return find(self.video, self.subject, self.fields, self.thresholds.title_floor, self.thresholds.year_gap)

    @property
    def outcomes(self) -> tuple[ItemOutcome, ...]:
        """Outcome of each item, in the order of :class:`Weights`."""
        return self.results[0]

    @property
    def points(self) -> tuple[float, ...]:
        """Points that each item earns by evidence."""
        return self.results[1]

    @property
    def most(self) -> tuple[float, ...]:
        """Points that each item could earn."""
        return self.weights.each

    @property
    def codes(self) -> tuple[Code, ...]:
        """All conflicts of the candidate, possible rejects first."""
        return self._codes.every

    @property
    def rejects(self) -> tuple[Code, ...]:
        """Codes of hard rejects."""
        return self._codes.rejects

    @property
    def conflicts(self) -> tuple[Code, ...]:
        """Codes of softer conflicts."""
        return self._codes.softer

    @property
    def earned(self) -> float:
        """Points of all items but the tie-break, rounded to a hundredth."""
        return round(sum(self.points[:-1]), 2)

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """Every item of the score, in the order of :class:`Weights`, with the points earned by evidence."""
        facts, notes = _facts(self), _notes(self)
        return tuple(map(Item, ITEMS, self.outcomes, self.points, self.most, notes, facts))

    @cached_property
    def findings(self) -> tuple[Conflict, ...]:
        """Rejects and conflicts with their sentences."""
        return tuple(finding_of(code, self.video, self.subject, self.fields) for code in self.codes)

    @property
    def kind(self) -> bool | None:
        """Whether the kinds agree; None is unknown."""
        return self.fields.kind

    @cached_property
    def plan_points(self) -> tuple[float, ...]:
        """Points the plan gives each item, 0 to its weight; unknown fields have some too.

        Computed on access: only one profile uses them.
        """
        earned = [most * plan_share(name, self.fields) for name, most in zip(ITEMS, self.most[:-1], strict=False)]
        return (*earned, self.points[-1])

    @cached_property
    def score(self) -> float:
        """The plan's sum, rounded to a hundredth as stored."""
        return round(sum(self.plan_points[:-1]), 2)

    @property
    def facts(self) -> tuple[str, ...]:
        """Names of the independent facts beside the title that agree."""
        return tuple(item.name for item in self.items if item.fact and item.outcome is ItemOutcome.AGREE)

    @property
    def exclusions(self) -> tuple[Conflict, ...]:
        """Findings with a hard-reject code, rejecting here or not: a film and a series of one name are only a doubt."""
        return tuple(finding for finding in self.findings if finding.code in HARD_REJECTS)

    @property
    def excluded(self) -> bool:
        """Whether there are `exclusions`."""
        return self.other_name or bool(self.rejects) or Code.KIND_CONFLICT in self.conflicts

    @property
    def other_name(self) -> bool:
        """Whether the names are too far apart, which rejects the candidate."""
        return self.title.similarity < self.thresholds.title_floor

    @property
    def exact_year(self) -> bool:
        """Whether the work's own year is the video's."""
        return self.year is not None and self.year.own and self.year.gap == 0

    @property
    def people_agree(self) -> bool:
        """Whether the director or the actors agree."""
        return self.agrees("director") or self.agrees("actors")

    def item(self, name: str) -> Item:
        """Return the item of that name; :class:`KeyError` when there is none."""
        return self.items[_PLACES[name]]

    def outcome(self, name: str) -> ItemOutcome:
        """Return the outcome of the item of that name."""
        return self.outcomes[_PLACES[name]]

    def points_of(self, name: str) -> float:
        """Return the points that the item of that name earns by evidence."""
        return self.points[_PLACES[name]]

    def agrees(self, name: str) -> bool:
        """Return whether the item of that name agrees."""
        return self.outcome(name) is ItemOutcome.AGREE

    def to_json(self) -> dict[str, Any]:
        """Return the stored form of the comparison, without its points."""
        return {
            "title": self.title.to_json(),
            "rejects": list(map(str, self.rejects)),
            "conflicts": list(map(str, self.conflicts)),
            "notes": {str(finding.code): finding.text for finding in self.findings},
            "facts": list(self.facts),
        }


_PLACES = {name: place for place, name in enumerate(ITEMS)}
_SAME_PEOPLE = 2
"""Common actors that two casts do not share by chance."""

_YEAR_SHARE = {0: 1.0, 1: 2 / 3, 2: 1 / 3}


def compare(
    video: Video,
    subject: Subject,
    weights: Weights = DEFAULT_WEIGHTS,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> Comparison:
    """Compare a video with one subject."""
    title = match_titles(video, subject)
    gap = year_gap(local_years(video, title), subject.year, subject.release_years)
    return Comparison(video, subject, title, gap, weights, thresholds)


def _results(this: Comparison) -> tuple[tuple[ItemOutcome, ...], tuple[float, ...]]:
    video, subject, found, weights = this.video, this.subject, this.fields, this.weights
    outcomes, points = zip(
        _title(found.title, weights.title, this.thresholds),
        _year(found.year, weights.year, this.thresholds),
        _simple(found.region.agree, weights.region),
        _simple(found.director, weights.director),
        _actors(video, subject, found.cast, weights.actors),
        _genre(found, weights.genre),
        _simple(found.length.agree, weights.length),
        _simple(_rated(subject), weights.tie_break),
        strict=True,
    )
    return outcomes, points


_Earned = tuple[ItemOutcome, float]
"""Outcome of an item, and the points it earns."""

_NOTHING: _Earned = (ItemOutcome.UNKNOWN, 0.0)


def _simple(agree: bool | None, weight: float) -> _Earned:
    return _OUTCOMES[agree], weight if agree else 0.0


def _rated(subject: Subject) -> bool | None:
    return subject.rating is not None or bool(subject.votes) or None


def _title(title: TitleMatch, weight: float, thresholds: Thresholds) -> _Earned:
    far = title.similarity < thresholds.title_floor
    outcome = ItemOutcome.AGREE if title.near_exact else ItemOutcome.DISAGREE if far else ItemOutcome.UNKNOWN
    return outcome, weight * title.similarity


def _year(gap: YearGap | None, weight: float, thresholds: Thresholds) -> _Earned:
    if gap is None:
        return _NOTHING
    share = _YEAR_SHARE.get(gap.gap, 0.0)
    if not gap.own:
        # A match with one release of an older or newer work earns the fewest points and is no evidence.
        return ItemOutcome.UNKNOWN, weight * min(share, 1 / 3)
    if gap.gap <= 1:
        return ItemOutcome.AGREE, weight * share
    return ItemOutcome.DISAGREE if gap.gap >= thresholds.year_gap else ItemOutcome.UNKNOWN, weight * share


def _actors(video: Video, subject: Subject, cast: people.Overlap, weight: float) -> _Earned:
    comparable = min(cast.left, cast.right)
    if not comparable:
        return _NOTHING
    # Lists are truncated at different lengths: two common names are as good as ten, one is not.
    points = weight * (1.0 if cast.matched >= _SAME_PEOPLE else cast.matched / min(3, comparable))
    if cast.matched >= min(2, len(video.actors), len(subject.actors)):
        return ItemOutcome.AGREE, points
    return ItemOutcome.UNKNOWN if cast.agree is not False else ItemOutcome.DISAGREE, points


def _genre(found: Fields, weight: float) -> _Earned:
    mine, theirs = found.genres
    if not mine or not theirs:
        return _NOTHING
    common = len(mine & theirs)
    return _OUTCOMES[common > 0], weight * common / min(len(mine), len(theirs))


def _facts(this: Comparison) -> tuple[bool, ...]:
    """Return for each item whether its agreement counts as an independent fact."""
    return (False, this.agrees("year"), this.fields.region.firm, True, this.agrees("actors"), False, True, False)


def _notes(this: Comparison) -> tuple[str, ...]:
    """Return for each item a note of what was compared."""
    video, subject, found = this.video, this.subject, this.fields
    title, cast = found.title, found.cast
    genres = ""
    if all(found.genres):
        genres = f"共同类型 {'、'.join(sorted(found.genres[0] & found.genres[1])) or '无'}"
    actors = f"共同主演 {cast.matched} 人" if cast.matched else versus(video.actors, subject.actors, 3)
    return (
        f"本地《{title.local}》/ 豆瓣《{title.subject}》{'（别名）' if title.via_alias else ''}"
        f"相似度 {title.similarity:.2f}",
        year_note(video, subject, title) if found.year is not None else "",
        versus(video.regions, subject.regions, 4),
        versus(video.directors, subject.directors, 3),
        actors if min(cast.left, cast.right) else "",
        genres,
        found.length.note,
        "有评分" if _rated(subject) else "",
    )
