"""The one statement that writes to the CMS: an UPDATE whose conditions and values go together.

Statements of one shape differ in their values alone, so each shape is put together once: building a statement takes
several times as long as sending it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import BindParameter, Connection, Update, bindparam, update
from sqlalchemy.types import TypeEngine

from douban_pipeline.cms.maccms import Cms
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.writes import permissions

_VOD_ID = "of_vod_id"


@dataclass(frozen=True, slots=True)
class Write:
    """What is to be written to one video, and on what condition.

    Attributes:
        vod_id: The video.
        new: CMS columns as they shall be; at least one.
        stands: CMS columns as they must still be, to the byte.
        seen: Columns of our state row as they must still be.
        automatic: Whether locks forbid it.
        restores: Whether it puts back what a lock protects; see `permissions.conditions`.
    """

    vod_id: int
    new: Mapping[str, Any]
    stands: Mapping[str, Any]
    seen: Mapping[str, Any]
    automatic: bool
    restores: bool


_Compared = tuple[tuple[str, bool], ...]
_Shape = tuple[tuple[str, ...], _Compared, _Compared, bool, bool]


@dataclass(frozen=True, slots=True)
class ConditionalUpdates:
    """Conditional UPDATEs of the CMS's videos.

    Attributes:
        cms: The CMS's tables.
        tables: Our tables.
        dialect: Name of the database's dialect.
        respect_vod_lock: Whether automatic writes leave rows with ``vod_lock = 1`` alone.
    """

    cms: Cms
    tables: OwnTables
    dialect: str
    respect_vod_lock: bool
    _statements: dict[_Shape, Update] = field(default_factory=dict, init=False, repr=False, compare=False)

    def execute(self, connection: Connection, write: Write) -> bool:
        """Do ``write`` if all of its conditions hold at that moment; return whether they did.

        Raises:
            DataError: A value does not fit its column.
        """
        shape = (tuple(write.new), _shape(write.stands), _shape(write.seen), write.automatic, write.restores)
        statement = self._statements.get(shape)
        if statement is None:
            statement = self._statements[shape] = self._statement(write)
        values = {
            _VOD_ID: write.vod_id,
            **{_bound("new", name): value for name, value in write.new.items()},
            **{_bound("stands", name): value for name, value in write.stands.items() if value is not None},
            **{_bound("seen", name): value for name, value in write.seen.items() if value is not None},
        }
        return bool(connection.execute(statement, values).rowcount)

    def _statement(self, write: Write) -> Update:
        vod = self.cms.vod
        vod_id: BindParameter[int] = bindparam(_VOD_ID)
        new = {name: bindparam(_bound("new", name), type_=vod.c[name].type) for name in write.new}
        stands = {name: _operand("stands", name, value, vod.c[name].type) for name, value in write.stands.items()}
        seen = {
            name: _operand("seen", name, value, self.tables.video.c[name].type) for name, value in write.seen.items()
        }
        conditions = [vod.c.vod_id == vod_id]
        conditions += [permissions.still_seen(self.tables, vod_id, seen)] if seen else []
        conditions += [self.cms.equals(name, operand, self.dialect) for name, operand in stands.items()]
        if write.automatic:
            conditions += permissions.conditions(
                self.cms,
                self.tables,
                vod_id,
                new,
                restores=write.restores,
                respect_vod_lock=self.respect_vod_lock,
            )
        return update(vod).where(*conditions).values(**new)


def _shape(values: Mapping[str, Any]) -> _Compared:
    """Return which columns are compared, and which of them with NULL: that is another condition."""
    return tuple((name, value is None) for name, value in values.items())


def _bound(part: str, column: str) -> str:
    return f"{part}_{column}"


def _operand(part: str, column: str, value: Any, kind: TypeEngine[Any]) -> BindParameter[Any] | None:
    """Return the placeholder that a column is compared with, None where its value is NULL."""
    return None if value is None else bindparam(_bound(part, column), type_=kind)
