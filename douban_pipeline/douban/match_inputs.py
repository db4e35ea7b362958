"""Inputs of the matcher: facts from Douban's answers and from searches, and the current profile."""

from __future__ import annotations

import re

from douban_pipeline.cms.numbers import year_of
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.sources.douban_php import SubjectRecord
from douban_pipeline.douban.sources.search import Hit
from douban_pipeline.matching import Kind, Subject, Thresholds
from douban_pipeline.matching.profiles import Profile, make_profile
from douban_pipeline.matching.title_rejoin import rejoin

_VARIETY_GENRES = frozenset({"真人秀", "脱口秀", "综艺", "歌舞真人秀"})
_SITE_TAIL = re.compile(r"\s*[-–—_|·(（\[]\s*(?:电影|电视剧|综艺|动画|剧集)?\s*[-–—_|(（]?\s*豆瓣.*$")


def subject_facts(record: SubjectRecord, search_kind: str = "") -> Subject:
    """Return an answer of Douban as a subject for the matcher.

    Args:
        record: The answer.
        search_kind: ``tv`` if the search said that it has episodes; Douban's answer has no field for that.
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
    """Return a search hit whose details were not fetched as a subject for the matcher."""
    title, original = rejoin(_SITE_TAIL.sub("", hit.title).strip(), hit.original_title)
    return Subject(
        douban_id=hit.douban_id,
        title=title,
        original_title=original,
        aliases=tuple(hit.aliases),
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
        # Before the duration, since episodes may be as long as films.
        return Kind.SERIES
    return Kind.FILM if record.duration_minutes is not None and record.duration_minutes >= 60 else None


def profile_of(settings: Settings) -> Profile:
    """Return the current profile, with its weights and thresholds."""
    thresholds = Thresholds(
        confirm=settings.confirm_score,
        review=settings.review_score,
        lead=settings.lead_score,
    )
    return make_profile(settings.match_profile, weights=settings.weights, thresholds=thresholds)
