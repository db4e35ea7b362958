"""The subjects in Douban's archived answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from douban_pipeline.core.archive import Archive
from douban_pipeline.core.errors import SourceError
from douban_pipeline.douban.known_subjects.subject_files import NamedSubject
from douban_pipeline.douban.sources.douban_php import SOURCE, SubjectRecord, id_of_key, parse_subject

if TYPE_CHECKING:
    from douban_pipeline.douban.known_subjects.name_index import IndexContents

SOURCE_NAME = "archive"
"""Name of the archive as a source in the index."""


def index_archived(archive: Archive, path: Path) -> IndexContents:
    """Index every subject in the archive; runs that begin later find them without a request.

    Raises:
        OSError: The index cannot be written; the previous one is kept.
        sqlite3.Error: SQLite cannot write the index; the previous one is kept.
    """
    # Imported here, so that loading the job's definition does not import numpy.
    from douban_pipeline.douban.known_subjects.name_index import build

    counted: Counter[str] = Counter()

    def subjects() -> Iterator[NamedSubject]:
        for subject in archived_subjects(archive):
            counted[SOURCE_NAME] += 1
            yield subject

    return build(path, subjects(), counted)


def archived_subjects(archive: Archive) -> Iterator[NamedSubject]:
    """Yield every subject in the archive once, as its newest answer describes it.

    Answers without a subject (an error, a wall, a deleted subject) are skipped.
    """
    newest: dict[int, NamedSubject] = {}
    for batch in archive.read(SOURCE):
        for answer in batch:
            douban_id = id_of_key(answer.request_key)
            if douban_id is None:
                continue
            try:
                record = parse_subject(answer.body, asked_id=douban_id)
            except SourceError:
                continue
            if record.title:
                newest[douban_id] = _named(record)
    yield from newest.values()


def _named(record: SubjectRecord) -> NamedSubject:
    names = tuple(dict.fromkeys(name for name in record.aliases if name not in (record.title, record.original_title)))
    original = record.original_title if record.original_title != record.title else ""
    return NamedSubject(record.douban_id, record.title, original, names, record.year, bool(record.episodes))
