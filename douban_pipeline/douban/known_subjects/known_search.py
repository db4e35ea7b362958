"""Searches the known subjects for a video; the result is a search answer that needs no request.

An empty answer proves nothing.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from douban_pipeline.core.ui.presentation import subject_address
from douban_pipeline.douban.known_subjects.subject_files import NamedSubject
from douban_pipeline.douban.sources.search import Hit, SearchAnswer
from douban_pipeline.matching import Video, suggest_queries

PROVIDER = "known_subjects"
"""Name of this source of candidates in verdicts."""
MOST_HITS = 20

if TYPE_CHECKING:
    from douban_pipeline.douban.known_subjects.name_index import NameIndex

_LOG = logging.getLogger(__name__)
_DAMAGED = (sqlite3.Error, LookupError, TypeError, ValueError)
"""What searching a damaged file may raise."""


@dataclass(frozen=True, slots=True)
class KnownSubjects:
    """Subjects that are found without a request. Safe to share between threads.

    Attributes:
        indexes: The indexes that are searched.
    """

    indexes: Sequence[NameIndex]

    def search(self, video: Video) -> SearchAnswer:
        """Return the subjects with names similar to a video's, the most similar first; finding none proves nothing."""
        names = (*suggest_queries(video), *video.aliases)
        hits: dict[int, Hit] = {}
        for index in self.indexes:
            try:
                found = index.find(names, year=video.year, limit=MOST_HITS)
            except _DAMAGED as error:
                _LOG.warning("an index of subjects is damaged and not used: %s: %s", type(error).__name__, error)
                continue
            for subject in found:
                hits.setdefault(subject.douban_id, _hit(subject))
        made = min((index.contents.built_at for index in self.indexes), default=datetime.now(UTC))
        return SearchAnswer(tuple(hits.values()), snapshots=(), requests=0, fetched_at=made, provider=PROVIDER)


def loaded_index(home: Path) -> Path:
    """Return the path of the index of the files that the owner loaded."""
    return home.absolute() / "subjects" / "loaded.sqlite"


def archived_index(home: Path) -> Path:
    """Return the path of the index of the subjects in the archive."""
    return home.absolute() / "subjects" / "archived.sqlite"


def open_known_subjects(*paths: Path) -> KnownSubjects | None:
    """Return the known subjects of those indexes that exist, None if none does.

    An index that cannot be read is skipped with a warning: it only saves requests.
    """
    # Imported here, so that a run that does not search does not import numpy.
    from douban_pipeline.douban.known_subjects.name_index import IndexUnusable, NameIndex

    indexes = []
    for path in paths:
        try:
            indexes.append(NameIndex(path))
        except FileNotFoundError:
            continue
        except IndexUnusable as error:
            _LOG.warning("%s", error)
    return KnownSubjects(tuple(indexes)) if indexes else None


def _hit(subject: NamedSubject) -> Hit:
    return Hit(
        subject.douban_id,
        title=subject.title,
        url=subject_address(subject.douban_id),
        original_title=subject.original_title,
        year=subject.year,
        kind="tv" if subject.series else "",
        aliases=subject.names,
    )
