"""The library's videos as they are searched for and judged: as the site describes them, with what TMDB adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, func, select

from douban_pipeline.core.database import chunks
from douban_pipeline.douban.evidence.added_facts import Added, TitleFacts, add_evidence, with_added
from douban_pipeline.douban.evidence.tmdb_titles import TmdbUnreachableError
from douban_pipeline.douban.services import Services
from douban_pipeline.matching import Video
from douban_pipeline.matching.site_videos import video_facts

_LONGEST_EXPLANATION = 500
_NOTHING: Mapping[int, Added] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class DescribedVideo:
    """A video as the matcher sees it, and what of that another source added; None where it is the site's alone."""

    video: Video
    added: Added | None = None

    def noted(self, explanation: str) -> str:
        """Return an explanation with what was added; an empty one stays so."""
        if self.added is None or not explanation:
            return explanation
        note = self.added.sentence
        return explanation[: max(0, _LONGEST_EXPLANATION - len(note))] + note

    def shown(self, text: str) -> str:
        """Return a comparison's text without what another source says."""
        return text if self.added is None else self.added.without_values(text)


def described_videos(
    services: Services,
    rows: Mapping[int, Mapping[Any, Any]],
    *,
    warn: Callable[[str], None],
    earlier: Mapping[int, Added] = _NOTHING,
) -> dict[int, DescribedVideo]:
    """Return the videos of CMS rows by id, with what TMDB adds where the settings want that.

    Args:
        services: The site and its settings.
        rows: The CMS rows by id.
        warn: Called once a process where TMDB's database cannot be read; its titles then add nothing.
        earlier: What was added to some when they were judged before, which then holds on: that a database is away
            speaks against no link. Of what expired since, only that there was something.
    """
    videos = {vod_id: video_facts(row, services.cms, services.categories) for vod_id, row in rows.items()}
    titles = services.tmdb_titles
    if titles is None or not videos:
        return {vod_id: DescribedVideo(video) for vod_id, video in videos.items()}
    try:
        facts = titles.of([*videos])
    except TmdbUnreachableError as error:
        if not error.again:
            warn(f"matching goes on without TMDB's titles: {error}")
        return {vod_id: _again(video, earlier.get(vod_id)) for vod_id, video in videos.items()}
    return {vod_id: _with(video, facts.get(vod_id)) for vod_id, video in videos.items()}


def earlier_evidence(services: Services, connection: Connection, vod_ids: Sequence[int]) -> dict[int, Added]:
    """Return what was added to videos when they were last judged, for those to which something was."""
    verdict = services.tables.verdict
    found: dict[int, Added] = {}
    for some in chunks(vod_ids):
        newest = select(func.max(verdict.c.verdict_id)).where(verdict.c.vod_id.in_(some)).group_by(verdict.c.vod_id)
        newest_ids = connection.execute(newest).scalars().all()
        query = select(verdict.c.vod_id, verdict.c.facts).where(verdict.c.verdict_id.in_(newest_ids))
        for vod_id, facts in connection.execute(query):
            added = Added.of_facts(facts)
            if added is not None:
                found[vod_id] = added
    return found


def confirmed_subject(services: Services, connection: Connection, vod_id: int) -> int | None:
    """Return the subject that a video's newest verdict confirms; 0 for none, None without a verdict."""
    verdict = services.tables.verdict
    query = select(verdict.c.douban_id).where(verdict.c.vod_id == vod_id)
    return connection.execute(query.order_by(verdict.c.verdict_id.desc()).limit(1)).scalar()


def _with(video: Video, facts: TitleFacts | None) -> DescribedVideo:
    return DescribedVideo(video) if facts is None else DescribedVideo(*add_evidence(video, facts))


def _again(video: Video, added: Added | None) -> DescribedVideo:
    return DescribedVideo(video) if added is None else DescribedVideo(with_added(video, added), added)
