"""Writes status and counts of imported comments back into the CMS's own table (`mac_comment`).

Only four columns of existing rows are written; no row is added and no table is altered. A row is written only where the
CMS still has the values that were imported or written last; rows that have changed there are skipped and listed. Each
write is logged before it is made and can be reverted. The CMS's table has no transactions, so log rows left over from a
run that died are reconciled by the next one with the CMS's current values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    MetaData,
    RowMapping,
    Select,
    Table,
    Update,
    case,
    func,
    insert,
    inspect,
    select,
    update,
)

from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.comments.store.tables import comment, export, report, vote
from douban_pipeline.comments.types import CMS_ACTOR, IMPORTED, IMPORTED_VOTES, MORE_VOTES, CommentStatus, Rank
from douban_pipeline.core.database import chunks, reading, run_transaction
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.settings_base import BASE_PREFIX

BATCH = 500
COLUMNS = ("comment_status", "comment_up", "comment_down", "comment_report")
"""The only columns that are written."""
MOST_COUNT = 8_388_607
"""Maximum value of the CMS's count columns, signed or not."""
_PREPARED, _APPLIED, _SKIPPED, _UNDONE = "prepared", "applied", "skipped", "undone"
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class ExportedRow:
    """One row of the CMS that is to be written or skipped.

    Attributes:
        number: Id of the comment in the CMS.
        comment_id: Our id.
        old: Current values in the CMS of the columns that differ.
        new: New values of these columns.
        refusal: Why it is skipped; empty where it is written.
    """

    number: int
    comment_id: int
    old: dict[str, int]
    new: dict[str, int]
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class CmsExportReport:
    """Result of an export.

    Attributes:
        compared: Rows of the CMS that were compared.
        written: Rows written, or to be written in a dry run.
        skipped: Rows that differ and are skipped.
        rows: The first of both.
    """

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


class CommentExport:
    """Writes comments back to the CMS and reverts batches.

    Args:
        engine: Database of our tables.
        library: Database of the CMS.
        prefix: Prefix of the CMS's tables.
    """

    def __init__(self, engine: Engine, library: Engine, prefix: str) -> None:
        self._engine, self._library = engine, library
        names = ("comment_id", *COLUMNS)
        self._table = Table(f"{prefix}comment", MetaData(), *(Column(name, BigInteger) for name in names))

    def run(self, batch: str, operator: str, now: datetime, *, dry_run: bool = True) -> CmsExportReport:
        """Compare all imported comments with the CMS, and write the differences unless it is a dry run.

        Raises:
            ProblemsError: The CMS has no such table, or the batch was used before.
        """
        return self._run(self._ours(), batch, operator, now, dry_run=dry_run)

    def run_for(self, ids: Sequence[int], batch: str, operator: str, now: datetime) -> CmsExportReport:
        """Write the differences of those of the given comments that were imported; otherwise like `run`."""
        return self._run(self._ours_of(ids), batch, operator, now, dry_run=False)

    def _run(
        self, known: Iterator[dict[int, dict[str, Any]]], batch: str, operator: str, now: datetime, *, dry_run: bool
    ) -> CmsExportReport:
        self._ready()
        if not dry_run:
            with reading(self._engine) as connection:
                if connection.execute(select(export.c.export_id).where(export.c.batch == batch).limit(1)).first():
                    raise ProblemsError([f"批次名「{batch}」已经用过"])
            self.settle()
        done = CmsExportReport()
        for ours in known:
            with reading(self._library) as connection:
                theirs = _theirs(connection, self._table, list(ours))
            found = [row for number, one in ours.items() if (row := _compare(number, one, theirs.get(number)))]
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
            rows = connection.execute(query.order_by(export.c.export_id.desc())).mappings().all()
        if not rows:
            raise ProblemsError([f"没有可撤销的批次「{batch}」"])
        done = CmsExportReport()
        for part in chunks(rows):
            found = []
            for row in part:
                back = ExportedRow(row["number"], row["comment_id"], row["new_values"], row["old_values"])
                well = self._has(back.number, back.old) if dry_run else self._put(back)
                if well and not dry_run:
                    self._note([row["export_id"]], _UNDONE)
                found.append(back if well else replace(back, refusal="CMS 中之后又有变化"))
            done = done.plus(len(part), found)
        return done

    def settle(self) -> int:
        """Reconcile log rows left by a run that died with the CMS's values; return the number of rows."""
        with reading(self._engine) as connection:
            rows = connection.execute(select(export).where(export.c.state == _PREPARED)).mappings().all()
        for row in rows:
            self._note([row["export_id"]], _APPLIED if self._has(row["number"], row["new_values"]) else _SKIPPED)
        return len(rows)

    def _ready(self) -> None:
        if not inspect(self._library).has_table(self._table.name):
            raise ProblemsError([f"CMS 的数据库里没有表 {self._table.name}"])

    def _ours(self) -> Iterator[dict[int, dict[str, Any]]]:
        """Yield batches of imported comments, by their number in the CMS."""
        last = IMPORTED
        while True:
            with reading(self._engine) as connection:
                c = comment.c
                query = select(comment).where(c.source_key > last, c.source_key < f"{IMPORTED}:")
                found = _ours(connection, query.order_by(c.source_key).limit(BATCH))
            if not found:
                return
            last = max(row["source_key"] for row in found.values())
            yield found

    def _ours_of(self, ids: Sequence[int]) -> Iterator[dict[int, dict[str, Any]]]:
        """Yield batches of those of the given comments that were imported, by their number in the CMS."""
        for part in chunks(sorted(ids), BATCH):
            with reading(self._engine) as connection:
                c = comment.c
                found = _ours(connection, select(comment).where(c.comment_id.in_(part), c.source_key.is_not(None)))
            if found:
                yield found

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
                "old_values": row.old,
                "new_values": row.new,
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
        """Write a row if the CMS still has the old values; return whether it has the new values now."""
        c = self._table.c
        still = [c[name] == value for name, value in row.old.items()]
        statement = update(self._table).where(c.comment_id == row.number, *still).values(row.new)
        done = run_transaction(self._library, lambda connection: connection.execute(statement).rowcount)
        return bool(done) or self._has(row.number, row.new)

    def _has(self, number: int, values: Mapping[str, int]) -> bool:
        c = self._table.c
        with reading(self._library) as connection:
            query = select(c.comment_id).where(
                c.comment_id == number, *(c[name] == value for name, value in values.items())
            )
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


def _compare(number: int, ours: Mapping[str, Any], theirs: Mapping[str, int] | None) -> ExportedRow | None:
    """Return what is to be written to a row of the CMS; None where nothing differs or the row does not exist."""
    if theirs is None:
        return None
    wanted, refusals = dict(theirs), []
    for name, (now, known, imported) in ours["counts"].items():
        if now in (theirs[name], known, ours["undone"].get(name)) or imported is None:
            continue  # unchanged here, reverted by somebody, or the CMS may count more than was imported
        if theirs[name] == known:
            wanted[name] = min(now, MOST_COUNT)
        else:
            refusals.append(f"{name} 在 CMS 中已另有变化（{known} → {theirs[name]}）")
    shown = int(ours["shown"])
    if not ours["by_cms"] and shown not in (theirs["comment_status"], ours["undone"].get("comment_status")):
        if not shown or ours["decided"] or ours["exported_status"] == 0:
            wanted["comment_status"] = shown
        else:
            refusals.append("在 CMS 中被隐藏，这里没有人放行")
    new = {name: wanted[name] for name in COLUMNS if wanted[name] != theirs[name]}
    if not new and not refusals:
        return None
    why = "" if new else "；".join(refusals)
    return ExportedRow(number, ours["comment_id"], {name: theirs[name] for name in new}, new, why)


def _theirs(connection: Connection, table: Table, numbers: Sequence[int]) -> dict[int, dict[str, int]]:
    rows = connection.execute(select(table).where(table.c.comment_id.in_(numbers))).mappings()
    return {row["comment_id"]: {name: int(row[name]) for name in COLUMNS} for row in rows}


def _ours(connection: Connection, query: Select[Any]) -> dict[int, dict[str, Any]]:
    """Return imported comments by their number in the CMS, with the values last known from the CMS."""
    rows = connection.execute(query).mappings().all()
    ids = [row["comment_id"] for row in rows]
    numbers = {row["comment_id"]: int(row["source_key"].removeprefix(IMPORTED)) for row in rows}
    known, written = _taken_in(connection, ids), _exported(connection, list(numbers.values()))
    return {
        numbers[row["comment_id"]]: _known(
            row, known.get(row["comment_id"], (0, 0, 0)), *written.get(numbers[row["comment_id"]], ({}, {}))
        )
        for row in rows
    }


def _known(
    row: RowMapping, taken: tuple[int, int, int], written: Mapping[str, int], undone: Mapping[str, int]
) -> dict[str, Any]:
    names = ("like_count", "dislike_count", "report_count")
    more = row["meta"].get(MORE_VOTES, {})
    # Releases before 1.0 imported no more than these, and noted none beside them.
    cut = [count >= IMPORTED_VOTES and name not in more for name, count in zip(names, taken, strict=True)]
    imported = [count + more.get(name, 0) for name, count in zip(names, taken, strict=True)]
    return {
        "comment_id": row["comment_id"],
        "source_key": row["source_key"],
        # Its own status: the CMS also shows nothing below a hidden comment.
        "shown": row["status"] == CommentStatus.NORMAL,
        # Decided by an operator or higher, not by the automation that imported its status from the CMS.
        "decided": row["status_rank"] >= Rank.OPERATOR,
        # What people decided in the CMS is not written back to it: they may have changed their minds since.
        "by_cms": row["status_actor"] == CMS_ACTOR,
        "undone": undone,
        "exported_status": written.get("comment_status"),
        "counts": {
            column: (row[name], written.get(column, count), None if unknown else count)
            for column, name, count, unknown in zip(COLUMNS[1:], names, imported, cut, strict=True)
        },
    }


def _taken_in(connection: Connection, ids: Sequence[int]) -> dict[int, tuple[int, int, int]]:
    """Return the likes, dislikes and reports that comments were imported with, i.e. those of anonymous voters."""
    likes, dislikes = (func.sum(case((vote.c.value == value, 1), else_=0)) for value in (1, -1))
    nobody = vote.c.voter.startswith("imported:", autoescape=True)
    votes = select(vote.c.comment_id, likes, dislikes).where(vote.c.comment_id.in_(ids), nobody)
    found = {row[0]: (int(row[1]), int(row[2]), 0) for row in connection.execute(votes.group_by(vote.c.comment_id))}
    of_nobody = report.c.reporter.startswith("imported:", autoescape=True)
    reports = select(report.c.comment_id, func.count()).where(report.c.comment_id.in_(ids), of_nobody)
    for number, count in connection.execute(reports.group_by(report.c.comment_id)):
        likes_there, dislikes_there, _ = found.get(number, (0, 0, 0))
        found[number] = (likes_there, dislikes_there, int(count))
    return found


def _exported(connection: Connection, numbers: Sequence[int]) -> dict[int, tuple[dict[str, int], dict[str, int]]]:
    """Return by row of the CMS the values it was left with, and the reverted values that are not written again."""
    found: dict[int, tuple[dict[str, int], dict[str, int]]] = {}
    query = select(export.c.number, export.c.new_values, export.c.old_values, export.c.state)
    query = query.where(export.c.number.in_(numbers), export.c.state.in_([_APPLIED, _UNDONE]))
    for row in connection.execute(query.order_by(export.c.export_id)):
        left, undone = found.setdefault(row.number, ({}, {}))
        left.update(row.new_values if row.state == _APPLIED else row.old_values)
        if row.state == _UNDONE:
            undone.update(row.new_values)
        else:
            for name in row.new_values:
                undone.pop(name, None)
    return found
