"""Finding the subjects a video might be, with as few requests as the verdict allows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import zip_longest
from typing import Any

from douban_pipeline.matching import Subject, Video, cache_key, search_queries, suggest_queries
from douban_pipeline.matching.similarity import NEAR_EXACT, match_titles
from douban_pipeline.upstream.douban import DoubanClient
from douban_pipeline.upstream.errors import SourceUnavailable, SubjectMissing
from douban_pipeline.upstream.search import Hit, SearchProvider

_SITE_TAIL = re.compile(r"\s*[-–—_|·(（\[]\s*(?:电影|电视剧|综艺|动画|剧集)?\s*[-–—_|(（]?\s*豆瓣.*$")


@dataclass(frozen=True, slots=True)
class Found:
    """The candidates of one video.

    Attributes:
        subjects: Subject id and the archived answer about it, in the order found.
        passed_over: Ids that were found but not asked about: more than wanted, or named quite differently.
        complete: Whether every question that was asked was answered. A call that fails raises instead.
        snapshots: The search answers that named them.
        requests: Calls made; answers from the archive cost none.
    """

    subjects: tuple[tuple[int, int], ...]
    passed_over: tuple[int, ...]
    complete: bool
    snapshots: tuple[int, ...]
    requests: int

    def to_payload(self) -> dict[str, Any]:
        """Return what the task carries on to the verdict."""
        return {
            "subjects": [list(pair) for pair in self.subjects],
            "passed_over": list(self.passed_over),
            "complete": self.complete,
            "snapshots": list(self.snapshots),
            "requests": self.requests,
        }

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> Found:
        """Read what `to_payload` wrote."""
        return cls(
            tuple((douban_id, snapshot_id) for douban_id, snapshot_id in payload["subjects"]),
            tuple(payload["passed_over"]),
            payload["complete"],
            tuple(payload["snapshots"]),
            payload["requests"],
        )


@dataclass(slots=True)
class _Search:
    hits: dict[int, Hit] = field(default_factory=dict)
    snapshots: list[int] = field(default_factory=list)
    silent: set[str] = field(default_factory=set)
    requests: int = 0


class CandidateFinder:
    """Finds and fetches candidates through one search provider and douban.php.

    Args:
        search: Who finds them.
        douban: Who describes them.
        top_n: How many are asked about at most.
        search_age: Age at which a search is made anew.
        subject_age: Age at which a subject is asked for anew.
        title_floor: Similarity under which a hit cannot win when another is named like the video.
    """

    def __init__(
        self,
        search: SearchProvider,
        douban: DoubanClient,
        *,
        top_n: int,
        search_age: timedelta,
        subject_age: timedelta,
        title_floor: float,
    ) -> None:
        self.search = search
        self.douban = douban
        self.top_n = top_n
        self.search_age = search_age
        self.subject_age = subject_age
        self.title_floor = title_floor

    def find(self, video: Video, *, patience: int = 0) -> Found:
        """Search for ``video`` and fetch what is needed to judge it.

        Args:
            video: The video.
            patience: While above 0, finding nothing although an engine behind the provider kept silent counts as a
                failed call. An engine that is always silent must not keep a verdict off for ever.

        Raises:
            SourceError: A call failed. Nothing may be concluded from the rest.
        """
        found = self._search(video)
        if patience > 0 and found.silent and not found.hits:
            silent = ", ".join(sorted(found.silent))
            raise SourceUnavailable(self.search.name, f"nothing found, but silent engines: {silent}"[:300])
        asked, passed_over = choose(video, list(found.hits.values()), self.top_n, self.title_floor)
        subjects: list[tuple[int, int]] = []
        for douban_id in asked:
            try:
                answer = self.douban.subject(douban_id, max_age=self.subject_age)
            except SubjectMissing:
                # The engine's index is older than Douban; the source itself is well.
                found.requests += 1
                continue
            subjects.append((douban_id, answer.snapshot_id))
            found.requests += not answer.from_cache
        return Found(tuple(subjects), passed_over, True, tuple(found.snapshots), found.requests)

    def _search(self, video: Video) -> _Search:
        found = _Search()
        key = f"{cache_key(video.title)}:{video.year or ''}"
        for form, query in _queries(video, titles_only=self.search.titles_only):
            answer = self.search.search(query, cache_key=key, max_age=self.search_age, form=form)
            found.snapshots.append(answer.snapshot_id)
            found.requests += not answer.from_cache
            found.silent.update(answer.silent)
            for hit in answer.hits:
                found.hits.setdefault(hit.douban_id, hit)
            if any(_likeness(video, hit) >= NEAR_EXACT for hit in found.hits.values()):
                break
        return found


def _queries(video: Video, *, titles_only: bool) -> list[tuple[str, str]]:
    """Return what to ask, each with the name of its form.

    Videos of one title and year share the answers to the forms that hold no more than these; a form with people in
    it has no name, so that only the same words share its answer.
    """
    if titles_only:
        return [("", query) for query in suggest_queries(video)]
    return list(zip_longest(("plain", "site"), search_queries(video), fillvalue=""))


def choose(video: Video, hits: Sequence[Hit], top_n: int, title_floor: float) -> tuple[list[int], tuple[int, ...]]:
    """Return which hits to ask about, and which to pass over.

    Once a hit is named like the video, one that is named quite differently can no longer win, and is not worth a
    request. The engine's order decides among the rest, after those that are named like it.
    """
    likeness = {hit.douban_id: _likeness(video, hit) for hit in hits}
    named_like = any(value >= NEAR_EXACT for value in likeness.values())
    worth = [hit.douban_id for hit in hits if not named_like or likeness[hit.douban_id] >= title_floor]
    worth.sort(key=lambda douban_id: likeness[douban_id] < NEAR_EXACT)
    asked = worth[:top_n]
    return asked, tuple(hit.douban_id for hit in hits if hit.douban_id not in asked)


def _likeness(video: Video, hit: Hit) -> float:
    title = _SITE_TAIL.sub("", hit.title).strip()
    if not title:
        return 0.0
    return match_titles(video, Subject(hit.douban_id, title, year=hit.year)).similarity
