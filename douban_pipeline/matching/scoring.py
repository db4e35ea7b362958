"""One candidate, item by item: what it earns, by evidence and by the plan, and what speaks against it.

Every item is three-valued: agree, disagree, unknown. As evidence unknown earns nothing and accuses nobody; a conflict
needs both sides known. The plan gives points for what is unknown as well (`plan_points`). Which of the two decide is
the profile's to say.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

from douban_pipeline.matching import people
from douban_pipeline.matching.codes import HARD_REJECTS
from douban_pipeline.matching.conflicts import Finding, find, versus, year_note
from douban_pipeline.matching.facts import Subject, Video
from douban_pipeline.matching.fields import Fields, YearGap, compare_fields, local_years, year_gap
from douban_pipeline.matching.plan_points import plan_share
from douban_pipeline.matching.similarity import TitleMatch, match_titles

TIE_BREAK = "tie_break"
"""The item that counts between equals only."""


class ItemOutcome(enum.StrEnum):
    """What one compared field says."""

    AGREE = "agree"
    DISAGREE = "disagree"
    UNKNOWN = "unknown"


_OUTCOMES = {None: ItemOutcome.UNKNOWN, True: ItemOutcome.AGREE, False: ItemOutcome.DISAGREE}


@dataclass(frozen=True, slots=True)
class Weights:
    """Most points each item can earn, the plan's by default.

    ``tie_break`` is for being rated at all: it orders candidates of equal scores and is part of none.
    """

    title: float = 45.0
    year: float = 15.0
    region: float = 10.0
    director: float = 12.0
    actors: float = 8.0
    genre: float = 5.0
    length: float = 5.0
    tie_break: float = 2.0

    @property
    def total(self) -> float:
        """The highest score there is."""
        return float(sum(getattr(self, item.name) for item in fields(self) if item.name != TIE_BREAK))


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Where verdicts change.

    Attributes:
        confirm: Points from which a candidate may be confirmed.
        review: Points from which a person looks at it.
        lead: Points the best must be ahead of every other work.
        title_floor: Similarity, 0 to 1, under which a title is rejected.
        year_gap: Years from which a year is rejected.
    """

    confirm: float = 85.0
    review: float = 70.0
    lead: float = 8.0
    title_floor: float = 0.55
    year_gap: int = 3


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
        """Return what is stored of the item."""
        return {
            "name": self.name,
            "outcome": str(self.outcome),
            "points": round(self.points, 2),
            "weight": self.weight,
            "note": self.note,
        }


@dataclass(frozen=True)
class Comparison:
    """A video and a subject, compared.

    Attributes:
        items: Every item of the score, in the order of :class:`Weights`, with the points that evidence earns.
        fields: Their fields, compared.
        findings: Rejects and conflicts with their sentences.
        earned: Points of all items but the tie-break, rounded to a hundredth.
        rejects: Codes of hard rejects.
        conflicts: Codes of softer conflicts.
    """

    items: tuple[Item, ...]
    fields: Fields
    findings: tuple[Finding, ...]
    earned: float
    rejects: tuple[str, ...]
    conflicts: tuple[str, ...]

    @property
    def title(self) -> TitleMatch:
        """The names that matched best."""
        return self.fields.title

    @property
    def kind(self) -> bool | None:
        """Whether the kinds agree; None is unknown."""
        return self.fields.kind

    @property
    def year(self) -> YearGap | None:
        """Distance in years, None when unknown."""
        return self.fields.year

    @cached_property
    def plan_points(self) -> tuple[float, ...]:
        """Points the plan gives each item, 0 to its weight; some for what is unknown as well.

        Worked out when they are asked for: only one profile does.
        """
        return tuple(
            item.points if item.name == TIE_BREAK else item.weight * plan_share(item.name, self.fields)
            for item in self.items
        )

    @cached_property
    def score(self) -> float:
        """The plan's sum, rounded to a hundredth as it is stored."""
        return round(sum(self.plan_points[:-1]), 2)

    @property
    def facts(self) -> tuple[str, ...]:
        """Names of the independent facts beside the title that agree."""
        return tuple(item.name for item in self.items if item.fact and item.outcome is ItemOutcome.AGREE)

    @property
    def exclusions(self) -> tuple[Finding, ...]:
        """What may reject, whether it does here or not: a film and a series of one name are no reject, but a doubt."""
        return tuple(finding for finding in self.findings if finding.code in HARD_REJECTS)

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

    def agrees(self, name: str) -> bool:
        """Say whether the item of that name agrees."""
        return self.items[_PLACES[name]].outcome is ItemOutcome.AGREE

    def to_json(self) -> dict[str, Any]:
        """Return what is stored of the comparison, beside its points."""
        return {
            "title": self.title.to_json(),
            "rejects": list(map(str, self.rejects)),
            "conflicts": list(map(str, self.conflicts)),
            "notes": {str(finding.code): finding.text for finding in self.findings},
            "facts": list(self.facts),
        }


_PLACES = {item.name: place for place, item in enumerate(fields(Weights))}
_SAME_PEOPLE = 2
"""Common actors that no two casts have by chance."""

_YEAR_SHARE = {0: 1.0, 1: 2 / 3, 2: 1 / 3}
DEFAULT_WEIGHTS = Weights()
DEFAULT_THRESHOLDS = Thresholds()


def compare(
    video: Video,
    subject: Subject,
    weights: Weights = DEFAULT_WEIGHTS,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> Comparison:
    """Compare a video with one subject, field by field."""
    title = match_titles(video, subject)
    gap = year_gap(local_years(video, title), subject.year, subject.release_years)
    found = compare_fields(video, subject, title, gap)
    region = versus(video.regions, subject.regions, 4)
    directors = versus(video.directors, subject.directors, 3)
    items = [
        _title_item(title, weights.title, thresholds),
        _year_item(video, subject, found, weights.year, thresholds),
        _simple("region", found.region.agree, weights.region, region, found.region.firm),
        _simple("director", found.director, weights.director, directors),
        _actors_item(video, subject, found.cast, weights.actors),
        _genre_item(found, weights.genre),
        _simple("length", found.length.agree, weights.length, found.length.note),
    ]
    findings = tuple(find(video, subject, found, thresholds.title_floor, thresholds.year_gap))
    return Comparison(
        items=(*items, _tie_break_item(subject, weights.tie_break)),
        fields=found,
        findings=findings,
        earned=round(sum(item.points for item in items), 2),
        rejects=tuple(finding.code for finding in findings if finding.reject),
        conflicts=tuple(finding.code for finding in findings if not finding.reject),
    )


def _tie_break_item(subject: Subject, weight: float) -> Item:
    rated = subject.rating is not None or bool(subject.votes)
    points = weight if rated else 0.0
    return Item(TIE_BREAK, _OUTCOMES[rated or None], points, weight, "有评分" if rated else "")


def _simple(name: str, agree: bool | None, weight: float, note: str, fact: bool = True) -> Item:
    return Item(name, _OUTCOMES[agree], weight if agree else 0.0, weight, note, fact)


def _title_item(title: TitleMatch, weight: float, thresholds: Thresholds) -> Item:
    far = title.similarity < thresholds.title_floor
    outcome = ItemOutcome.AGREE if title.near_exact else ItemOutcome.DISAGREE if far else ItemOutcome.UNKNOWN
    how = "（别名）" if title.via_alias else ""
    note = f"本地《{title.local}》/ 豆瓣《{title.subject}》{how}相似度 {title.similarity:.2f}"
    return Item("title", outcome, weight * title.similarity, weight, note)


def _year_item(video: Video, subject: Subject, found: Fields, weight: float, thresholds: Thresholds) -> Item:
    gap = found.year
    if gap is None:
        return Item("year", ItemOutcome.UNKNOWN, 0.0, weight)
    share = _YEAR_SHARE.get(gap.gap, 0.0)
    note = year_note(video, subject, found.title)
    if not gap.own:
        # Points for one release of an older or newer work are the least there are, and no evidence.
        return Item("year", ItemOutcome.UNKNOWN, weight * min(share, 1 / 3), weight, note)
    if gap.gap <= 1:
        return Item("year", ItemOutcome.AGREE, weight * share, weight, note, fact=True)
    outcome = ItemOutcome.DISAGREE if gap.gap >= thresholds.year_gap else ItemOutcome.UNKNOWN
    return Item("year", outcome, weight * share, weight, note)


def _actors_item(video: Video, subject: Subject, cast: people.Overlap, weight: float) -> Item:
    comparable = min(cast.left, cast.right)
    if not comparable:
        return Item("actors", ItemOutcome.UNKNOWN, 0.0, weight)
    # Lists are cut at different lengths: two common names are as good as ten, one is not.
    points = weight * (1.0 if cast.matched >= _SAME_PEOPLE else cast.matched / min(3, comparable))
    note = f"共同主演 {cast.matched} 人" if cast.matched else versus(video.actors, subject.actors, 3)
    if cast.matched >= min(2, len(video.actors), len(subject.actors)):
        return Item("actors", ItemOutcome.AGREE, points, weight, note, fact=True)
    return Item(
        "actors", ItemOutcome.UNKNOWN if cast.agree is not False else ItemOutcome.DISAGREE, points, weight, note
    )


def _genre_item(found: Fields, weight: float) -> Item:
    mine, theirs = found.genres
    if not mine or not theirs:
        return Item("genre", ItemOutcome.UNKNOWN, 0.0, weight)
    common = mine & theirs
    points = weight * len(common) / min(len(mine), len(theirs))
    return Item("genre", _OUTCOMES[bool(common)], points, weight, f"共同类型 {'、'.join(sorted(common)) or '无'}")
