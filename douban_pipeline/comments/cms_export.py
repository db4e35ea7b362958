"""Writes the status of imported comments back into the CMS's own table (`mac_comment`).

Only the status of existing rows is written; no row is added and no table is altered. A row that was hidden in the CMS
is shown again only where somebody here decided so; others are skipped and listed. Each write is logged before it is
made and can be reverted. The CMS's table has no transactions, so log rows left over from a run that died are reconciled
by the next one with the CMS's current values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    MetaData,
    Row,
    SmallInteger,
    Table,
    Update,
    insert,
    inspect,
    select,
    update,
)

from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.comments.store.tables import comment, export
from douban_pipeline.comments.types import CMS_ACTOR, IMPORTED, CommentStatus, Rank
from douban_pipeline.core.database import chunks, reading, run_transaction
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.settings_base import BASE_PREFIX

BATCH = 500
COLUMN = "comment_status"
"""The only column that is written: 1 shown, 0 hidden."""
_PREPARED, _APPLIED, _SKIPPED, _UNDONE = "prepared", "applied", "skipped", "undone"
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class ExportedRow:
    """One row of the CMS that is to be written or skipped.

    Attributes:
        refusal: Why it is skipped; empty where it is written.
    """

    number: int
    comment_id: int
    old: int
    new: int
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class CmsExportReport:
    """Result of an export."""

    compared: int = 0
    written: int = 0
    skipped: int = 0
    rows: tuple[ExportedRow, ...] = field(default_factory=tuple)

    def plus(self, compared: int, found: Sequence[ExportedRow]) -> CmsExportReport:
        """Return a report with more rows added."""
        skipped = sum(bool(row.refusal) for row in found)
        return CmsExportReport(
            self.compared + compared,
            self.written + len(found) - skipped,
            self.skipped + skipped,
            (*self.rows, *found)[:_SHOWN],
        )


class _Known(NamedTuple):
    """The last status that an export left in a row of the CMS, and the one that a person took back, if any."""

    left: int | None = None
    undone: int | None = None


class CommentExport:
    """Writes statuses back to the CMS and reverts batches."""

    def __init__(self, engine: Engine, library: Engine, prefix: str) -> None:
        self._engine, self._library = engine, library
        columns = (Column("comment_id", BigInteger), Column(COLUMN, SmallInteger))
        self._table = Table(f"{prefix}comment", MetaData(), *columns)

    def run(
        self, batch: str, operator: str, now: datetime, *, ids: Sequence[int] | None = None, dry_run: bool = True
    ) -> CmsExportReport:
        """Compare imported comments with the CMS, all or those of some ids, and write the differences.

        Raises:
            ProblemsError: The CMS has no such table, or the batch was used before.
        """
        self._ready()
        if not dry_run:
            with reading(self._engine) as connection:
                if connection.execute(select(export.c.export_id).where(export.c.batch == batch).limit(1)).first():
                    raise ProblemsError([f"批次名「{batch}」已经用过"])
            self.settle()
        done = CmsExportReport()
        for ours in self._every() if ids is None else self._some(ids):
            numbered = {int(row.source_key.removeprefix(IMPORTED)): row for row in ours}
            with reading(self._library) as connection:
                c = self._table.c
                query = select(c.comment_id, c[COLUMN]).where(c.comment_id.in_(numbered))
                theirs = {number: int(status) for number, status in connection.execute(query)}
            with reading(self._engine) as connection:
                known = _known(connection, list(numbered))
            compared = (
                _compare(number, numbered[number], status, known.get(number, _Known()))
                for number, status in theirs.items()
            )
            found = [row for row in compared if row is not None]
            if not dry_run:
                found = self._write(found, batch, operator, now)
            done = done.plus(len(theirs), found)
        return done

    def undo(self, batch: str, *, dry_run: bool = True) -> CmsExportReport:
        """Restore the old values of a batch's rows, last row first, skipping rows that have changed in the CMS since.

        Raises:
            ProblemsError: There is no such batch, or all of it was reverted.
        """
        self._ready()
        if not dry_run:
            self.settle()
        with reading(self._engine) as connection:
            query = select(export).where(export.c.batch == batch, export.c.state == _APPLIED)
            rows = connection.execute(query.order_by(export.c.export_id.desc())).all()
        if not rows:
            raise ProblemsError([f"没有可撤销的批次「{batch}」"])
        done = CmsExportReport()
        for part in chunks(rows):
            found = []
            for row in part:
                back = ExportedRow(row.number, row.comment_id, row.new_status, row.old_status)
                well = self._has(back.number, back.old) if dry_run else self._put(back)
                if well and not dry_run:
                    self._note([row.export_id], _UNDONE)
                found.append(back if well else replace(back, refusal="CMS 中之后又有变化"))
            done = done.plus(len(part), found)
        return done

    def settle(self) -> None:
        """Reconcile log rows left by a run that died with the CMS's values."""
        with reading(self._engine) as connection:
            rows = connection.execute(select(export).where(export.c.state == _PREPARED)).all()
        for row in rows:
            self._note([row.export_id], _APPLIED if self._has(row.number, row.new_status) else _SKIPPED)

    def _ready(self) -> None:
        if not inspect(self._library).has_table(self._table.name):
            raise ProblemsError([f"CMS 的数据库里没有表 {self._table.name}"])

    def _every(self) -> Iterator[Sequence[Row[tuple[object, ...]]]]:
        c, last = comment.c, IMPORTED
        while True:
            query = select(comment).where(c.source_key > last, c.source_key < f"{IMPORTED}:")
            with reading(self._engine) as connection:
                found = connection.execute(query.order_by(c.source_key).limit(BATCH)).all()
            if not found:
                return
            last = found[-1].source_key
            yield found

    def _some(self, ids: Sequence[int]) -> Iterator[Sequence[Row[tuple[object, ...]]]]:
        for part in chunks(sorted(ids), BATCH):
            query = select(comment).where(comment.c.comment_id.in_(part), comment.c.source_key.is_not(None))
            with reading(self._engine) as connection:
                yield connection.execute(query).all()

    def _write(self, found: Sequence[ExportedRow], batch: str, operator: str, now: datetime) -> list[ExportedRow]:
        """Log the rows as prepared, write them, and record the outcome."""
        wanted = [row for row in found if not row.refusal]
        if not wanted:
            return list(found)
        given = [
            {
                "batch": batch,
                "number": row.number,
                "comment_id": row.comment_id,
                "old_status": row.old,
                "new_status": row.new,
                "state": _PREPARED,
                "operator": operator,
                "created_at": now,
            }
            for row in wanted
        ]
        run_transaction(self._engine, lambda connection: connection.execute(insert(export), given))
        with reading(self._engine) as connection:
            numbers = [row.number for row in wanted]
            query = select(export.c.number, export.c.export_id).where(
                export.c.batch == batch, export.c.number.in_(numbers)
            )
            ids = {row.number: row.export_id for row in connection.execute(query)}
        outcome = {row.number: self._put(row) for row in wanted}
        self._note([ids[number] for number, well in outcome.items() if well], _APPLIED)
        self._note([ids[number] for number, well in outcome.items() if not well], _SKIPPED)
        return [
            row if row.refusal or outcome[row.number] else replace(row, refusal="CMS 中刚刚又有变化") for row in found
        ]

    def _put(self, row: ExportedRow) -> bool:
        """Write a row if the CMS still has the old status; return whether it has the new one now."""
        c = self._table.c
        statement = (
            update(self._table).where(c.comment_id == row.number, c[COLUMN] == row.old).values({COLUMN: row.new})
        )
        done = run_transaction(self._library, lambda connection: connection.execute(statement).rowcount)
        return bool(done) or self._has(row.number, row.new)

    def _has(self, number: int, status: int) -> bool:
        c = self._table.c
        with reading(self._library) as connection:
            query = select(c.comment_id).where(c.comment_id == number, c[COLUMN] == status)
            return connection.execute(query).first() is not None

    def _note(self, ids: Sequence[int], state: str) -> None:
        for part in chunks(ids):
            statement = update(export).where(export.c.export_id.in_(part)).values(state=state)
            run_transaction(self._engine, partial(_execute, statement=statement))


def _execute(connection: Connection, statement: Update) -> None:
    connection.execute(statement)


def open_export(services: CommentsServices) -> CommentExport:
    """Return the export to the CMS that the settings name.

    Raises:
        ProblemsError: They name none.
        DatabaseError: Its URL cannot be used.
    """
    url = services.settings.library_url.get_secret_value()
    if not url:
        raise ProblemsError([f"没有写明 CMS 的数据库：请设置 {BASE_PREFIX}DATABASE_URL"])
    library = services.others.engine(url, setting=f"{BASE_PREFIX}DATABASE_URL")
    return CommentExport(services.engine, library, services.settings.table_prefix)


def _compare(number: int, ours: Row[tuple[object, ...]], theirs: int, known: _Known) -> ExportedRow | None:
    """Return what is to be written to a row of the CMS; None where nothing is."""
    # Its own status: the CMS also shows nothing below a hidden comment.
    shown = int(ours.status == CommentStatus.NORMAL)
    # What people decided in the CMS is not written back to it: they may have changed their minds since.
    if ours.status_actor == CMS_ACTOR or shown in (theirs, known.undone):
        return None
    # Hidden there, and here shown only by the automation that imported it.
    undecided = shown and ours.status_rank < Rank.OPERATOR and known.left != 0
    return ExportedRow(number, ours.comment_id, theirs, shown, "在 CMS 中被隐藏，这里没有人放行" if undecided else "")


def _known(connection: Connection, numbers: Sequence[int]) -> dict[int, _Known]:
    found: dict[int, _Known] = {}
    query = select(export.c.number, export.c.new_status, export.c.old_status, export.c.state)
    query = query.where(export.c.number.in_(numbers), export.c.state.in_([_APPLIED, _UNDONE]))
    for row in connection.execute(query.order_by(export.c.export_id)):
        undone = row.state == _UNDONE
        found[row.number] = _Known(row.old_status, row.new_status) if undone else _Known(row.new_status)
    return found
