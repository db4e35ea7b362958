"""The one statement that writes to the CMS: an UPDATE whose conditions and values go together.

Statements of one shape differ in their values alone, so each shape is put together once: building a statement takes
several times as long as sending it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Connection, Update, and_, bindparam, exists, true, update
from sqlalchemy.types import TypeEngine

from douban_pipeline.cms.maccms import Cms
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.writes.refusals import SYNOPSIS_COLUMNS

_VOD_ID = "of_vod_id"


@dataclass(frozen=True, slots=True)
class ConditionalWrite:
    """A write to one video, with its conditions.

    Attributes:
        vod_id: The video.
        new: New values of CMS columns; at least one.
        read: CMS columns with the values that they must still have, compared byte by byte.
        seen: Columns of our state row with the values that they must still have.
        automatic: Whether our locks forbid it.
        respect_vod_lock: Whether the site's own lock of the row forbids it.
        restores: Whether it restores what a lock protects; see `_allowed`.
    """

    vod_id: int
    new: Mapping[str, Any]
    read: Mapping[str, Any]
    seen: Mapping[str, Any]
    automatic: bool
    respect_vod_lock: bool
    restores: bool


_Compared = tuple[tuple[str, bool], ...]
_Shape = tuple[tuple[str, ...], _Compared, _Compared, bool, bool, bool]


@dataclass(frozen=True, slots=True)
class ConditionalUpdates:
    """Conditional UPDATEs of the CMS's videos.

    Attributes:
        cms: The CMS's tables.
        tables: Our tables.
        dialect: Name of the database's dialect.
    """

    cms: Cms
    tables: OwnTables
    dialect: str
    _statements: dict[_Shape, Update] = field(default_factory=dict, init=False, repr=False, compare=False)

    def execute(self, connection: Connection, write: ConditionalWrite) -> bool:
        """Do ``write`` if all of its conditions hold at that moment; return whether they did.

        Raises:
            DataError: A value does not fit its column.
        """
        flags = (write.automatic, write.respect_vod_lock, write.restores)
        shape = (tuple(write.new), _shape(write.read), _shape(write.seen), *flags)
        statement = self._statements.get(shape)
        if statement is None:
            statement = self._statements[shape] = self._statement(write)
        values = {
            _VOD_ID: write.vod_id,
            **{_bound("new", name): value for name, value in write.new.items()},
            **{_bound("read", name): value for name, value in write.read.items() if value is not None},
            **{_bound("seen", name): value for name, value in write.seen.items() if value is not None},
        }
        return bool(connection.execute(statement, values).rowcount)

    def _statement(self, write: ConditionalWrite) -> Update:
        vod = self.cms.vod
        vod_id: BindParameter[int] = bindparam(_VOD_ID)
        new = {name: bindparam(_bound("new", name), type_=vod.c[name].type) for name in write.new}
        read = {name: _operand("read", name, value, vod.c[name].type) for name, value in write.read.items()}
        seen = {
            name: _operand("seen", name, value, self.tables.video.c[name].type) for name, value in write.seen.items()
        }
        conditions = [vod.c.vod_id == vod_id]
        conditions += [still_seen(self.tables, vod_id, seen)] if seen else []
        conditions += [self.cms.equals(name, operand, self.dialect) for name, operand in read.items()]
        conditions += [vod.c.vod_lock == 0] if write.respect_vod_lock else []
        conditions += _allowed(self.tables, vod_id, new, restores=write.restores) if write.automatic else []
        return update(vod).where(*conditions).values(**new)


def _shape(values: Mapping[str, Any]) -> _Compared:
    """Return which columns are compared, and which of them with NULL: that is another condition."""
    return tuple((name, value is None) for name, value in values.items())


def _bound(part: str, column: str) -> str:
    return f"{part}_{column}"


def _operand(part: str, column: str, value: Any, kind: TypeEngine[Any]) -> BindParameter[Any] | None:
    """Return the placeholder that a column is compared with, None where its value is NULL."""
    return None if value is None else bindparam(_bound(part, column), type_=kind)


def _allowed(
    tables: OwnTables, vod_id: int | ColumnElement[int], new: Mapping[str, Any], *, restores: bool
) -> list[ColumnElement[bool]]:
    """Return the conditions under which automation may write the columns ``new`` of a video.

    Args:
        tables: Our tables.
        vod_id: The video, or a placeholder for it.
        new: The columns and their values, or placeholders for them.
        restores: Whether it restores what a lock protects: then the lock must hold, else it must not.
    """
    video = tables.video
    forbidden: list[ColumnElement[bool]] = [video.c.douban_review_status == ReviewStatus.IGNORED]
    if "vod_douban_id" in new:
        locked = video.c.douban_id_locked == true()
        kept = and_(locked, video.c.vod_douban_id == new["vod_douban_id"])
        forbidden.append(~kept if restores else locked)
    if SYNOPSIS_COLUMNS & set(new):
        forbidden.append(video.c.intro_locked.is_not(True) if restores else video.c.intro_locked == true())
    return [~exists().where(and_(video.c.vod_id == vod_id, each)).correlate(None) for each in forbidden]


def still_seen(tables: OwnTables, vod_id: int | ColumnElement[int], seen: Mapping[str, Any]) -> ColumnElement[bool]:
    """Return the condition that our state row of a video still holds what was seen of it; see `_allowed`."""
    video = tables.video
    alike = [video.c[name].is_(None) if value is None else video.c[name] == value for name, value in seen.items()]
    return exists().where(video.c.vod_id == vod_id, *alike).correlate(None)
