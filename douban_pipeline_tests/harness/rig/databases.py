"""Databases of the rig on servers that run: made new, and dropped afterwards."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import URL, create_engine, make_url
from sqlalchemy.exc import OperationalError

from douban_pipeline_tests.harness.rig.processes import RigError

MARIADB = ("DOUBAN_TEST_MARIADB_URL", "mysql+pymysql://root@127.0.0.1:3306/")
POSTGRES = ("DOUBAN_TEST_POSTGRES_URL", "postgresql+psycopg2://postgres@127.0.0.1:5432/postgres")
"""Variables that name a server and an account that may create databases, and what they default to: those of the
tests."""


def server_url(server: tuple[str, str]) -> URL:
    """Return the address of a server (`MARIADB`, `POSTGRES`), as the environment has it."""
    variable, default = server
    return make_url(os.environ.get(variable) or default)


@contextmanager
def scratch_database(server: tuple[str, str] | URL, purpose: str) -> Iterator[URL]:
    """Make a new, empty database on ``server``, and drop it at the end.

    Raises:
        RigError: The server does not answer or refuses; the message names the variable.
    """
    url = server if isinstance(server, URL) else server_url(server)
    name = f"douban_{purpose}_{uuid.uuid4().hex[:8]}"
    create_database(url, name, **({} if isinstance(server, URL) else {"variable": server[0]}))
    try:
        yield url.set(database=name)
    finally:
        drop_database(url, name)


def create_database(url: URL, name: str, *, variable: str = "the database's address") -> None:
    """Create the database ``name``, in utf8 as the CMS's installer does on MariaDB, unless it is there.

    Raises:
        RigError: The server does not answer or refuses; ``variable`` tells where its address comes from.
    """
    try:
        socket.create_connection((url.host or "127.0.0.1", url.port or 0), timeout=5).close()
        engine = create_engine(url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            if url.get_backend_name() == "postgresql":
                connection.exec_driver_sql(f'CREATE DATABASE "{name}"')
            else:
                connection.exec_driver_sql(f"CREATE DATABASE IF NOT EXISTS `{name}` DEFAULT CHARACTER SET utf8")
        engine.dispose()
    except (OSError, OperationalError) as error:
        shown = url.render_as_string(hide_password=True)
        raise RigError(f"{shown} cannot be used ({error}); {variable} names another server") from error


def drop_database(url: URL, name: str) -> None:
    """Drop the database ``name`` with everybody that is connected to it."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        if url.get_backend_name() == "postgresql":
            connection.exec_driver_sql(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        else:
            connection.exec_driver_sql(f"DROP DATABASE IF EXISTS `{name}`")
    engine.dispose()
