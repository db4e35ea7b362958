"""One door to the database that holds the CMS's tables and ours: MariaDB, MySQL or SQLite."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import stamina
from sqlalchemy import Connection, Engine, Executable, Table, create_engine, event, make_url
from sqlalchemy.dialects import mysql, sqlite
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, InvalidatePoolError, NoSuchModuleError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry, PoolResetState

LOCK_WAIT_SECONDS = 30
"""How long a statement waits for a locked row or table before it fails with a clear error."""

_READ_OPTION = "douban_pipeline_read"
_USED_AT = "douban_pipeline_used_at"
_FRESH_SECONDS = 1.0
"""A connection that was used this lately counts as alive."""
_IN_TRANSACTION = 1
"""Bit of the server's status (SERVER_STATUS_IN_TRANS of the protocol)."""


_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_Parameters = Mapping[str, Any] | Sequence[Mapping[str, Any]]


class DatabaseError(Exception):
    """The database cannot be used as it is set up; the message names the setting and the remedy."""


def parse_url(url: str) -> URL:
    """Return ``url`` as an SQLAlchemy URL.

    Raises:
        DatabaseError: It is no URL, or names a database this project does not speak.
    """
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise DatabaseError(
            "DATABASE_URL is not an SQLAlchemy URL; expected e.g. mysql+pymysql://user:password@host/db"
        ) from error
    if parsed.get_backend_name() not in ("mysql", "mariadb", "sqlite"):
        raise DatabaseError(
            f"DATABASE_URL names {parsed.get_backend_name()!r}; expected mysql+pymysql, mariadb+pymysql or sqlite"
        )
    return parsed


def open_engine(url: str | URL) -> Engine:
    """Return an engine for ``url``; nothing is connected yet.

    SQLite transactions begin IMMEDIATE (a reader that turns writer would otherwise fail at once instead of
    waiting) unless opened by `reading`. On MySQL and MariaDB sessions are strict, whatever the server's mode: a
    value that does not fit is an error, never a silent cut.

    Raises:
        DatabaseError: The URL cannot be used.
    """
    parsed = parse_url(url) if isinstance(url, str) else url
    if parsed.get_backend_name() == "sqlite":
        return _open_sqlite(parsed)
    try:
        engine = create_engine(
            parsed,
            pool_recycle=1800,
            pool_reset_on_return=None,  # `_spare_round_trips` does it where there is something to take back
            isolation_level="READ COMMITTED",
            connect_args={"charset": "utf8mb4", "connect_timeout": 10},
        )
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise DatabaseError(f"DATABASE_URL needs a driver that is not installed: {error}") from error

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SET SESSION sql_mode = CONCAT_WS(',', @@SESSION.sql_mode, 'STRICT_ALL_TABLES'), "
                f"lock_wait_timeout = {LOCK_WAIT_SECONDS}, innodb_lock_wait_timeout = {LOCK_WAIT_SECONDS}"
            )

    _spare_round_trips(engine)
    return engine


def _spare_round_trips(engine: Engine) -> None:
    """Look whether a connection lives only after a pause, and take back only what was begun.

    SQLAlchemy's own ways ping at every use and roll back after every commit: two of the five round trips of a short
    transaction, of which a run makes thousands.
    """

    @event.listens_for(engine, "checkin")
    def _note(_connection: Any, record: ConnectionPoolEntry) -> None:
        record.info[_USED_AT] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def _look(connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
        used_at = record.info.get(_USED_AT)
        if used_at is None or time.monotonic() - used_at < _FRESH_SECONDS:
            return
        try:
            alive = engine.dialect.do_ping(connection)
        except engine.dialect.dbapi.Error as error:  # type: ignore[union-attr]
            raise InvalidatePoolError from error
        if not alive:
            raise InvalidatePoolError

    @event.listens_for(engine, "reset")
    def _take_back(connection: Any, _record: object, state: PoolResetState) -> None:
        # What the server last said of this connection; a driver that does not keep it is asked to roll back.
        status = getattr(connection, "server_status", _IN_TRANSACTION)
        if not state.transaction_was_reset and status & _IN_TRANSACTION:
            connection.rollback()


def _open_sqlite(url: URL) -> Engine:
    if url.database and url.database != ":memory:":
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url, connect_args={"timeout": LOCK_WAIT_SECONDS})

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # SQLAlchemy says when a transaction begins, not the driver
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous = NORMAL")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        reading_only = connection.get_execution_options().get(_READ_OPTION, False)
        connection.exec_driver_sql("BEGIN" if reading_only else "BEGIN IMMEDIATE")

    return engine


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Have SQLite write ahead, once for the file: readers and a writer then do not wait for each other.

    SQLite does not wait for others that have the file open at that moment; the first processes to come try again.
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
    """Run ``work`` in a transaction and return what it returns once that is committed.

    Two short transactions may lock the same rows in opposite order through different indexes; the server then rolls
    one of them back whole, and it is right to do it again. So ``work`` may run several times: it must start from
    nothing and keep what it collects to itself until it returns.
    """
    for attempt in _attempts():
        with attempt, engine.begin() as connection:
            return work(connection)
    raise AssertionError("the last attempt returns or raises")


def run_statement(engine: Engine, statement: Executable, parameters: _Parameters | None = None) -> int:
    """Run one statement in a transaction of its own, again after a deadlock; return how many rows it changed."""
    return run_transaction(engine, lambda connection: connection.execute(statement, parameters).rowcount)


def _attempts() -> Iterable[AbstractContextManager[Any]]:
    return stamina.retry_context(on=_is_deadlock, attempts=6, timeout=60, wait_initial=0.02, wait_max=1.0)


def transactions(engine: Engine) -> Iterator[AbstractContextManager[Connection]]:
    """Yield a transaction, and another one each time the last was the victim of a deadlock.

    Two short transactions may lock the same rows in opposite order through different indexes; the server then
    rolls one of them back whole, and it is right to do it again. So the block must do all of its work anew::

        for transaction in transactions(engine):
            with transaction as connection:
                ...
    """
    for attempt in _attempts():
        yield _attempted(engine, attempt)


@contextmanager
def _attempted(engine: Engine, attempt: AbstractContextManager[Any]) -> Iterator[Connection]:
    with attempt, engine.begin() as connection:
        yield connection


def _is_deadlock(error: Exception) -> bool:
    """Return whether the server chose this transaction as a victim (MySQL 1213, or 1205: waited in vain)."""
    if not isinstance(error, OperationalError) or error.orig is None:
        return False
    return bool(error.orig.args) and error.orig.args[0] in (1205, 1213)


def insert_missing(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], *, key: str) -> None:
    """Insert ``rows``; where another process put a row of the same unique ``key`` meanwhile, that one stays as it is.

    Not ``INSERT IGNORE``, which on MySQL passes over every other error as well.
    """
    if connection.dialect.name == "sqlite":
        connection.execute(sqlite.insert(table).on_conflict_do_nothing(index_elements=[key]), rows)
    else:
        insert = mysql.insert(table)
        connection.execute(insert.on_duplicate_key_update({key: insert.inserted[key]}), rows)


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Open a connection for reading; it takes no write lock on SQLite."""
    with engine.connect() as connection:
        yield connection.execution_options(**{_READ_OPTION: True})


def chunks(items: Sequence[_Item], size: int = 500) -> Iterator[Sequence[_Item]]:
    """Yield ``items`` in pieces of ``size``, as many as one statement may name."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
