"""Which server a database lies on, and the oldest ones that can be used."""

from __future__ import annotations

import re

from sqlalchemy import Connection

from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.language import terminal_text

OLDEST = {"MySQL": (5, 7), "MariaDB": (10, 3)}


def server_name(connection: Connection) -> str:
    """Return the name and version of the server, such as ``MariaDB 10.11.6``.

    Raises:
        DatabaseError: It is too old.
    """
    dialect = connection.dialect.name
    if dialect == "sqlite":
        return f"SQLite {connection.exec_driver_sql('SELECT sqlite_version()').scalar_one()}"
    if dialect == "postgresql":
        return f"PostgreSQL {connection.exec_driver_sql('SHOW server_version').scalar_one()}"
    return checked_version(str(connection.exec_driver_sql("SELECT VERSION()").scalar_one()))


def checked_version(version: str) -> str:
    """Return what to call a server that states ``version``.

    Raises:
        DatabaseError: It is too old.
    """
    # Some put the version of the MySQL that they stand in for before their own: "5.5.5-10.3.39-MariaDB".
    own = re.search(r"(\d+)\.(\d+)[\d.]*-MariaDB", version, re.IGNORECASE)
    name = "MariaDB" if own else "MySQL"
    stated = own or re.match(r"(\d+)\.(\d+)", version)
    shown = f"{name} {version[own.start() :] if own else version}"
    if stated and (int(stated[1]), int(stated[2])) < OLDEST[name]:
        oldest = {kind: f"{kind} {'.'.join(map(str, least))}" for kind, least in OLDEST.items()}
        raise DatabaseError(
            terminal_text("{server} is older than {oldest}").format(server=shown, oldest=oldest[name]),
            terminal_text("use {mysql} or {mariadb}, or newer").format(
                mysql=oldest["MySQL"], mariadb=oldest["MariaDB"]
            ),
        )
    return shown
