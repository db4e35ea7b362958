"""A corpus of subjects in place of the network: a search that knows titles, and a Douban that answers by id."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from douban_pipeline.douban.sources.douban_php import SubjectAnswer
from douban_pipeline.douban.sources.errors import SubjectMissing
from douban_pipeline.douban.sources.search import Hit, SearchAnswer, VideoQuery
from douban_pipeline.evaluation.formats import CorpusSubject
from douban_pipeline.evaluation.title_index import TitleIndex

PAGE = 20
"""Hits of one answer."""

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


class LocalSearch:
    """Finds subjects by title, and returns for each what Douban's suggestions contain.

    Attributes:
        hidden: A subject that it does not know for now.
    """

    name = "corpus"
    titles_only = True

    def __init__(self, corpus: Mapping[int, CorpusSubject]) -> None:
        """Index the titles of ``corpus``."""
        self._corpus = corpus
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

    def search(self, question: VideoQuery, *, max_age: timedelta | None) -> SearchAnswer:
        """See `SearchProvider.search`; nothing is cached, so that every question counts."""
        del max_age
        found = [int(each["id"]) for each in self._index.find(question.title, PAGE + 1)]
        hits = tuple(self._hit(douban_id) for douban_id in found if douban_id != self.hidden)[:PAGE]
        full = len(hits) == PAGE
        return SearchAnswer(hits, (0,), 1, _NEVER, self.name, full=full, of_titles=True)

    def _hit(self, douban_id: int) -> Hit:
        subject = self._corpus[douban_id]
        record = subject.record
        return Hit(
            douban_id,
            title=record.title,
            url=f"https://movie.douban.com/subject/{douban_id}/",
            original_title=record.original_title,
            year=record.year,
            # As Douban's suggestions: "movie" is said of everything, "tv" only of what has episodes.
            kind="tv" if subject.kind == "tv" else "",
            episodes=record.episodes,
        )


class LocalDouban:
    """Answers for subjects of the corpus."""

    def __init__(self, corpus: Mapping[int, CorpusSubject]) -> None:
        """Answer from ``corpus``."""
        self._corpus = corpus

    def subject(self, douban_id: int, *, max_age: timedelta | None = None) -> SubjectAnswer:
        """See `DoubanClient.subject`; the snapshot id is the subject's own."""
        del max_age
        found = self._corpus.get(douban_id)
        if found is None:
            raise SubjectMissing("corpus", "no such subject")
        return SubjectAnswer(found.record, douban_id, False, _NEVER)
