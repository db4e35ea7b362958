"""Looking up subjects at Douban for a reviewer: by words, or one by its id, compared with the video like a candidate.

Both go through the gates of their sources, before what automation queued there; what the archive holds costs no call.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import GateClosed, SourceError
from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.douban.chain.match.descriptions import described_videos
from douban_pipeline.douban.match_inputs import glimpsed_facts, profile_of
from douban_pipeline.douban.pace import SUBJECT_CACHE_AGE
from douban_pipeline.douban.review.records.snapshot import ReviewCandidate
from douban_pipeline.douban.review.worklist.completion import with_details
from douban_pipeline.douban.review.worklist.queue import entries_of, places_of
from douban_pipeline.douban.review.worklist.sheet import candidate_of, plain
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.errors import SubjectMissing
from douban_pipeline.douban.sources.known_titles import questions_about
from douban_pipeline.matching import Video

_logger = logging.getLogger(__name__)

MOST_HITS = 10
"""Subjects that a search by words returns: about as many as a provider gives."""

_QUESTIONS = 2
"""Wordings that are tried until something is found."""


class NotLookedUp(Exception):  # noqa: N818 (it says what happened)
    """A subject could not be looked up; the message is a sentence in Chinese.

    Attributes:
        missing: Whether there is no such subject, or the video does not wait; otherwise trying later may help.
    """

    def __init__(self, sentence: str, *, missing: bool = False) -> None:
        super().__init__(sentence)
        self.missing = missing


class Lookup:
    """Looks up subjects for the served sheet. Safe to share between threads.

    Args:
        services: Sources, gates, archive and settings.
    """

    def __init__(self, services: Services) -> None:
        self._services = services

    def by_words(self, words: str) -> list[dict[str, Any]]:
        """Return up to `MOST_HITS` subjects that a search names: ``id``, ``title``, ``year`` and ``tv``.

        Raises:
            NotLookedUp: The search cannot be asked now.
        """
        services = self._services
        search = services.search
        questions = questions_about(Video(vod_id=0, title=words), titles_only=search.titles_only)
        with self._told():
            for question in islice(questions, _QUESTIONS):
                answer = search.search(replace(question, urgent=True), max_age=services.settings.search_cache_age)
                if answer.hits:
                    break
            else:
                return []
        found = [(hit, glimpsed_facts(hit)) for hit in answer.hits[:MOST_HITS]]
        return [
            {"id": hit.douban_id, "title": plain(facts.title), "year": hit.year, "tv": hit.kind == "tv"}
            for hit, facts in found
        ]

    def by_id(self, vod_id: int, douban_id: int) -> dict[str, Any]:
        """Return a subject in the form of a card's candidates, compared with the video by the current profile.

        Raises:
            NotLookedUp: Douban has no such subject or cannot be asked now, or the video does not wait.
        """
        services = self._services
        with reading(services.engine) as connection:
            places, _ = places_of(services, connection, [vod_id])
            entry = entries_of(services, connection, places).get(vod_id)
            row = services.cms.rows(connection, [vod_id]).get(vod_id)
        if entry is None or row is None:
            raise NotLookedUp("这部影片已不在待审核之列", missing=True)
        described = described_videos(services, {vod_id: row}, warn=_logger.warning)[vod_id]
        with self._told():
            record = services.douban.subject(douban_id, max_age=SUBJECT_CACHE_AGE, urgent=True).record
        named = ReviewCandidate(entry.verdict_id, 0, douban_id, "", None, 0.0, (), {}, (), {}, fetched=False)
        return candidate_of(services, entry, with_details(named, described, record, profile_of(services.settings)))

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Raise failures of sources as sentences for the reviewer."""
        try:
            yield
        except SubjectMissing as error:
            raise NotLookedUp("豆瓣没有这个条目", missing=True) from error
        except GateClosed as error:
            until = f"，预计 {local_time(error.until, self._services.zone)} 恢复" if error.until else ""
            raise NotLookedUp(f"{error.source} 此刻不能查询（{failure_text(error.reason)}）{until}") from error
        except SourceError as error:
            raise NotLookedUp(f"{error.source} 没有答复：{failure_text(error.reason)}") from error
