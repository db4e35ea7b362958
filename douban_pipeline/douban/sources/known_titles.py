"""Queries about a video, and titles that a search is known to find, which show whether the search is healthy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from random import Random

from sqlalchemy import Engine, Row, select

from douban_pipeline.core.archive import Archive
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import SourceError
from douban_pipeline.douban.sources.search import HttpSearch, KnownTitle, VideoQuery
from douban_pipeline.douban.store.states import ReviewStatus, VerdictState
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.verdict_facts import video_of
from douban_pipeline.matching import Video, cache_key, search_queries, suggest_queries

FAMOUS = ((1292052, "肖申克的救赎", 1994), (1291546, "霸王别姬", 1993), (1291561, "千与千寻", 2001))
"""Ids, titles and years of films that every search for Douban's entries finds; for a library without links yet."""
_LOOKED_AT = 40
"""Newest confirmed verdicts among which a title is chosen."""


def questions_about(video: Video, *, titles_only: bool) -> list[VideoQuery]:
    """Return what to ask about a video.

    Videos of one title and year share the answers to the forms that hold no more than these; a form with people in
    it has no name, so that only the same words share its answer. Each form for the web comes with a title, as long as
    there are any, for those of a chain that know nothing else.
    """
    if not video.title.strip():
        return []
    about = f"{cache_key(video.title)}:{video.year or ''}"
    titles = suggest_queries(video)
    if titles_only:
        return [VideoQuery(about, title=title) for title in titles]
    worded = zip(search_queries(video), chain(("plain", "site"), repeat("")), chain(titles, repeat("")), strict=False)
    return [VideoQuery(about, words, title, form) for words, form, title in worded]


def famous(provider: HttpSearch, rng: Random) -> KnownTitle:
    """Return one of `FAMOUS`, as ``provider`` is asked for it."""
    douban_id, title, year = rng.choice(FAMOUS)
    [question, *_] = questions_about(Video(vod_id=0, title=title, year=year), titles_only=provider.titles_only)
    return KnownTitle(question, douban_id)


@dataclass(frozen=True, slots=True)
class KnownTitles:
    """Titles that a search found before: confirmed videos of the library whose subject its archived answer names.

    Attributes:
        engine: Database of our tables.
        tables: Our tables.
        archive: The archived answers.
        rng: Chooses among them: one that the search has lost since must not speak for all.
    """

    engine: Engine
    tables: OwnTables
    archive: Archive
    rng: Random = field(default_factory=Random)

    def choose(self, provider: HttpSearch) -> KnownTitle:
        """Return a title that ``provider`` found; one of `FAMOUS` while the library has none."""
        verdicts = self._confirmed()
        self.rng.shuffle(verdicts)
        for verdict in verdicts:
            known = self._found_by(provider, verdict)
            if known is not None:
                return known
        return famous(provider, self.rng)

    def _confirmed(self) -> list[Row[tuple[object, ...]]]:
        verdict = self.tables.verdict
        query = (
            select(verdict.c.douban_id, verdict.c.facts, verdict.c.snapshots)
            .where(
                verdict.c.state.in_((VerdictState.APPLIED, VerdictState.DRY_RUN)),
                verdict.c.verdict == ReviewStatus.CONFIRMED,
            )
            .order_by(verdict.c.verdict_id.desc())
            .limit(_LOOKED_AT)
        )
        with reading(self.engine) as connection:
            return list(connection.execute(query))

    def _found_by(self, provider: HttpSearch, verdict: Row[tuple[object, ...]]) -> KnownTitle | None:
        """Return the question by which ``provider`` found the subject of a verdict, if it did."""
        if not verdict.facts:
            return None
        questions = questions_about(video_of(verdict.facts), titles_only=provider.titles_only)
        worded = [item for item in questions if item.wording(titles_only=provider.titles_only)]
        answered = self._answers(provider, verdict.snapshots or (), verdict.douban_id)
        return next(
            (KnownTitle(item, verdict.douban_id) for item in worded if provider.key_of(item)[:500] in answered), None
        )

    def _answers(self, provider: HttpSearch, snapshots: Sequence[int], douban_id: int) -> set[str]:
        """Return the keys of those answers of ``provider`` that name the subject."""
        named = set()
        for snapshot_id in snapshots:
            try:
                snapshot = self.archive.get(snapshot_id)
                if snapshot.source != provider.name:
                    continue
                hits = provider.parse(snapshot.body).hits
            except (KeyError, SourceError):
                continue  # dropped since, or of a form that is no longer read
            if any(hit.douban_id == douban_id for hit in hits):
                named.add(snapshot.request_key)
        return named
