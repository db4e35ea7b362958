"""How outsiders write to the CMS in a soak: through a connection of their own, and recorded exactly.

`mac_vod` is MyISAM: there is no transaction that could hold a row between a look and a write. So the table is locked
(``LOCK TABLES … WRITE``) around both, and before and after in the journal are true even while the pipeline writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Engine, bindparam, create_engine, event, inspect, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DataError, SQLAlchemyError

from douban_pipeline_tests.harness.soak.journal import Columns, Entry, Fate, Journal, canonical_row

Row = Mapping[str, Any]
Edit = Callable[[Row], Mapping[str, Any] | None]
"""What a row shall hold, in view of what it holds; None or empty leaves it alone."""

_WAIT_SECONDS = 30


class Outside:
    """Writes to `mac_vod` as the CMS, its collectors and other programs do."""

    def __init__(self, url: str | URL, journal: Journal, *, prefix: str = "mac_") -> None:
        self.journal = journal
        self.prefix = prefix
        self.table = f"`{prefix}vod`"
        self.engine = _open(url)
        self._columns: frozenset[str] = frozenset()

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the table, the key left out."""
        if not self._columns:
            found = inspect(self.engine).get_columns(f"{self.prefix}vod")
            self._columns = frozenset(column["name"] for column in found) - {"vod_id"}
        return self._columns

    def query(self, statement: str, **values: Any) -> list[Any]:
        """Return the rows of a query; ``{prefix}`` in it stands for the prefix."""
        with self.engine.connect() as connection:
            return list(connection.execute(text(statement.replace("{prefix}", self.prefix)), values).all())

    def row(self, vod_id: int) -> dict[str, Any] | None:
        """Return all columns of a video as they stand, None if there is none."""
        with self.engine.connect() as connection:
            return self._rows(connection, [vod_id]).get(vod_id)

    def change(self, who: str, what: str, vod_ids: Sequence[int], edit: Edit) -> int:
        """Change videos by one statement a row, or by one for all that are changed alike; return how many.

        What stands is read, and handed to ``edit``, under the lock under which it is changed.
        """
        numbers = {vod_id: self.journal.intend(who, what, vod_id) for vod_id in dict.fromkeys(vod_ids)}
        begun: set[int] = set()
        try:
            with self._locked() as connection:
                rows = self._rows(connection, list(numbers))
                alike: dict[tuple[tuple[str, Any], ...], list[int]] = {}
                for vod_id in numbers:
                    row = rows.get(vod_id)
                    wanted = self._wanted(row, edit) if row is not None else {}
                    if row is None or not wanted:
                        self.journal.missed(numbers[vod_id], "nothing to change" if row else "no such video")
                        continue
                    before = canonical_row({name: row[name] for name in wanted})
                    self.journal.begin(numbers[vod_id], before, canonical_row(wanted))
                    begun.add(vod_id)
                    alike.setdefault(tuple(wanted.items()), []).append(vod_id)
                changed = 0
                for columns, ids in alike.items():
                    changed += self._update(connection, dict(columns), ids, numbers, begun)
        except SQLAlchemyError as error:
            self._lost(numbers, begun, error)
            return 0
        return changed

    def insert(self, who: str, what: str, row: Row) -> bool:
        """Insert a video; return whether it is known to have come in."""
        vod_id = row["vod_id"]
        wanted = {name: value for name, value in row.items() if name in self.columns}
        number = self.journal.intend(who, what, vod_id)
        begun: set[int] = set()
        names = ", ".join(f"`{name}`" for name in wanted)
        marks = ", ".join(f":{name}" for name in wanted)
        statement = f"INSERT INTO {self.table} (vod_id, {names}) VALUES (:vod_id, {marks})"
        try:
            with self._locked() as connection:
                if vod_id in self._rows(connection, [vod_id]):
                    self.journal.missed(number, "there is such a video")
                    return False
                self.journal.begin(number, None, canonical_row(wanted))
                begun.add(vod_id)
                connection.execute(text(statement), {"vod_id": vod_id, **wanted})
                self.journal.done(number, canonical_row(self._rows(connection, [vod_id])[vod_id]))
        except SQLAlchemyError as error:
            self._lost({vod_id: number}, begun, error)
            return False
        return True

    def delete(self, who: str, what: str, vod_id: int) -> dict[str, Any] | None:
        """Delete a video for good; return the row as it was, None if it is not known to be gone."""
        number = self.journal.intend(who, what, vod_id)
        begun: set[int] = set()
        try:
            with self._locked() as connection:
                row = self._rows(connection, [vod_id]).get(vod_id)
                if row is None:
                    self.journal.missed(number, "no such video")
                    return None
                self.journal.begin(number, canonical_row(row), None)
                begun.add(vod_id)
                statement = f"DELETE FROM {self.table} WHERE vod_id = :vod_id"
                connection.execute(text(statement), {"vod_id": vod_id})
                self.journal.done(number, None)
        except SQLAlchemyError as error:
            self._lost({vod_id: number}, begun, error)
            return None
        return row

    def settle(self) -> int:
        """Look at what became of writes whose fate is unknown; return how many there are. The database must answer."""
        doubtful = [entry for entry in self.journal.entries() if entry.doubtful and not entry.looked]
        with self.engine.connect() as connection:
            rows = self._rows(connection, [entry.vod_id for entry in doubtful])
        for entry in doubtful:
            row = rows.get(entry.vod_id)
            self.journal.look(entry.number, _fate_seen(entry, None if row is None else canonical_row(row)))
        return sum(entry.fate in (Fate.BEGUN, Fate.UNKNOWN) for entry in self.journal.entries())

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def _wanted(self, row: Row, edit: Edit) -> dict[str, Any]:
        wanted = dict(edit(row) or {})
        foreign = set(wanted) - self.columns
        if foreign:
            raise ValueError(f"the CMS has no columns {sorted(foreign)}")
        new, old = canonical_row(wanted), canonical_row(row)
        return {name: value for name, value in wanted.items() if new[name] != old[name]}

    def _update(
        self,
        connection: Connection,
        columns: Mapping[str, Any],
        ids: Sequence[int],
        numbers: Mapping[int, int],
        begun: set[int],
    ) -> int:
        assignments = ", ".join(f"`{name}` = :{name}" for name in columns)
        statement = text(f"UPDATE {self.table} SET {assignments} WHERE vod_id IN :ids")
        try:
            connection.execute(statement.bindparams(bindparam("ids", expanding=True)), {"ids": list(ids), **columns})
        except DataError as error:
            # Sessions are strict: a value that does not fit changes nothing of its row; MyISAM may have done others.
            if len(ids) > 1:
                raise
            self.journal.missed(numbers[ids[0]], f"does not fit: {error.orig}")
            begun.discard(ids[0])
            return 0
        current = self._rows(connection, ids)
        for vod_id in ids:
            self.journal.done(numbers[vod_id], canonical_row({name: current[vod_id][name] for name in columns}))
            begun.discard(vod_id)
        return len(ids)

    def _rows(self, connection: Connection, ids: Sequence[int]) -> dict[int, dict[str, Any]]:
        query = text(f"SELECT * FROM {self.table} WHERE vod_id IN :ids")
        found = connection.execute(query.bindparams(bindparam("ids", expanding=True)), {"ids": list(ids)}).mappings()
        return {row["vod_id"]: {str(name): value for name, value in row.items()} for row in found}

    @contextmanager
    def _locked(self) -> Iterator[Connection]:
        """Open a connection that alone reads and writes the table until it is given back."""
        sqlite = self.engine.dialect.name == "sqlite"
        with self.engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE" if sqlite else f"LOCK TABLES {self.table} WRITE")
            try:
                yield connection
            except BaseException:
                if not connection.invalidated:
                    # On SQLite what was begun is taken back, so that "unknown" is merely too cautious.
                    connection.exec_driver_sql("ROLLBACK" if sqlite else "UNLOCK TABLES")
                raise
            connection.exec_driver_sql("COMMIT" if sqlite else "UNLOCK TABLES")

    def _lost(self, numbers: Mapping[int, int], begun: set[int], error: SQLAlchemyError) -> None:
        """Note what the database did not answer to: what was sent has an unknown fate, the rest did not happen."""
        why = f"{type(error).__name__}: {str(getattr(error, 'orig', error))[:200]}"
        open_ = {entry.number: entry for entry in self.journal.entries()}
        for vod_id, number in numbers.items():
            if vod_id in begun:
                if open_[number].fate is Fate.BEGUN:
                    self.journal.unknown(number, why)
            elif open_[number].fate is Fate.INTENDED:
                self.journal.missed(number, why)


def now() -> int:
    """Return the present moment as the CMS stores it."""
    return int(datetime.now(UTC).timestamp())


def _fate_seen(entry: Entry, current: Columns | None) -> str:
    if current is None or entry.after is None:
        gone = current is None
        return "done" if gone is (entry.after is None) else "missed"
    if entry.before is None:
        return "done"
    if all(current[name] == value for name, value in entry.after.items()):
        return "done"
    if all(current[name] == value for name, value in entry.before.items()):
        return "missed"
    return "neither is there"


def _open(url: str | URL) -> Engine:
    engine = create_engine(url, pool_pre_ping=True, isolation_level="AUTOCOMMIT")

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: object) -> None:
        if engine.dialect.name == "sqlite":
            connection.isolation_level = None
            connection.execute(f"PRAGMA busy_timeout = {_WAIT_SECONDS * 1000}")
            return
        with connection.cursor() as cursor:
            # The site's own sessions are strict on a server as it is shipped.
            cursor.execute(
                "SET SESSION sql_mode = CONCAT_WS(',', @@SESSION.sql_mode, 'STRICT_ALL_TABLES'), "
                f"lock_wait_timeout = {_WAIT_SECONDS}"
            )

    return engine
