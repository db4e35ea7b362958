"""What the matcher compares: facts from the CMS's rows and from Douban's answers, and the profile in force."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from douban_pipeline.cms.maccms import Category, Cms
from douban_pipeline.cms.numbers import episodes_of, minutes_of, year_of
from douban_pipeline.cms.values import aliases_of, people_of, readable, split_list
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.sources.douban_php import SubjectRecord
from douban_pipeline.douban.sources.search import Hit
from douban_pipeline.matching import Kind, Subject, Thresholds, Video
from douban_pipeline.matching.profiles import Profile, make_profile
from douban_pipeline.matching.title_rejoin import rejoin

# Words in category names, the telling ones first: 纪录片 under 电影 is a documentary, 动画片 an animation.
_KIND_WORDS: tuple[tuple[str, Kind], ...] = (
    ("纪录", Kind.DOCUMENTARY),
    ("记录片", Kind.DOCUMENTARY),
    ("短剧", Kind.SHORT),
    ("动漫", Kind.ANIMATION),
    ("动画", Kind.ANIMATION),
    ("番剧", Kind.ANIMATION),
    ("综艺", Kind.VARIETY),
    ("真人秀", Kind.VARIETY),
    ("剧情片", Kind.FILM),
    ("喜剧片", Kind.FILM),
    ("连续剧", Kind.SERIES),
    ("电视剧", Kind.SERIES),
    ("剧集", Kind.SERIES),
    ("电影", Kind.FILM),
    ("片", Kind.FILM),
    ("剧", Kind.SERIES),
)
_VARIETY_GENRES = frozenset({"真人秀", "脱口秀", "综艺", "歌舞真人秀"})
_MAX_DEPTH = 5
_SITE_TAIL = re.compile(r"\s*[-–—_|·(（\[]\s*(?:电影|电视剧|综艺|动画|剧集)?\s*[-–—_|(（]?\s*豆瓣.*$")


def kind_of_category(categories: Mapping[int, Category], type_id: int) -> Kind | None:
    """Return what a site's category says of its videos: by its own name, then its ancestors'.

    Sites number their categories as they like, so names decide, never ids.
    """
    for _ in range(_MAX_DEPTH):
        category = categories.get(type_id)
        if category is None:
            return None
        name = category.name
        found = next((kind for word, kind in _KIND_WORDS if word in name), None)
        if found is not None:
            return found
        type_id = category.parent_id
    return None


def video_facts(row: Mapping[Any, Any], cms: Cms, categories: Mapping[int, Category]) -> Video:
    """Return a CMS row as the matcher sees it: unescaped, split, without placeholders."""
    return facts_of_values(
        row, vod_id=row["vod_id"], kind=kind_of_category(categories, row["type_id"]), widths=cms.widths
    )


def facts_of_values(
    values: Mapping[Any, Any], *, vod_id: int, kind: Kind | None, widths: Mapping[str, int] | None = None
) -> Video:
    """Return a local record as the matcher sees it.

    Args:
        values: Stored values by the CMS's column names; a missing one is unknown, but ``vod_name`` must be there.
        vod_id: The record's key.
        kind: What its category says.
        widths: The columns' widths: a list that fills its column was cut.
    """
    widths = widths or {}

    def text(column: str) -> str:
        return readable(values.get(column) or "")

    def people(column: str) -> tuple[str, ...]:
        return people_of(values.get(column), width=widths.get(column))

    return Video(
        vod_id=vod_id,
        title=readable(values["vod_name"]),
        aliases=aliases_of(values.get("vod_sub"), width=widths.get("vod_sub")),
        year=year_of(values.get("vod_year")),
        kind=kind,
        # Unsplit: 其它 is no name to drop but says that any region fits.
        regions=(text("vod_area"),) if values.get("vod_area") else (),
        languages=split_list(values.get("vod_lang")),
        directors=people("vod_director"),
        actors=people("vod_actor"),
        genres=split_list(values.get("vod_class"), width=widths.get("vod_class")),
        duration_minutes=minutes_of(text("vod_duration")),
        episodes=episodes_of(values.get("vod_total") or 0, text("vod_remarks")),
        remarks=text("vod_remarks"),
    )


def subject_facts(record: SubjectRecord, search_kind: str = "") -> Subject:
    """Return an answer of Douban as the matcher sees it.

    Args:
        record: The answer.
        search_kind: ``tv`` where the search said that it has episodes; Douban's answer has no field for that.
    """
    title, original = rejoin(record.title, record.original_title)
    years = dict.fromkeys(year for date in record.release_dates if (year := year_of(date)) is not None)
    return Subject(
        douban_id=record.douban_id,
        title=title,
        original_title=original,
        aliases=record.aliases,
        year=record.year,
        release_years=tuple(years),
        kind=_kind_of_subject(record, search_kind),
        regions=record.regions,
        languages=record.languages,
        directors=record.directors,
        actors=record.actors,
        genres=record.genres,
        duration_minutes=record.duration_minutes,
        episodes=record.episodes,
        rating=record.rating,
        votes=record.votes,
        serial=True if search_kind == "tv" else None,
    )


def glimpsed_facts(hit: Hit) -> Subject:
    """Return what a search said of a subject nobody asked Douban about."""
    title, original = rejoin(_SITE_TAIL.sub("", hit.title).strip(), hit.original_title)
    return Subject(
        douban_id=hit.douban_id,
        title=title,
        original_title=original,
        year=hit.year,
        kind=Kind.SERIES if hit.kind == "tv" else None,
        episodes=hit.episodes,
        serial=True if hit.kind == "tv" else None,
        fetched=False,
    )


def _kind_of_subject(record: SubjectRecord, search_kind: str) -> Kind | None:
    """Return the kind that an answer implies; douban.php has no field for it."""
    genres = set(record.genres)
    if genres & _VARIETY_GENRES:
        return Kind.VARIETY
    if "动画" in genres:
        return Kind.ANIMATION
    if "纪录片" in genres:
        return Kind.DOCUMENTARY
    if record.episodes is not None and record.episodes > 1:
        return Kind.SERIES
    if "短片" in genres:
        return Kind.SHORT
    if search_kind == "tv":
        # Episodes may be as long as films.
        return Kind.SERIES
    return Kind.FILM if record.duration_minutes is not None and record.duration_minutes >= 60 else None


def profile_of(settings: Settings) -> Profile:
    """Return the profile in force, with its weights and thresholds."""
    thresholds = Thresholds(
        confirm=settings.confirm_score,
        review=settings.review_score,
        lead=settings.lead_score,
        title_floor=settings.title_floor,
        year_gap=settings.year_gap,
    )
    return make_profile(settings.match_profile, weights=settings.weights, thresholds=thresholds)
