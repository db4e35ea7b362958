"""Privileges of database accounts on tables: the statements that grant them, and those that an account lacks."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from contextlib import closing

from sqlalchemy import URL, Engine, Table, delete, insert, select, update
from sqlalchemy.exc import OperationalError, ProgrammingError
from sqlalchemy.sql.dml import UpdateBase

from douban_pipeline.core.database import reading

MYSQL = ("mysql", "mariadb")
"""Kinds of databases whose accounts get privileges per table."""
_DENIED = (1044, 1142, 1143)
_NO_TABLE = 1146
"""MySQL's error for a table that does not exist, to an account that may use it."""
_CONNECT_SECONDS = 5.0
_INSUFFICIENT_PRIVILEGE = "42501"
"""PostgreSQL's SQLSTATE; its errors have no numbers."""


def account_of(engine: Engine) -> tuple[str, str]:
    """Return user and host of the account that ``engine`` connects as, as the server knows it.

    A server that does not let it in is told the user of the URL, and the address that this machine connects from.
    """
    try:
        with reading(engine) as connection:
            account = str(connection.exec_driver_sql("SELECT CURRENT_USER()").scalar_one())
    except (OperationalError, ProgrammingError):
        return engine.url.username or "", _own_address(engine.url)
    user, _, host = account.rpartition("@")
    return user, host


def _own_address(url: URL) -> str:
    """Return the address from which this machine reaches the database's server; loopback's if it does not."""
    host = url.host or "127.0.0.1"
    try:
        with closing(socket.create_connection((host, url.port or 3306), _CONNECT_SECONDS)) as connection:
            return str(connection.getsockname()[0])
    except OSError:
        return "127.0.0.1"


def table_grants(tables: Iterable[str], *, database: str, user: str, host: str) -> list[str]:
    """Return the statements that allow an account to create, alter, read and write ``tables``."""
    return [grant("ALL", database, table, user=user, host=host) for table in tables]


def grant(rights: str, database: str, table: str, *, user: str, host: str) -> str:
    """Return the statement that grants ``rights``, such as ``SELECT, UPDATE (comment_up)``, on one table."""
    return f"GRANT {rights} ON {quoted_name(database)}.{quoted_name(table)} TO {quoted_text(user)}@{quoted_text(host)};"


def server_grant(rights: str, *, user: str, host: str) -> str:
    """Return the statement that grants ``rights`` that exist only for the whole server."""
    return f"GRANT {rights} ON *.* TO {quoted_text(user)}@{quoted_text(host)};"


def missing_rights(engine: Engine, wanted: Iterable[tuple[str, UpdateBase]]) -> list[str]:
    """Return those of the rights, each with a statement that needs it, that this account lacks.

    The server explains the statements, which requires the same privileges as executing them; nothing is executed.
    """
    return [right for right, statement in wanted if not _allowed(engine, statement)]


def missing_table_grants(engine: Engine, tables: Iterable[Table]) -> list[str]:
    """Return the write privileges on ``tables`` that this account lacks, each as ``INSERT ON feed_entry``."""
    wanted = [(f"{verb} ON {table.name}", statement) for table in tables for verb, statement in _writes(table)]
    return missing_rights(engine, wanted)


def _writes(table: Table) -> list[tuple[str, UpdateBase]]:
    first = next(iter(table.c))
    columns = [column.name for column in table.c]
    return [
        ("INSERT", insert(table).from_select(columns, select(table), include_defaults=False)),
        ("UPDATE", update(table).values({first: first})),
        ("DELETE", delete(table)),
    ]


def _allowed(engine: Engine, statement: UpdateBase) -> bool:
    compiled = statement.compile(dialect=engine.dialect)
    try:
        with reading(engine) as connection:
            connection.exec_driver_sql(f"EXPLAIN {compiled}")
    except (OperationalError, ProgrammingError) as error:
        arguments = error.orig.args if error.orig is not None else ()
        if (arguments and arguments[0] in _DENIED) or getattr(error.orig, "pgcode", "") == _INSUFFICIENT_PRIVILEGE:
            return False
        if arguments and arguments[0] == _NO_TABLE:
            return True  # privileges are looked at first; the table comes with `setup`
        raise
    return True


def quoted_name(name: str) -> str:
    """Return a name of a database, table or column for a statement of MySQL."""
    return "`" + name.replace("`", "``") + "`"


def quoted_text(value: str) -> str:
    """Return a text for a statement of MySQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
