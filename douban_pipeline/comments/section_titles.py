"""Sets titles of video sections from Douban: a section whose video has a confirmed link gets the subject's title.

The library's tables are the interface, and are only read: `…douban_video` holds the confirmed links and the time of
each video's last sync, `…douban_subject` the titles of subjects. The cost of a pass depends on what changed: it reads
the sections created and the videos synced since the last pass, each from a stored mark. Links that are withdrawn
without a sync (by a person, or in the CMS) are found by a rotation over all sections, `ROTATION` of them per pass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import BigInteger, Engine, Select, String, TableClause, and_, column, func, or_, select, table
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.comments.store.marks import Mark, read_mark
from douban_pipeline.comments.store.sections import (
    TitleChange,
    TitledSection,
    count_after,
    sections_after,
    sections_of_videos,
    store_titles,
)
from douban_pipeline.comments.types import SectionType
from douban_pipeline.core.column_types import UtcDateTime
from douban_pipeline.core.database import chunks, reading, run_transaction
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.settings_base import BASE_PREFIX

MOST = 5_000
"""Maximum number of new sections, and of synced videos, that one pass reads."""
ROTATION = 500
"""Number of sections that one pass checks again, whether anything changed or not."""
OVERLAP = timedelta(hours=1)
"""How far before a pass syncs are read again: a sync is stored some time after its timestamp."""
VIDEO_COLUMNS = ("vod_id", "vod_douban_id", "douban_review_status", "douban_last_sync_at")
SUBJECT_COLUMNS = ("douban_id", "title")
"""Columns that are read from the library's tables."""

_PAGE = 500
_SHOWN = 30
_CONFIRMED = "CONFIRMED"
_NEW, _SYNCED, _ROTATING = "titles_new", "titles_synced", "titles_rotation"


class LibraryUnreadableError(RuntimeError):
    """The library's tables cannot be read; the message says why, without the password."""


@dataclass(frozen=True, slots=True)
class ConfirmedLink:
    """A confirmed link of a video.

    Attributes:
        douban_id: Id of the subject.
        title: Title of the subject on Douban; empty where no sync has recorded it yet.
    """

    douban_id: int
    title: str


@dataclass(slots=True)
class TitleReport:
    """Result of a pass.

    Attributes:
        given: Sections without a title that got one.
        changed: Sections whose title changed with Douban's title or with the link.
        withdrawn: Sections whose title was removed with the link.
        sections: Sections compared.
        left: New sections and synced videos left for the next pass.
        problem: Why the library could not be read completely; empty if it was.
        rows: The first changes.
    """

    given: int = 0
    changed: int = 0
    withdrawn: int = 0
    sections: int = 0
    left: int = 0
    problem: str = ""
    rows: list[TitleChange] = field(default_factory=list)

    def add(self, compared: int, changes: Sequence[TitleChange]) -> None:
        """Add the result for some sections."""
        self.sections += compared
        self.withdrawn += sum(not change.title for change in changes)
        self.changed += sum(bool(change.title and change.section.title) for change in changes)
        self.given += sum(bool(change.title and not change.section.title) for change in changes)
        self.rows = [*self.rows, *changes][:_SHOWN]


def wanted_title(section: TitledSection, link: ConfirmedLink | None) -> TitleChange | None:
    """Return the change that gives a section its wanted title; None where the title stays.

    A title set by the site stays. A title from Douban is removed with its link: without a confirmed link, or with one
    to another subject whose title is not known yet, the section has none.
    """
    if section.given_by_site:
        return None
    title, douban_id = "", 0
    if link is not None and link.title:
        title, douban_id = link.title, link.douban_id
    elif link is not None and link.douban_id == section.douban_id:
        return None
    same = (title, douban_id) == (section.title, section.douban_id)
    return None if same else TitleChange(section, title, douban_id)


def library_tables(prefix: str) -> tuple[TableClause, TableClause]:
    """Return the library's tables of videos and subjects, with the columns that are read."""
    types = {"douban_review_status": String, "douban_last_sync_at": UtcDateTime, "title": String}
    video, subject = (
        table(f"{prefix}douban_{name}", *(column(each, types.get(each, BigInteger)) for each in columns))
        for name, columns in (("video", VIDEO_COLUMNS), ("subject", SUBJECT_COLUMNS))
    )
    return video, subject


class LibraryLinks:
    """Reads confirmed links from the library's tables.

    Args:
        engine: Database of the library.
        prefix: Prefix of its tables.
    """

    def __init__(self, engine: Engine, prefix: str) -> None:
        self._engine = engine
        self._video, self._subject = library_tables(prefix)

    def of(self, vod_ids: Collection[int]) -> dict[int, ConfirmedLink]:
        """Return the confirmed links of videos, by id; videos without one are missing.

        Raises:
            LibraryUnreadableError: The database cannot be read.
        """
        video, subject = self._video.c, self._subject.c
        query = (
            select(video.vod_id, video.vod_douban_id, func.coalesce(subject.title, ""))
            .join_from(self._video, self._subject, subject.douban_id == video.vod_douban_id, isouter=True)
            .where(video.douban_review_status == _CONFIRMED, video.vod_douban_id > 0)
        )
        found: dict[int, ConfirmedLink] = {}
        for some in chunks(sorted(vod_ids)):
            for vod_id, douban_id, title in self._rows(query.where(video.vod_id.in_(some))):
                found[vod_id] = ConfirmedLink(douban_id, title)
        return found

    def synced_after(self, mark: Mark, most: int) -> list[tuple[int, datetime]]:
        """Return the videos synced after a mark with the time of their sync, earliest first.

        Raises:
            LibraryUnreadableError: The database cannot be read.
        """
        video = self._video.c
        query = select(video.vod_id, video.douban_last_sync_at).where(self._after(mark))
        return self._rows(query.order_by(video.douban_last_sync_at, video.vod_id).limit(most))

    def count_after(self, mark: Mark) -> int:
        """Return the number of videos synced after a mark.

        Raises:
            LibraryUnreadableError: The database cannot be read.
        """
        [(found,)] = self._rows(select(func.count()).select_from(self._video).where(self._after(mark)))
        return int(found)

    def _after(self, mark: Mark) -> Any:
        at, vod_id = self._video.c.douban_last_sync_at, self._video.c.vod_id
        return and_(at >= mark.at, or_(at > mark.at, vod_id > mark.number))

    def _rows(self, query: Select[Any]) -> list[Any]:
        try:
            with reading(self._engine) as connection:
                return [tuple(row) for row in connection.execute(query)]
        except SQLAlchemyError as error:
            raise _unreadable(error) from error


def open_links(services: CommentsServices) -> LibraryLinks | None:
    """Return the reader of the library's links; None where no library is configured or it has no such tables.

    Raises:
        LibraryUnreadableError: The database cannot be used, or does not answer.
    """
    settings = services.settings
    url = settings.library_url.get_secret_value()
    if not url:
        return None
    _, subject = library_tables(settings.table_prefix)
    try:
        engine = services.others.engine_with(subject, url, setting=f"{BASE_PREFIX}DATABASE_URL")
    except (DatabaseError, SQLAlchemyError) as error:
        raise _unreadable(error) from error
    return None if engine is None else LibraryLinks(engine, settings.table_prefix)


def _unreadable(error: Exception) -> LibraryUnreadableError:
    reason = str(getattr(error, "orig", None) or error).strip()[:300]
    return LibraryUnreadableError(f"无法读取影视库（{BASE_PREFIX}DATABASE_URL），评论区的片名留待下次：{reason}")


def give_titles(services: CommentsServices) -> TitleReport | None:
    """Update the titles of sections from the library; run one pass.

    Where the library cannot be read, the report says why, and the sections that were not reached stay as they are.

    Returns:
        The result; None where the setting is off, no library is configured, or it has no Douban tables.
    """
    if not services.settings.titles_from_douban:
        return None
    report = TitleReport()
    try:
        links = open_links(services)
        if links is None:
            return None
        for part in (_new_sections, _synced_videos, _rotation):
            for sections, mark in part(services, links, report):
                _bring_up_to_date(services, links, sections, mark, report)
    except LibraryUnreadableError as error:
        report.problem = str(error)
    return report


_Parts = Iterator[tuple[Sequence[TitledSection], Mark]]


def _new_sections(services: CommentsServices, links: LibraryLinks, report: TitleReport) -> _Parts:
    """Yield the sections created since the last pass, with the mark to store once they are updated."""
    mark = _mark(services, _NEW) or Mark(_NEW)
    for _ in range(MOST // _PAGE):
        with reading(services.engine) as connection:
            sections = sections_after(connection, mark.number, _PAGE)
        if not sections:
            return
        mark = Mark(_NEW, sections[-1].section_id)
        yield sections, mark
    with reading(services.engine) as connection:
        report.left += count_after(connection, mark.number)


def _synced_videos(services: CommentsServices, links: LibraryLinks, report: TitleReport) -> _Parts:
    """Yield the sections of videos synced since the last pass; the first pass starts `OVERLAP` ago."""
    start = Mark(_SYNCED, at=services.clock.now() - OVERLAP)
    mark = _mark(services, _SYNCED) or start
    for _ in range(MOST // _PAGE):
        synced = links.synced_after(mark, _PAGE)
        if not synced:
            # All syncs were read: the next pass starts `OVERLAP` before this one.
            yield (), start
            return
        vod_id, at = synced[-1]
        mark = Mark(_SYNCED, vod_id, at)
        with reading(services.engine) as connection:
            sections = sections_of_videos(connection, [vod_id for vod_id, _ in synced])
        yield sections, mark
    report.left += links.count_after(mark)


def _rotation(services: CommentsServices, links: LibraryLinks, report: TitleReport) -> _Parts:
    """Yield the next sections of the rotation, which restarts after the last section."""
    mark = _mark(services, _ROTATING) or Mark(_ROTATING)
    with reading(services.engine) as connection:
        sections = sections_after(connection, mark.number, ROTATION)
    last = sections[-1].section_id if len(sections) == ROTATION else 0
    yield sections, Mark(_ROTATING, last)


def _mark(services: CommentsServices, name: str) -> Mark | None:
    with reading(services.engine) as connection:
        return read_mark(connection, name)


def _bring_up_to_date(
    services: CommentsServices,
    links: LibraryLinks,
    sections: Sequence[TitledSection],
    mark: Mark,
    report: TitleReport,
) -> None:
    """Update the titles of sections from their links, and store the mark in the same transaction."""
    compared = [each for each in sections if each.type == SectionType.VIDEO and not each.given_by_site]
    found = links.of({each.object_id for each in compared}) if compared else {}
    wanted = (wanted_title(each, found.get(each.object_id)) for each in compared)
    changes = [change for change in wanted if change is not None]
    now = services.clock.now()
    run_transaction(services.engine, partial(store_titles, changes=changes, mark=mark, now=now))
    report.add(len(compared), changes)
