"""What speaks against a candidate: the plan's hard rejects, and softer conflicts, each with its sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from douban_pipeline.matching import kinds
from douban_pipeline.matching.codes import LABELS, SENTENCES, Code
from douban_pipeline.matching.facts import Kind, Subject, Video
from douban_pipeline.matching.fields import Fields, local_years
from douban_pipeline.matching.similarity import Numbers, TitleMatch
from douban_pipeline.matching.title_editions import edition_name


class Finding(NamedTuple):
    """Something that speaks against a candidate: a code, its sentence, and whether it takes the candidate out."""

    code: str
    text: str
    reject: bool = False


KIND_REJECTED_BELOW = 0.75
"""Title similarity under which a film and a series are two works; above it the gate refuses, and a person looks."""


def versus(mine: tuple[str, ...], theirs: tuple[str, ...], most: int) -> str:
    """Return both sides of a field for a reviewer; nothing when one is empty."""
    if not mine or not theirs:
        return ""
    return f"本地 {'、'.join(mine[:most])} / 豆瓣 {'、'.join(theirs[:most])}"


def year_note(video: Video, subject: Subject, title: TitleMatch) -> str:
    """Return both sides' years for a reviewer."""
    mine = "、".join(map(str, local_years(video, title)))
    return f"本地 {mine} / 豆瓣 {subject.year or '、'.join(map(str, sorted(subject.release_years)))}"


def find(video: Video, subject: Subject, found: Fields, title_floor: float, year_gap: int) -> Iterator[Finding]:
    """Say what speaks against a candidate, hard rejects first.

    Args:
        video: The local video.
        subject: The candidate.
        found: Their fields, compared.
        title_floor: Similarity under which a title is rejected.
        year_gap: Years from which a year is rejected.
    """
    yield from _rejects(video, subject, found, title_floor, year_gap)
    yield from _title_conflicts(video, found.title)
    yield from _fact_conflicts(video, subject, found, year_gap)


def _rejects(video: Video, subject: Subject, found: Fields, title_floor: float, year_gap: int) -> Iterator[Finding]:
    alike = found.title.similarity
    if alike < title_floor:
        yield _reject(Code.TITLE_TOO_FAR, f"相似度 {alike:.2f}")
    if found.year is not None and found.year.gap >= year_gap:
        yield _reject(Code.YEAR_GAP, f"差 {found.year.gap} 年")
    if found.kind is False:
        yield _reject(Code.KIND_CONFLICT, f"本地 {_kind(video)} / 豆瓣 {_kind(subject)}")._replace(
            reject=alike < KIND_REJECTED_BELOW
        )
    if found.region.agree is False:
        yield _reject(Code.REGION_CONFLICT, versus(video.regions, subject.regions, 4))
    if found.director is False:
        yield _reject(Code.DIRECTOR_CONFLICT, versus(video.directors, subject.directors, 3))


def _reject(code: Code, values: str) -> Finding:
    return Finding(code, f"{LABELS[code]}：{values}", reject=True)


_KIND_NAMES = {
    Kind.FILM: "电影",
    Kind.SERIES: "剧集",
    Kind.VARIETY: "综艺",
    Kind.ANIMATION: "动画",
    Kind.DOCUMENTARY: "纪录片",
    Kind.SHORT: "短片",
    None: "未知",
}


def _kind(work: Video | Subject) -> str:
    """Return the kind, and the format where the kind leaves it open: a series and an animated film conflict."""
    name = _KIND_NAMES[work.kind]
    if work.kind in (Kind.FILM, Kind.SERIES, Kind.VARIETY):
        return name
    episodes = kinds.serial(work)
    return name if episodes is None else f"{name}（{'分集' if episodes else '单部'}）"


def _number(number: int | None) -> str:
    if number is None:
        return "未标明"
    return f" {number} 年" if number > 1900 else f"第 {number} 季"  # 歌手2025 counts by years


def _title_conflicts(video: Video, title: TitleMatch) -> Iterator[Finding]:
    if title.numbers in (Numbers.CONFLICT, Numbers.ONE_SIDED):
        sides = f"本地{_number(title.local_number)} / 豆瓣{_number(title.subject_number)}"
        if title.numbers is Numbers.CONFLICT:
            yield Finding(Code.SEASON_CONFLICT, f"季数不一致：{sides}")
        else:
            yield Finding(Code.SEASON_ONE_SIDED, f"只有一方标明季数或部数：{sides}")
    if "collection" in title.editions_local:
        yield Finding(Code.MERGED_RECORD, SENTENCES[Code.MERGED_RECORD])
    elif title.editions_local or title.editions_subject:
        editions = (title.editions_local, title.editions_subject)
        mine, theirs = ("、".join(map(edition_name, sorted(side))) or "未标明" for side in editions)
        yield Finding(Code.EDITION_CONFLICT, f"版本不一致：本地 {mine} / 豆瓣 {theirs}")
    if title.originals_differ:
        yield Finding(Code.ORIGINALS_DIFFER, SENTENCES[Code.ORIGINALS_DIFFER])
    stated = title.local_years
    if video.year is not None and stated and abs(stated[0] - video.year) > 1:
        yield Finding(Code.YEAR_IN_TITLE, f"片名里的年份 {stated[0]} 与年份 {video.year} 不符")


def _fact_conflicts(video: Video, subject: Subject, found: Fields, year_gap: int) -> Iterator[Finding]:
    gap = found.year
    if gap is not None and not gap.own:
        yield Finding(Code.YEAR_OF_RELEASE, f"年份只与某次上映相符：{year_note(video, subject, found.title)}")
    elif gap is not None and 0 < gap.gap < year_gap:
        yield Finding(Code.YEAR_OFF, f"年份差 {gap.gap} 年")
    mine = kinds.animated(video.kind, found.genres[0])
    theirs = kinds.animated(subject.kind, found.genres[1])
    if mine is not None and theirs is not None and mine is not theirs:
        yield Finding(Code.MEDIUM_CONFLICT, f"{'本地' if mine else '豆瓣'}是动画，{'豆瓣' if mine else '本地'}不是")
    if found.cast.agree is False and min(found.cast.left, found.cast.right) >= 3:
        yield Finding(Code.ACTORS_DISJOINT, f"主演无交集：{versus(video.actors, subject.actors, 3)}")
    if found.length.far:
        yield Finding(Code.LENGTH_CONFLICT, found.length.note)
