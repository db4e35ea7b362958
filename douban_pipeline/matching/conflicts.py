"""Finds the conflicts of a candidate: the plan's hard rejects, and softer conflicts, each with its sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from douban_pipeline.matching import kinds
from douban_pipeline.matching.codes import HARD_REJECTS, LABELS, SENTENCES, Code
from douban_pipeline.matching.facts import Kind, Subject, Video
from douban_pipeline.matching.fields import Fields, local_years
from douban_pipeline.matching.similarity import NumberMatch, TitleMatch
from douban_pipeline.matching.title_editions import edition_name


class Conflict(NamedTuple):
    """A conflict of a candidate: its code, its sentence, and whether it rejects the candidate."""

    code: str
    text: str
    reject: bool = False


KIND_REJECTED_BELOW = 0.75
"""Title similarity under which a kind conflict rejects; from it on the gate refuses and a person reviews."""


def versus(mine: tuple[str, ...], theirs: tuple[str, ...], most: int) -> str:
    """Return both sides of a field as text for a reviewer; empty when one side is empty."""
    if not mine or not theirs:
        return ""
    return f"本地 {'、'.join(mine[:most])} / 豆瓣 {'、'.join(theirs[:most])}"


def year_note(video: Video, subject: Subject, title: TitleMatch) -> str:
    """Return both sides' years as text for a reviewer."""
    mine = "、".join(map(str, local_years(video, title)))
    return f"本地 {mine} / 豆瓣 {subject.year or '、'.join(map(str, sorted(subject.release_years)))}"


class Codes(NamedTuple):
    """Codes of a candidate's conflicts.

    Attributes:
        every: All of them, possible rejects first.
        rejects: Those that reject the candidate.
        softer: The others.
    """

    every: tuple[Code, ...]
    rejects: tuple[Code, ...]
    softer: tuple[Code, ...]


NO_CODES = Codes((), (), ())
"""No conflict."""


def find(video: Video, subject: Subject, found: Fields, title_floor: float, year_gap: int) -> Codes:
    """Return the codes of a candidate's conflicts.

    Args:
        video: The local video.
        subject: The candidate.
        found: Their fields, compared.
        title_floor: Similarity under which a title is rejected.
        year_gap: Years from which a year is rejected.
    """
    title, gap = found.title, found.year
    codes: list[Code] = []
    if title.similarity < title_floor:
        codes.append(Code.TITLE_TOO_FAR)
    if gap is not None and gap.gap >= year_gap:
        codes.append(Code.YEAR_GAP)
    if found.kind is False:
        codes.append(Code.KIND_CONFLICT)
    if found.region.agree is False:
        codes.append(Code.REGION_CONFLICT)
    if found.director is False:
        codes.append(Code.DIRECTOR_CONFLICT)
    hard = len(codes)
    if title.numbers is NumberMatch.CONFLICT:
        codes.append(Code.SEASON_CONFLICT)
    elif title.numbers is NumberMatch.ONE_SIDED:
        codes.append(Code.SEASON_ONE_SIDED)
    if "collection" in title.editions_local:
        codes.append(Code.MERGED_RECORD)
    elif title.editions_local or title.editions_subject:
        codes.append(Code.EDITION_CONFLICT)
    if title.originals_differ:
        codes.append(Code.ORIGINALS_DIFFER)
    stated = title.local_years
    if stated and video.year is not None and abs(stated[0] - video.year) > 1:
        codes.append(Code.YEAR_IN_TITLE)
    if gap is not None and not gap.own:
        codes.append(Code.YEAR_OF_RELEASE)
    elif gap is not None and 0 < gap.gap < year_gap:
        codes.append(Code.YEAR_OFF)
    mine, theirs = _animated(video, subject, found)
    if mine is not None and theirs is not None and mine is not theirs:
        codes.append(Code.MEDIUM_CONFLICT)
    if found.cast.left >= 3 and found.cast.right >= 3 and found.cast.agree is False:
        codes.append(Code.ACTORS_DISJOINT)
    if found.length.far:
        codes.append(Code.LENGTH_CONFLICT)
    if not codes:
        return NO_CODES
    every = tuple(codes)
    rejects, softer = every[:hard], every[hard:]
    if found.kind is False and not takes_out(Code.KIND_CONFLICT, found):
        rejects = tuple(code for code in rejects if code is not Code.KIND_CONFLICT)
        softer = (Code.KIND_CONFLICT, *softer)
    return Codes(every, rejects, softer)


def takes_out(code: Code, found: Fields) -> bool:
    """Return whether a conflict rejects the candidate."""
    if code is Code.KIND_CONFLICT:
        return found.title.similarity < KIND_REJECTED_BELOW
    return code in HARD_REJECTS


def finding_of(code: Code, video: Video, subject: Subject, found: Fields) -> Conflict:
    """Return a code of :func:`find` with its sentence; built on demand, since most candidates never need it."""
    words = _WORDS.get(code)
    text = SENTENCES[code] if words is None else words(video, subject, found)
    label = LABELS.get(code) if code in HARD_REJECTS else None
    return Conflict(code, f"{label}：{text}" if label else text, takes_out(code, found))


def _animated(video: Video, subject: Subject, found: Fields) -> tuple[bool | None, bool | None]:
    return kinds.animated(video.kind, found.genres[0]), kinds.animated(subject.kind, found.genres[1])


_KIND_NAMES = {
    Kind.FILM: "电影",
    Kind.SERIES: "剧集",
    Kind.VARIETY: "综艺",
    Kind.ANIMATION: "动画",
    Kind.DOCUMENTARY: "纪录片",
    Kind.SHORT: "短片",
    None: "未知",
}


_SERIAL = {Kind.FILM: False, Kind.SERIES: True, Kind.VARIETY: True}
"""Whether works of a kind have episodes, where the kind says so."""


def _kind(work: Video | Subject) -> str:
    """Return the kind, with the format where the kind does not say it: a film may have been marked with episodes."""
    name, episodes = _KIND_NAMES[work.kind], kinds.serial(work)
    if episodes is None or (work.kind is not None and _SERIAL.get(work.kind) is episodes):
        return name
    return f"{name}（{'分集' if episodes else '单部'}）"


def _number(number: int | None) -> str:
    if number is None:
        return "未标明"
    return f" {number} 年" if number > 1900 else f"第 {number} 季"  # 歌手2025 is numbered by year


def _numbers(found: Fields) -> str:
    title = found.title
    return f"本地{_number(title.local_number)} / 豆瓣{_number(title.subject_number)}"


def _editions(found: Fields) -> str:
    sides = (found.title.editions_local, found.title.editions_subject)
    mine, theirs = ("、".join(map(edition_name, sorted(side))) or "未标明" for side in sides)
    return f"版本不一致：本地 {mine} / 豆瓣 {theirs}"


def _media(video: Video, subject: Subject, found: Fields) -> str:
    mine, _ = _animated(video, subject, found)
    return f"{'本地' if mine else '豆瓣'}是动画，{'豆瓣' if mine else '本地'}不是"


_WORDS: Mapping[Code, Callable[[Video, Subject, Fields], str]] = {
    Code.TITLE_TOO_FAR: lambda video, subject, found: f"相似度 {found.title.similarity:.2f}",
    Code.YEAR_GAP: lambda video, subject, found: f"差 {_gap(found)} 年",
    Code.KIND_CONFLICT: lambda video, subject, found: f"本地 {_kind(video)} / 豆瓣 {_kind(subject)}",
    Code.REGION_CONFLICT: lambda video, subject, found: versus(video.regions, subject.regions, 4),
    Code.DIRECTOR_CONFLICT: lambda video, subject, found: versus(video.directors, subject.directors, 3),
    Code.SEASON_CONFLICT: lambda video, subject, found: f"季数不一致：{_numbers(found)}",
    Code.SEASON_ONE_SIDED: lambda video, subject, found: f"只有一方标明季数或部数：{_numbers(found)}",
    Code.EDITION_CONFLICT: lambda video, subject, found: _editions(found),
    Code.YEAR_IN_TITLE: lambda video, subject, found: (
        f"片名里的年份 {found.title.local_years[0]} 与年份 {video.year} 不符"
    ),
    Code.YEAR_OF_RELEASE: lambda video, subject, found: (
        f"年份只与某次上映相符：{year_note(video, subject, found.title)}"
    ),
    Code.YEAR_OFF: lambda video, subject, found: f"年份差 {_gap(found)} 年",
    Code.MEDIUM_CONFLICT: _media,
    Code.ACTORS_DISJOINT: lambda video, subject, found: f"主演无交集：{versus(video.actors, subject.actors, 3)}",
    Code.LENGTH_CONFLICT: lambda video, subject, found: found.length.note,
}
"""Sentences that contain values, by code; the other codes have the same sentence for every candidate."""


def _gap(found: Fields) -> int:
    return found.year.gap if found.year is not None else 0
