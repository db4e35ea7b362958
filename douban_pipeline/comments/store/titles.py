"""Stores titles of sections, with optimistic locking."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Select, bindparam, func, select, update

from douban_pipeline.comments.store import tables
from douban_pipeline.comments.store.marks import Mark, store_mark
from douban_pipeline.comments.types import SectionType


@dataclass(frozen=True, slots=True)
class TitledSection:
    """A section and its title.

    Attributes:
        section_id: Id of the section.
        type: Its type, see `SectionType`.
        object_id: Id of the object that it belongs to.
        title: Its title; empty for none.
        douban_id: The Douban subject whose title it is; 0 where the site set the title, or there is none.
    """

    section_id: int
    type: int
    object_id: int
    title: str
    douban_id: int

    @property
    def given_by_site(self) -> bool:
        """Whether the site set the title."""
        return bool(self.title) and not self.douban_id


@dataclass(frozen=True, slots=True)
class TitleChange:
    """A new title of a section: that of a Douban subject, or an empty one without a subject."""

    section: TitledSection
    title: str
    douban_id: int


def sections_after(connection: Connection, section_id: int, most: int) -> list[TitledSection]:
    """Return the sections with greater ids, of any type, by id."""
    query = _sections().where(tables.section.c.section_id > section_id).order_by(tables.section.c.section_id)
    return [TitledSection(*row) for row in connection.execute(query.limit(most)).tuples()]


def sections_of_videos(connection: Connection, vod_ids: Collection[int]) -> list[TitledSection]:
    """Return the sections of the given videos."""
    section = tables.section.c
    query = _sections().where(section.type == SectionType.VIDEO, section.object_id.in_(sorted(vod_ids)))
    return [TitledSection(*row) for row in connection.execute(query).tuples()]


def count_after(connection: Connection, section_id: int) -> int:
    """Return the number of sections with greater ids."""
    query = select(func.count()).select_from(tables.section).where(tables.section.c.section_id > section_id)
    return connection.execute(query).scalar_one()


def store_titles(connection: Connection, changes: Sequence[TitleChange], mark: Mark, now: datetime) -> None:
    """Change the titles of sections that still have the title that was read, and store the mark."""
    section = tables.section.c
    if changes:
        statement = (
            update(tables.section)
            .where(section.section_id == bindparam("of_section"))
            .where(section.title == bindparam("old_title"), section.title_douban_id == bindparam("old_douban_id"))
        )
        rows = [
            {
                "of_section": change.section.section_id,
                "old_title": change.section.title,
                "old_douban_id": change.section.douban_id,
                "title": change.title,
                "title_douban_id": change.douban_id,
                "titled_at": now if change.douban_id else None,
            }
            for change in changes
        ]
        connection.execute(statement, rows)
    store_mark(connection, mark)


def _sections() -> Select[tuple[int, int, int, str, int]]:
    section = tables.section.c
    return select(section.section_id, section.type, section.object_id, section.title, section.title_douban_id)
