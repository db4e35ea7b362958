"""The plan's score of one candidate, item by item, and what speaks against it.

Every item is three-valued: agree, disagree, unknown. Unknown earns nothing and accuses nobody; a conflict needs
both sides known. The score is the literal sum of the points, so that it can be read off the stored items.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from douban_pipeline.matching import genres, kinds, lengths, people, regions, years
from douban_pipeline.matching.codes import HARD_REJECTS, Code
from douban_pipeline.matching.facts import Kind, Subject, Video
from douban_pipeline.matching.similarity import Numbers, TitleMatch, match_titles


class Outcome(enum.StrEnum):
    """What one compared field says."""

    AGREE = "agree"
    DISAGREE = "disagree"
    UNKNOWN = "unknown"


def _outcome(value: bool | None) -> Outcome:
    return Outcome.UNKNOWN if value is None else Outcome.AGREE if value else Outcome.DISAGREE


@dataclass(frozen=True, slots=True)
class Weights:
    """Most points each item can earn, the plan's by default. ``tie_break`` is for having a rating at all."""

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
        return float(sum(getattr(self, item.name) for item in fields(self)))


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


@dataclass(frozen=True, slots=True)
class Item:
    """One compared field.

    Attributes:
        name: Field of :class:`Weights`.
        outcome: Agree, disagree or unknown.
        points: Points earned, 0 to ``weight``.
        weight: Points that could be earned.
        note: What was compared, in Chinese, short.
        fact: Whether an agreement counts as an independent fact beside the title.
    """

    name: str
    outcome: Outcome
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


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that speaks against a candidate: a code and its sentence."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A video and a subject, compared.

    Attributes:
        items: Every item of the score, in the order of :class:`Weights`.
        title: The names that matched best.
        findings: Rejects and conflicts with their sentences.
        kind: Whether the kinds agree; None is unknown.
        year: Distance in years, None when unknown.
    """

    items: tuple[Item, ...]
    title: TitleMatch
    findings: tuple[Finding, ...]
    kind: bool | None
    year: years.YearGap | None

    @property
    def score(self) -> float:
        """Sum of the points, rounded to a hundredth as it is stored."""
        return round(sum(item.points for item in self.items), 2)

    @property
    def rejects(self) -> tuple[str, ...]:
        """Codes of hard rejects."""
        return tuple(finding.code for finding in self.findings if finding.code in HARD_REJECTS)

    @property
    def conflicts(self) -> tuple[str, ...]:
        """Codes of softer conflicts."""
        return tuple(finding.code for finding in self.findings if finding.code not in HARD_REJECTS)

    @property
    def facts(self) -> tuple[str, ...]:
        """Names of the independent facts beside the title that agree."""
        return tuple(item.name for item in self.items if item.fact and item.outcome is Outcome.AGREE)

    def item(self, name: str) -> Item:
        """Return the item of that name; :class:`KeyError` when there is none."""
        for item in self.items:
            if item.name == name:
                return item
        raise KeyError(name)

    def agrees(self, name: str) -> bool:
        """Say whether the item of that name agrees."""
        return self.item(name).outcome is Outcome.AGREE

    def to_json(self) -> dict[str, Any]:
        """Return what is stored of the comparison."""
        return {
            "score": self.score,
            "items": [item.to_json() for item in self.items],
            "title": self.title.to_json(),
            "rejects": list(map(str, self.rejects)),
            "conflicts": list(map(str, self.conflicts)),
            "notes": {str(finding.code): finding.text for finding in self.findings},
            "facts": list(self.facts),
        }


_YEAR_SHARE = {0: 1.0, 1: 2 / 3, 2: 1 / 3}
DEFAULT_WEIGHTS = Weights()
DEFAULT_THRESHOLDS = Thresholds()


def local_years(video: Video, title: TitleMatch) -> tuple[int, ...]:
    """Years the video claims: its own field, else the one its title states."""
    return (video.year,) if video.year is not None else title.local_years


def compare(
    video: Video,
    subject: Subject,
    weights: Weights = DEFAULT_WEIGHTS,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> Comparison:
    """Compare a video with one subject, field by field."""
    title = match_titles(video, subject)
    gap = years.year_gap(local_years(video, title), subject.year, subject.release_years)
    directors = people.overlap(video.directors, subject.directors)
    cast = people.overlap(video.actors, subject.actors)
    kind = kinds.agree(video.kind, subject.kind)
    length = lengths.compare_lengths(
        subject.kind or video.kind,
        (video.duration_minutes, subject.duration_minutes),
        (video.episodes, subject.episodes),
    )
    region, firm_region = regions.agree(video.regions, subject.regions)
    director = None if directors.agree is False and _many_directors(video, subject) else directors.agree
    items = (
        Item(
            "title",
            _title_outcome(title, thresholds),
            weights.title * title.similarity,
            weights.title,
            _title_note(title),
        ),
        _year_item(video, subject, gap, title, weights.year, thresholds),
        Item(
            "region",
            _outcome(region),
            weights.region if region else 0.0,
            weights.region,
            _versus(video.regions, subject.regions, 4),
            fact=firm_region,
        ),
        Item(
            "director",
            _outcome(director),
            weights.director if director else 0.0,
            weights.director,
            _versus(video.directors, subject.directors, 3),
            fact=True,
        ),
        _actors_item(video, subject, cast, weights.actors),
        _genre_item(video, subject, weights.genre),
        Item(
            "length",
            _outcome(length.agree),
            weights.length if length.agree else 0.0,
            weights.length,
            length.note,
            fact=True,
        ),
        Item(
            "tie_break",
            Outcome.AGREE if subject.rating is not None else Outcome.UNKNOWN,
            weights.tie_break if subject.rating is not None else 0.0,
            weights.tie_break,
            "有评分" if subject.rating is not None else "",
        ),
    )
    found = Comparison(items, title, (), kind, gap)
    findings = (
        *_rejects(video, subject, found, region, director, thresholds),
        *_title_conflicts(video, title),
        *_fact_conflicts(video, subject, found, cast, length, thresholds),
    )
    return Comparison(items, title, findings, kind, gap)


def _versus(mine: tuple[str, ...], theirs: tuple[str, ...], most: int) -> str:
    if not mine or not theirs:
        return ""
    return f"本地 {'、'.join(mine[:most])} / 豆瓣 {'、'.join(theirs[:most])}"


def _title_outcome(title: TitleMatch, thresholds: Thresholds) -> Outcome:
    if title.near_exact:
        return Outcome.AGREE
    return Outcome.DISAGREE if title.similarity < thresholds.title_floor else Outcome.UNKNOWN


def _title_note(title: TitleMatch) -> str:
    how = "（别名）" if title.via_alias else ""
    return f"本地《{title.local}》/ 豆瓣《{title.subject}》{how}相似度 {title.similarity:.2f}"


def _year_item(
    video: Video,
    subject: Subject,
    gap: years.YearGap | None,
    title: TitleMatch,
    weight: float,
    thresholds: Thresholds,
) -> Item:
    if gap is None:
        return Item("year", Outcome.UNKNOWN, 0.0, weight)
    share = _YEAR_SHARE.get(gap.gap, 0.0)
    mine = "、".join(map(str, local_years(video, title)))
    note = f"本地 {mine} / 豆瓣 {subject.year or '、'.join(map(str, sorted(subject.release_years)))}"
    if not gap.own:
        # Points for one release of an older or newer work are the least there are, and no evidence.
        return Item("year", Outcome.UNKNOWN, weight * min(share, 1 / 3), weight, note)
    if gap.gap <= 1:
        return Item("year", Outcome.AGREE, weight * share, weight, note, fact=True)
    outcome = Outcome.DISAGREE if gap.gap >= thresholds.year_gap else Outcome.UNKNOWN
    return Item("year", outcome, weight * share, weight, note)


def _actors_item(video: Video, subject: Subject, cast: people.Overlap, weight: float) -> Item:
    comparable = min(cast.left, cast.right)
    if not comparable:
        return Item("actors", Outcome.UNKNOWN, 0.0, weight)
    # Lists are cut at different lengths: three common names are as good as ten.
    points = weight * min(1.0, cast.matched / min(3, comparable))
    note = f"共同主演 {cast.matched} 人" if cast.matched else _versus(video.actors, subject.actors, 3)
    if cast.matched >= min(2, len(video.actors), len(subject.actors)):
        return Item("actors", Outcome.AGREE, points, weight, note, fact=True)
    return Item("actors", Outcome.UNKNOWN if cast.agree is not False else Outcome.DISAGREE, points, weight, note)


def _genre_item(video: Video, subject: Subject, weight: float) -> Item:
    mine, theirs = genres.read(video.genres), genres.read(subject.genres)
    if not mine or not theirs:
        return Item("genre", Outcome.UNKNOWN, 0.0, weight)
    common = mine & theirs
    points = weight * len(common) / min(len(mine), len(theirs))
    return Item("genre", _outcome(bool(common)), points, weight, f"共同类型 {'、'.join(sorted(common)) or '无'}")


def _many_directors(video: Video, subject: Subject) -> bool:
    """Series change directors by episode, so lists of several need not meet."""
    is_film = Kind.FILM in (video.kind, subject.kind)
    return not is_film and max(len(video.directors), len(subject.directors)) > 2


def _rejects(
    video: Video,
    subject: Subject,
    found: Comparison,
    region: bool | None,
    director: bool | None,
    thresholds: Thresholds,
) -> Iterator[Finding]:
    if found.title.similarity < thresholds.title_floor:
        yield Finding(Code.TITLE_TOO_FAR, f"片名相差太远（相似度 {found.title.similarity:.2f}）")
    if found.year is not None and found.year.gap >= thresholds.year_gap:
        yield Finding(Code.YEAR_GAP, f"年份差 {found.year.gap} 年")
    if found.kind is False:
        yield Finding(
            Code.KIND_CONFLICT, f"类型不一致：本地 {_KIND_NAMES[video.kind]} / 豆瓣 {_KIND_NAMES[subject.kind]}"
        )
    if region is False:
        yield Finding(Code.REGION_CONFLICT, f"地区无交集：{_versus(video.regions, subject.regions, 4)}")
    if director is False:
        yield Finding(Code.DIRECTOR_CONFLICT, f"导演无交集：{_versus(video.directors, subject.directors, 3)}")


_KIND_NAMES = {
    Kind.FILM: "电影",
    Kind.SERIES: "剧集",
    Kind.VARIETY: "综艺",
    Kind.ANIMATION: "动画",
    Kind.DOCUMENTARY: "纪录片",
    Kind.SHORT: "短片",
    None: "未知",
}


def _number(number: int | None) -> str:
    if number is None:
        return "未标明"
    return f" {number} 年" if number > 1900 else f"第 {number} 季"  # 歌手2025 counts by years


def _title_conflicts(video: Video, title: TitleMatch) -> Iterator[Finding]:
    sides = f"本地{_number(title.local_number)} / 豆瓣{_number(title.subject_number)}"
    if title.numbers is Numbers.CONFLICT:
        yield Finding(Code.SEASON_CONFLICT, f"季数不一致：{sides}")
    elif title.numbers is Numbers.ONE_SIDED:
        yield Finding(Code.SEASON_ONE_SIDED, f"只有一方标明季数或部数：{sides}")
    if title.editions_local or title.editions_subject:
        mine, theirs = ("、".join(sorted(side)) or "无" for side in (title.editions_local, title.editions_subject))
        yield Finding(Code.EDITION_CONFLICT, f"版本不一致：本地 {mine} / 豆瓣 {theirs}")
    stated = title.local_years
    if video.year is not None and stated and abs(stated[0] - video.year) > 1:
        yield Finding(Code.YEAR_IN_TITLE, f"片名里的年份 {stated[0]} 与年份 {video.year} 不符")


def _fact_conflicts(
    video: Video,
    subject: Subject,
    found: Comparison,
    cast: people.Overlap,
    length: lengths.LengthMatch,
    thresholds: Thresholds,
) -> Iterator[Finding]:
    gap = found.year
    if gap is not None and not gap.own:
        yield Finding(Code.YEAR_OF_RELEASE, f"年份只与某次上映相符：{found.item('year').note}")
    elif gap is not None and 0 < gap.gap < thresholds.year_gap:
        yield Finding(Code.YEAR_OFF, f"年份差 {gap.gap} 年")
    mine, theirs = (kinds.animated(side.kind, genres.read(side.genres)) for side in (video, subject))
    if mine is not None and theirs is not None and mine is not theirs:
        yield Finding(Code.MEDIUM_CONFLICT, f"{'本地' if mine else '豆瓣'}是动画，{'豆瓣' if mine else '本地'}不是")
    if cast.agree is False and min(cast.left, cast.right) >= 3:
        yield Finding(Code.ACTORS_DISJOINT, f"主演无交集：{_versus(video.actors, subject.actors, 3)}")
    if length.far:
        yield Finding(Code.LENGTH_CONFLICT, length.note)
