"""Links the library's videos to TMDB's titles: searched, judged by the same gate as Douban's; doubts go to a person."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from psycopg import DataError
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.cms.maccms import inspect_cms, live_condition
from douban_pipeline.core.database import reading
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.errors import NotFound, ProblemsError, SourceError
from douban_pipeline.matching import Kind, Status, Subject, Verdict, Video, judge
from douban_pipeline.matching.profiles import make_profile
from douban_pipeline.matching.queries import suggest_queries
from douban_pipeline.matching.site_videos import video_facts
from douban_pipeline.tmdb.clients.api import TmdbClient
from douban_pipeline.tmdb.refresh import ENDS, MOST_FAILED
from douban_pipeline.tmdb.services import TmdbServices
from douban_pipeline.tmdb.store import links
from douban_pipeline.tmdb.store.links import Match
from douban_pipeline.tmdb.subjects import key_of_subject, subjects_of
from douban_pipeline.tmdb.types import EntityKey, EntityType, PayloadError

_logger = logging.getLogger(__name__)

LOOK_AGAIN_DAYS = 30
"""After this time a video without a link is searched again."""
_MOST_DETAILS = 5
"""Maximum number of candidates of one video whose details are fetched."""
_MOST_SHOWN = 5
_STATES = {Status.CONFIRMED: "confirmed", Status.REVIEW: "review", Status.NOT_FOUND: "none"}
_PROFILE = make_profile("calibrated")


@dataclass(slots=True)
class LinkReport:
    """Result of a run: videos by state, those whose search failed, and why it ended early."""

    states: Counter[str] = field(default_factory=Counter)
    failed: int = 0
    ended: str = ""


def link_videos(services: TmdbServices, client: TmdbClient, *, most: int) -> LinkReport:
    """Search for new videos, then again for those without a link, and store the results.

    Returns:
        What was found. Where the library cannot be read, nothing is, and the report says why.
    """
    report, failures = LinkReport(), 0
    after = services.store.run(links.highest)
    before = services.days_ago(LOOK_AGAIN_DAYS)
    again = services.store.run(lambda connection: links.to_look_at_again(connection, before, most))
    try:
        videos = _library_videos(services, after, again, most)
    except (DatabaseError, SQLAlchemyError) as error:
        reason = str(getattr(error, "orig", None) or error).splitlines()[0][:300]
        report.ended = f"无法读取影视库（DOUBAN_PIPELINE_DATABASE_URL）：{reason}"
        return report
    for video in videos:
        try:
            match = look_for(services, client, video)
        except SourceError as error:
            report.failed += 1
            failures += 1
            if not isinstance(error, ENDS):
                unknown = Match(video.vod_id, video.title, "none", f"没有查成：{error}")
                services.store.run(partial(links.keep_failed, match=unknown, looked_at=before))
            if isinstance(error, ENDS) or failures >= MOST_FAILED:
                report.ended = str(error)
                break
            continue
        failures = 0
        services.store.run(partial(links.keep, match=match))
        report.states[match.state] += 1
    return report


def look_for(services: TmdbServices, client: TmdbClient, video: Video) -> Match:
    """Return TMDB's match for a video. The candidates' answers are stored, because they were fetched anyway.

    Raises:
        SourceError: A search failed, so that nothing is known about the video.
    """
    keys: dict[EntityKey, None] = {}
    crowded = False
    for query in suggest_queries(video):
        for entity in _types(video):
            page = client.search(entity, query)
            crowded = crowded or page.total_pages > 1
            keys.update(dict.fromkeys(EntityKey(entity, int(item["id"])) for item in page.results[:_MOST_DETAILS]))
        if len(keys) >= _MOST_DETAILS:
            break
    subjects: list[Subject] = []
    for key in [*keys][: 2 * _MOST_DETAILS]:
        try:
            answer = client.details(key)
        except NotFound:
            continue
        try:
            services.store.persist_payloads([answer])
        except (PayloadError, DataError) as error:
            _logger.warning("TMDB's answer about %s cannot be stored: %s", key, error)
        subjects += subjects_of(key.type, answer.raw)
    return match_of(video, judge(video, subjects, profile=_PROFILE, crowded=crowded))


def match_of(video: Video, verdict: Verdict) -> Match:
    """Return a verdict in the form of the store."""
    shown = [
        {
            "media_type": key.type.value,
            "tmdb_id": key.tmdb_id,
            "season": season,
            "title": each.subject.title,
            "year": each.subject.year,
            "score": round(each.score, 1),
            "conflicts": list(each.comparison.conflicts),
        }
        for each in verdict.candidates[:_MOST_SHOWN]
        for key, season in [key_of_subject(each.subject.douban_id)]
    ]
    state = _STATES[verdict.status]
    best = key_of_subject(verdict.candidates[0].subject.douban_id)[0] if verdict.candidates else None
    if state == "none":
        return Match(video.vod_id, video.title, state, verdict.explanation, candidates=shown)
    return Match(video.vod_id, video.title, state, verdict.explanation, best, verdict.score, shown)


@dataclass(frozen=True, slots=True)
class LinkDecision:
    """A person's decision about a video; without a title, that TMDB does not have it."""

    vod_id: int
    best: EntityKey | None


def decide(services: TmdbServices, decisions: Sequence[LinkDecision], reviewer: str, note: str) -> None:
    """Store a person's decisions; no run changes them.

    Raises:
        ProblemsError: A video was never searched; nothing is stored.
    """
    ids = [each.vod_id for each in decisions]
    titles = services.store.run(lambda connection: links.known(connection, ids))
    if unknown := sorted(set(ids) - titles.keys()):
        raise ProblemsError([f"视频 {each} 没有匹配记录，请先运行 tmdb_matches" for each in unknown])
    reason = f"{reviewer} 决定{f'：{note}' if note else ''}"

    def work(connection: Any) -> None:
        for each in decisions:
            state = "confirmed" if each.best else "none"
            match = Match(each.vod_id, titles[each.vod_id], state, reason, each.best)
            links.keep(connection, match, decided_by=reviewer)

    services.store.run(work)


def _types(video: Video) -> tuple[EntityType, ...]:
    """Return the types in search order; sites often use the wrong category, so the other type comes second."""
    if video.kind is Kind.FILM:
        return EntityType.MOVIE, EntityType.TV
    return EntityType.TV, EntityType.MOVIE


def _library_videos(services: TmdbServices, after: int, again: Sequence[int], most: int) -> list[Video]:
    """Return new videos, those with an id above ``after``, then those of ``again``: at most ``most`` in all.

    Raises:
        DatabaseError: The database cannot be used, or is not the CMS's.
        SQLAlchemyError: It does not answer.
    """
    cms = inspect_cms(services.library, services.settings.table_prefix)
    with reading(services.library) as connection:
        categories = cms.categories(connection, services.settings.category_kinds)
        query = select(cms.vod).where(cms.vod.c.vod_id > after, live_condition(cms)).order_by(cms.vod.c.vod_id)
        found: list[Mapping[Any, Any]] = [*connection.execute(query.limit(most)).mappings()]
        left = again[: most - len(found)]
        rows = cms.rows(connection, left) if left else {}
    if gone := [vod_id for vod_id in left if vod_id not in rows]:
        # Otherwise they would remain the first ones, and as many as one run takes would let no other follow.
        services.store.run(lambda connection: links.postpone(connection, gone))
    found += [rows[vod_id] for vod_id in left if vod_id in rows]
    return [video_facts(row, cms, categories) for row in found]
