"""Replaces the network by a corpus of subjects: a search by title, and Douban's answers by id.

Both return answers in the sources' formats, which the production parsers read.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from douban_pipeline.demo.stand_ins.title_index import TitleIndex
from douban_pipeline.douban.known_subjects.known_search import KnownSubjects
from douban_pipeline.douban.sources.douban_php import SubjectAnswer, SubjectRecord, parse_subject
from douban_pipeline.douban.sources.errors import SubjectMissing
from douban_pipeline.douban.sources.search import SearchAnswer, VideoQuery
from douban_pipeline.douban.sources.search_providers import parse_searxng, parse_suggestions
from douban_pipeline.matching import Video
from douban_pipeline_tests.tools.evaluate.labelled_rows import CorpusSubject


class SearchKind(enum.StrEnum):
    """Kind of search.

    Attributes:
        SUGGESTIONS: An index of titles that returns titles, years and episodes of up to twenty subjects.
        SIX: The same, of up to six.
        WEB: A web search that returns titles only, of up to twenty pages.
    """

    SUGGESTIONS = "suggestions"
    SIX = "six"
    WEB = "web"


PAGE = 20
"""Most hits of one answer."""

_PAGES = {SearchKind.SIX: 6}
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


class LocalSearch:
    """Finds subjects by title, with the data that its kind of search returns.

    Attributes:
        hidden: A subject that is left out of the results.
    """

    name = "corpus"

    def __init__(self, corpus: Mapping[int, CorpusSubject], kind: SearchKind = SearchKind.SUGGESTIONS) -> None:
        """Index the titles of ``corpus``."""
        self._corpus = corpus
        self._kind = kind
        self._page = _PAGES.get(kind, PAGE)
        self.hidden: int | None = None
        self._index = TitleIndex(
            [
                {
                    "id": douban_id,
                    "title": subject.record.title,
                    "original_title": subject.record.original_title,
                    "aka": subject.record.aliases,
                    "year": subject.record.year,
                }
                for douban_id, subject in corpus.items()
            ]
        )

    @property
    def titles_only(self) -> bool:
        """Whether it is an index of titles."""
        return self._kind is not SearchKind.WEB

    def search(self, question: VideoQuery, *, max_age: timedelta | None) -> SearchAnswer:
        """See `SearchProvider.search`; nothing is cached, so that every request is counted."""
        del max_age
        asked = question.wording(titles_only=self.titles_only)
        ids = [int(each["id"]) for each in self._index.find(asked, self._page + 1)]
        found = [self._corpus[douban_id] for douban_id in ids if douban_id != self.hidden][: self._page]
        named = [(subject.record, subject.kind) for subject in found]
        parsed = parse_suggestions(suggestions_body(named)) if self.titles_only else parse_searxng(searxng_body(named))
        full = len(parsed.hits) == self._page
        return SearchAnswer(parsed.hits, (0,), 1, _NEVER, self.name, full=full, of_titles=self.titles_only)


@dataclass(frozen=True, slots=True)
class KnownButOne(KnownSubjects):
    """Subjects that are found without a request, except one.

    Attributes:
        hidden: The subject that is left out.
    """

    hidden: int | None = None

    def search(self, video: Video) -> SearchAnswer:
        """See `KnownSubjects.search`."""
        answer = KnownSubjects.search(self, video)
        return replace(answer, hits=tuple(hit for hit in answer.hits if hit.douban_id != self.hidden))


class LocalDouban:
    """Answers for subjects of the corpus."""

    def __init__(self, corpus: Mapping[int, CorpusSubject]) -> None:
        """Answer from ``corpus``."""
        self._corpus = corpus
        self._parsed: dict[int, SubjectRecord] = {}

    def subject(self, douban_id: int, *, max_age: timedelta | None = None) -> SubjectAnswer:
        """See `DoubanClient.subject`; the snapshot id is the subject's own."""
        del max_age
        return SubjectAnswer(self.record(douban_id), douban_id, False, _NEVER)

    def record(self, douban_id: int) -> SubjectRecord:
        """Return a subject as parsed from an answer.

        Raises:
            SubjectMissing: The corpus does not have it.
        """
        if douban_id not in self._corpus:
            raise SubjectMissing("corpus", "no such subject")
        if douban_id not in self._parsed:
            self._parsed[douban_id] = parse_subject(subject_body(self._corpus[douban_id].record), douban_id)
        return self._parsed[douban_id]


# --- answers in the sources' formats ----------------------------------------------------------------------------------


def subject_body(record: SubjectRecord) -> bytes:
    """Return an answer of douban.php for a subject: JSONP, every value a string, lists joined by separators."""
    data = {
        "vod_name": record.title,
        "vod_original_title": record.original_title,
        "vod_sub": " / ".join(record.aliases),
        "vod_year": _text(record.year),
        "vod_pubdate": ",".join(record.release_dates),
        "vod_area": ",".join(record.regions),
        "vod_lang": ",".join(record.languages),
        "vod_class": ",".join(record.genres),
        "vod_director": ",".join(record.directors),
        "vod_actor": ",".join(record.actors),
        "vod_duration": f"{record.duration_minutes}分钟" if record.duration_minutes else "",
        "vod_total": _text(record.episodes),
        "vod_douban_score": _text(record.rating),
        "vod_douban_id": str(record.douban_id),
        "vod_reurl": _subject_url(record.douban_id),
    }
    answer = json.dumps({"code": "1", "msg": "ok", "data": data}, ensure_ascii=False)
    return f"callback({answer});".encode()


def suggestions_body(subjects: Iterable[tuple[SubjectRecord, str]]) -> bytes:
    """Return an answer of Douban's suggestions: subjects with their kinds, titles, years and episodes."""
    found: list[dict[str, Any]] = [
        {
            "id": str(record.douban_id),
            "title": record.title,
            "sub_title": record.original_title,
            # Douban's type is "movie" for everything except some series.
            "type": "tv" if kind == "tv" else "movie",
            "url": f"{_subject_url(record.douban_id)}?suggest=x",
            "year": _text(record.year),
            "episode": _text(record.episodes) if kind == "tv" or (record.episodes or 0) > 1 else "",
        }
        for record, kind in subjects
    ]
    return json.dumps(found, ensure_ascii=False).encode()


def searxng_body(subjects: Iterable[tuple[SubjectRecord, str]]) -> bytes:
    """Return an answer of SearXNG: pages of the subjects with their titles only."""
    results = [
        {"url": _subject_url(record.douban_id), "title": f"{record.title} (豆瓣)", "content": ""}
        for record, _ in subjects
    ]
    return json.dumps({"query": "", "results": results, "unresponsive_engines": []}, ensure_ascii=False).encode()


def _subject_url(douban_id: int) -> str:
    """Return the address of a subject's page."""
    return f"https://movie.douban.com/subject/{douban_id}/"


def _text(value: float | None) -> str:
    return "" if value is None else str(value)
