"""Strata: groups of matches with specific failure modes; precision is measured in each separately."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from douban_pipeline.matching import kinds
from douban_pipeline.matching.codes import SENTENCES, Code
from douban_pipeline.matching.facts import Subject, Video
from douban_pipeline.matching.fields import read_regions
from douban_pipeline.matching.scoring import Comparison
from douban_pipeline.matching.titles import parse_title

SHORT_TITLE = 3
"""Most letters of a short title; one in fourteen of these shares its name with other works."""

STRATA: Mapping[str, str] = {
    "short_title": "片名不超过三个字",
    "season": "带季数、部数或续集号",
    "alias_hit": "凭别名相符",
    "same_title_rivals": "有同名或同系列候选",
    "co_production": "合拍",
    "no_director": "本地无导演",
    "year_missing": "本地无年份",
    "year_off": "年份差一年以上",
    "animation": "动画",
    "thin": "本地无任何人员",
    "rich": "本地有年份和人员",
}
"""Every stratum with its name for people."""

OPENINGS: Mapping[str, Code] = {
    f"only:{code}": code
    for code in (
        Code.TITLE_NOT_EXACT,
        Code.ALIAS_UNBACKED,
        Code.YEAR_UNCONFIRMED,
        Code.TOO_FEW_FACTS,
        Code.UNCORROBORATED,
        Code.FAMILY_UNSEEN,
    )
}
"""Strata of matches that lack one thing to be confirmed, with the condition of the gate that asks for it.

A person may open one: each asks for more evidence. What knows of a conflict, or of something unseen, stays closed.
"""


def stratum_name(stratum: str) -> str:
    """Return a stratum's name for people; one that is not known is its own name."""
    if stratum in OPENINGS:
        return f"只差一项：{SENTENCES[OPENINGS[stratum]]}"
    return STRATA.get(stratum, stratum)


def opening_of(codes: Collection[str]) -> str:
    """Return the stratum of a match that ``codes`` alone keep from being confirmed; empty if no person may open it."""
    name = f"only:{next(iter(codes))}" if len(codes) == 1 else ""
    return name if name in OPENINGS else ""


def strata_of(video: Video, subject: Subject, comparison: Comparison, relatives: bool) -> tuple[str, ...]:
    """Return the strata a match belongs to, in the order of :data:`STRATA`.

    Args:
        video: The local video.
        subject: Its best candidate.
        comparison: Their comparison.
        relatives: Whether other works of this name or family are known.
    """
    title = comparison.title
    people = bool(video.directors or video.actors)
    known = {
        "short_title": len(parse_title(video.title).base) <= SHORT_TITLE,
        "season": title.local_number is not None or title.subject_number is not None,
        "alias_hit": title.via_alias,
        "same_title_rivals": relatives,
        "co_production": len(read_regions(subject.regions).codes) > 1,
        "no_director": not video.directors,
        "year_missing": video.year is None,
        "year_off": comparison.year is not None and comparison.year.gap > 0,
        "animation": any(kinds.animated(work.kind, kinds.read_genres(work.genres)) for work in (video, subject)),
        "thin": not people,
        "rich": people and video.year is not None,
    }
    return tuple(name for name in STRATA if known[name])
