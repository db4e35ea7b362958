"""Engines and transactions that behave alike on MariaDB, MySQL, PostgreSQL and SQLite."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import stamina
from sqlalchemy import Connection, Engine, Executable, Table, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import (
    DBAPIError,
    InvalidatePoolError,
    NoSuchModuleError,
    SQLAlchemyError,
)
from sqlalchemy.pool import ConnectionPoolEntry, PoolResetState

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database_errors import is_cut, note_setting
from douban_pipeline.core.database_urls import SCHEMES, DatabaseError, parse_url
from douban_pipeline.core.language import terminal_text

LOCK_WAIT_SECONDS = 30
"""How long a statement waits for a locked row or table before it fails with an error."""

_CONNECT_SECONDS = 10

_SQLITE_SYNCHRONOUS = "NORMAL"
"""Commits survive a power failure: with NORMAL, in write-ahead mode, the last ones may be lost."""

_READ_OPTION = "douban_pipeline_read"
_USED_AT = "douban_pipeline_used_at"
_FRESH_SECONDS = 1.0
"""A connection used within this time counts as alive."""
_IN_TRANSACTION = 1
"""Bit of MySQL's server status (SERVER_STATUS_IN_TRANS of the protocol)."""

_MYSQL_LOST = frozenset({1205, 1213})
"""Lock wait timeout, deadlock."""
PATIENCE_SECONDS = 120.0
"""How long `run_patiently` waits for a server that is restarting."""
_POSTGRESQL_LOST = frozenset({"40001", "40P01", "55P03"})
"""Serialization failure, deadlock, lock wait timeout."""
_SQLITE_LOST = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_Parameters = Mapping[str, Any] | Sequence[Mapping[str, Any]]


def open_engine(
    url: str | URL, *, setting: str = "the database's URL", seconds: float | None = None, **pool: Any
) -> Engine:
    """Return an engine for ``url``; no connection is opened yet.

    Every server runs transactions at READ COMMITTED and waits `LOCK_WAIT_SECONDS` for a lock. SQLite's transactions
    begin IMMEDIATE unless opened by `reading`: a reader that starts to write would otherwise fail at once instead of
    waiting. Sessions on MySQL and MariaDB are strict, whatever the server's mode: a value that does not fit raises an
    error instead of being cut. Sessions on PostgreSQL use UTC.

    Args:
        url: URL of the database.
        setting: Name of the setting that holds it, for messages.
        seconds: How long the server may take to answer a statement, and to accept a connection, before that fails with
            an error; None for no limit. On SQLite, how long a statement waits for a lock, if that is less than usual.
        pool: SQLAlchemy's options of the pool, for a server.

    Raises:
        DatabaseError: The URL cannot be used.
    """
    parsed = parse_url(url, setting=setting) if isinstance(url, str) else url
    if parsed.get_backend_name() == "sqlite":
        wait = LOCK_WAIT_SECONDS if seconds is None else min(seconds, LOCK_WAIT_SECONDS)
        return note_setting(_open_sqlite(parsed, wait), setting)
    on_mysql = parsed.get_backend_name() != "postgresql"
    try:
        engine = create_engine(
            parsed,
            pool_recycle=1800,
            pool_reset_on_return=None,  # `_save_round_trips` rolls back where a transaction is open
            isolation_level="READ COMMITTED",
            connect_args={"connect_timeout": _CONNECT_SECONDS, **(_mysql_arguments(seconds) if on_mysql else {})},
            **pool,
        )
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        shown = parsed.render_as_string(hide_password=True)
        expected = SCHEMES[parsed.get_backend_name()]
        raise DatabaseError(
            terminal_text("{setting} needs a driver that is not installed, {shown} ({error})").format(
                setting=setting, shown=shown, error=error
            ),
            terminal_text("write {expected}://…").format(expected=expected),
        ) from error

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            if on_mysql:
                cursor.execute(
                    "SET SESSION sql_mode = CONCAT_WS(',', @@SESSION.sql_mode, 'STRICT_ALL_TABLES'), "
                    f"lock_wait_timeout = {LOCK_WAIT_SECONDS}, innodb_lock_wait_timeout = {LOCK_WAIT_SECONDS}"
                )
            else:
                cursor.execute(f"SET SESSION lock_timeout = '{LOCK_WAIT_SECONDS}s'; SET SESSION TIME ZONE 'UTC'")
                if seconds is not None:
                    cursor.execute(f"SET SESSION statement_timeout = {round(seconds * 1000)}")
        if not on_mysql:
            connection.commit()  # a rollback would undo what was set

    if on_mysql:
        # Imported here: the driver is slow to load, and needed for one of three kinds of servers.
        from douban_pipeline.core.mysql_connection import connected

        event.listen(engine, "do_connect", connected)
    _save_round_trips(engine)
    note_setting(engine, setting)
    return engine


def _mysql_arguments(seconds: float | None) -> dict[str, Any]:
    limits = {} if seconds is None else {"read_timeout": seconds, "write_timeout": seconds}
    return {"charset": "utf8mb4", **limits}


def _save_round_trips(engine: Engine) -> None:
    """Ping a connection only after a pause, and roll back only where a transaction is open.

    SQLAlchemy's defaults ping at every use and roll back after every commit: two of the five round trips of a short
    transaction, and a run makes thousands of them.
    """

    @event.listens_for(engine, "checkin")
    def _note_use(_connection: Any, record: ConnectionPoolEntry) -> None:
        record.info[_USED_AT] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def _ping_after_pause(connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
        used_at = record.info.get(_USED_AT)
        if used_at is None or time.monotonic() - used_at < _FRESH_SECONDS:
            return
        try:
            alive = engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            raise InvalidatePoolError from error
        if not alive:
            raise InvalidatePoolError

    @event.listens_for(engine, "reset")
    def _roll_back(connection: Any, _record: object, state: PoolResetState) -> None:
        # PyMySQL keeps the last status the server reported; psycopg2 tracks it itself and sends nothing needlessly.
        status = getattr(connection, "server_status", _IN_TRANSACTION)
        if not state.transaction_was_reset and status & _IN_TRANSACTION:
            connection.rollback()


def _open_sqlite(url: URL, lock_wait: float) -> Engine:
    engine = create_engine(url, connect_args={"timeout": lock_wait})

    @event.listens_for(engine, "do_connect")
    def _make_folder(*_: object) -> None:
        if url.database and url.database != ":memory:":
            Path(url.database).parent.mkdir(parents=True, exist_ok=True)

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # SQLAlchemy begins transactions, not the driver
        _write_ahead(connection)
        connection.execute(f"PRAGMA synchronous = {_SQLITE_SYNCHRONOUS}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        reading_only = connection.get_execution_options().get(_READ_OPTION, False)
        connection.exec_driver_sql("BEGIN" if reading_only else "BEGIN IMMEDIATE")

    return engine


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch the file to write-ahead mode, in which readers and a writer do not block each other.

    SQLite's busy timeout does not apply to this switch, so concurrent first connections retry it here.
    """
    for attempt in stamina.retry_context(
        on=_is_busy, attempts=None, timeout=LOCK_WAIT_SECONDS, wait_initial=0.02, wait_max=0.5
    ):
        with attempt:
            if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                connection.execute("PRAGMA journal_mode = WAL")


def _is_busy(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode == sqlite3.SQLITE_BUSY


def run_transaction(engine: Engine, work: Callable[[Connection], _Result]) -> _Result:
    """Run ``work`` in a transaction, commit it, and return what ``work`` returned.

    The server may roll back a whole transaction in favour of another, even at COMMIT: two short transactions may lock
    the same rows in opposite order through different indexes. The work is then run again, up to five times in all.
    So ``work`` must start from scratch each time and have no effects outside the transaction.

    Raises:
        DBAPIError: The last attempt was rolled back too, or a statement failed for another reason.
    """
    lost: list[DBAPIError] = []
    try:
        with engine.begin() as connection:
            return work(connection)
    except DBAPIError as error:
        if not _lost_to_another(error):
            raise
        lost.append(error)
    # Only now, because the bookkeeping of retries costs as much as a short statement. It begins with the error so far.
    for attempt in stamina.retry_context(on=_lost_to_another, attempts=6, timeout=60, wait_initial=0.02, wait_max=1.0):
        with attempt:
            if lost:
                raise lost.pop()
            with engine.begin() as connection:
                return work(connection)
    raise AssertionError("the last attempt returns or raises")


def run_patiently(engine: Engine, work: Callable[[Connection], _Result], clock: Clock) -> _Result:
    """Run ``work`` as `run_transaction` does, and retry while the connection is cut or the server is unreachable.

    For writes that must survive a restart of the database. When the connection is cut at COMMIT, it is unknown whether
    the transaction was committed, so ``work`` must be safe to run twice: rows with unique keys, conditional updates.

    Args:
        engine: The database.
        work: As in `run_transaction`.
        clock: Waits between the attempts.

    Raises:
        DBAPIError: The server did not come back in time, or a statement failed for another reason.
    """
    waited, pause = 0.0, 0.5
    while True:
        try:
            return run_transaction(engine, work)
        except DBAPIError as error:
            if not is_cut(error) or waited >= PATIENCE_SECONDS:
                raise
        clock.sleep(pause)
        waited, pause = waited + pause, min(2 * pause, 5.0)


def run_statement(engine: Engine, statement: Executable, parameters: _Parameters | None = None) -> int:
    """Run one statement as `run_transaction` does; return how many rows it changed."""
    return run_transaction(engine, lambda connection: connection.execute(statement, parameters).rowcount)


def _lost_to_another(error: Exception) -> bool:
    """Return whether another transaction caused the rollback, so that running the work again may succeed."""
    original = error.orig if isinstance(error, DBAPIError) else None
    if original is None:
        return False
    if isinstance(original, sqlite3.Error):
        return getattr(original, "sqlite_errorcode", 0) & 0xFF in _SQLITE_LOST
    if (sqlstate := getattr(original, "pgcode", None)) is not None:
        return sqlstate in _POSTGRESQL_LOST
    return bool(original.args) and original.args[0] in _MYSQL_LOST


def insert_missing(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], *, key: str) -> None:
    """Insert those ``rows`` whose unique ``key`` is not in ``table``; existing rows are not changed.

    Any other error is raised. ``INSERT IGNORE`` is not used because on MySQL it ignores other errors too.
    """
    if not rows:
        return
    if connection.dialect.name in ("mysql", "mariadb"):
        insert = _insert(connection, table)
        connection.execute(insert.on_duplicate_key_update({key: insert.inserted[key]}), rows)
    else:
        connection.execute(_insert(connection, table).on_conflict_do_nothing(index_elements=[key]), rows)


def upsert(
    connection: Connection,
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    *,
    keys: Sequence[str],
    changes: Sequence[str],
    adds: Collection[str] = (),
) -> None:
    """Insert ``rows``, or update those whose unique ``keys`` are already in ``table``; one statement on MySQL.

    Args:
        connection: A connection in a transaction.
        table: The table.
        rows: Complete rows; each key occurs once.
        keys: Columns that are unique together.
        changes: Columns updated in existing rows; at least one.
        adds: Those of ``changes`` whose value is added to the stored one instead of replacing it.
    """
    if not rows:
        return
    if connection.dialect.name in ("mysql", "mariadb"):
        statement = _insert(connection, table)
        new = statement.inserted
        connection.execute(
            statement.on_duplicate_key_update(
                {name: table.c[name] + new[name] if name in adds else new[name] for name in changes}
            ),
            rows,
        )
        return
    insert = _insert(connection, table)
    given = {name: table.c[name] + insert.excluded[name] if name in adds else insert.excluded[name] for name in changes}
    connection.execute(insert.on_conflict_do_update(index_elements=list(keys), set_=given), rows)


def _insert(connection: Connection, table: Table) -> Any:
    """Return an INSERT in the dialect of a connection, which is the only one that is loaded."""
    name = "mysql" if connection.dialect.name == "mariadb" else connection.dialect.name
    return import_module(f"sqlalchemy.dialects.{name}").insert(table)


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Open a connection for reading; it takes no write lock on SQLite."""
    with engine.connect() as connection:
        yield connection.execution_options(**{_READ_OPTION: True})


def outage(engine: Engine) -> str | None:
    """Return why a database answers no statement, in a word; None if it does."""
    try:
        with reading(engine) as connection:
            connection.exec_driver_sql("SELECT 1")
    except (SQLAlchemyError, OSError) as error:
        return type(error).__name__
    return None


def chunks(items: Sequence[_Item], size: int = 500) -> Iterator[Sequence[_Item]]:
    """Yield ``items`` in pieces of ``size``, by default as many as one statement may name."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
