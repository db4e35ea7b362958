"""A MariaDB of the rig's own: in a folder of its own, at a port of its own, to be killed without harm to another."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from sqlalchemy import URL, create_engine
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline_tests.harness.rig.dagster_stack import HOST, reserved_port
from douban_pipeline_tests.harness.rig.databases import create_database
from douban_pipeline_tests.harness.rig.processes import Part, Process, RigError

START_SECONDS = 60.0
"""Recovery after a kill is part of a start."""
_STOP_SECONDS = 30.0
_SBIN = ("/usr/sbin", "/usr/local/sbin", "/usr/libexec")
_OPTIONS = {
    # As Debian runs the server of a CMS, but small.
    "character-set-server": "utf8mb4",
    "sql-mode": "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION",
    "myisam-recover-options": "BACKUP,QUICK",
    "innodb-buffer-pool-size": "128M",
    "innodb-log-file-size": "64M",
    "key-buffer-size": "32M",
    "max-connections": "200",
    "local-infile": "1",
    "performance-schema": "OFF",
}


def _program(name: str) -> str:
    """Return the path of a program of MariaDB's server, which is often outside an ordinary user's path.

    Raises:
        RigError: It is not installed.
    """
    path = os.pathsep.join([os.environ.get("PATH", ""), *_SBIN])
    found = shutil.which(name, path=path)
    if found is None:
        raise RigError(f"{name} is not installed: install MariaDB's server (Debian: apt-get install mariadb-server)")
    return found


class MariaDbServer(Part):
    """A server that answers on loopback alone and reads no configuration of the machine's.

    Raises:
        RigError: MariaDB's server is not installed.
    """

    name = "mariadbd"
    _options: Mapping[str, str] = _OPTIONS

    def __init__(self, folder: Path, *, options: Mapping[str, str] | None = None) -> None:
        self.folder = folder.absolute()
        # Held for as long as this object is in use: two rigs that start at once must not be given the same port.
        self._reservation = reserved_port()
        self.port = int(self._reservation.getsockname()[1])
        # A socket's path may hold a hundred characters, which the folder of a test does not leave.
        self._sockets = Path(tempfile.mkdtemp(prefix="douban-db-"))
        try:
            command = self._command()
        except RigError:
            self._sockets.rmdir()
            self._reservation.close()
            raise
        given = {
            "datadir": str(self._data),
            "tmpdir": str(self._temporary),
            "socket": str(self._sockets / "server.sock"),
            "pid-file": str(self.folder / "server.pid"),
            "bind-address": HOST,
            "port": str(self.port),
            **self._options,
            **(options or {}),
        }
        self.process = Process(
            self.name,
            [
                *command,
                *self._account(),
                "--skip-name-resolve",
                *(f"--{name}={value}" for name, value in given.items()),
            ],
            log=self.folder / "server.log",
            environment={"PATH": os.environ.get("PATH", ""), "LANG": "C"},
            directory=self.folder,
        )

    def _command(self) -> list[str]:
        """Return what runs the server.

        Raises:
            RigError: It is not installed.
        """
        self._install_program = _program("mariadb-install-db")
        return [_program("mariadbd"), "--no-defaults"]

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _temporary(self) -> Path:
        """A server that starts deletes the temporary tables that it finds, those of the server beside it too."""
        return self.folder / "tmp"

    @staticmethod
    def _account() -> list[str]:
        """The server refuses to run as root unless told to."""
        return ["--user=root"] if os.geteuid() == 0 else []

    @property
    def url(self) -> URL:
        """Its address, with the account that may do everything, and no database."""
        return URL.create("mysql+pymysql", username="root", host=HOST, port=self.port)

    @property
    def answers(self) -> bool:
        """Whether it takes a query."""
        engine = create_engine(self.url, connect_args={"connect_timeout": 2, "read_timeout": 5})
        try:
            with engine.connect() as connection:
                data = connection.exec_driver_sql("SELECT @@datadir").scalar_one()
        except SQLAlchemyError:
            return False
        finally:
            engine.dispose()
        return Path(data) == self._data  # else another server answers at the port

    def start(self) -> Self:
        """Start it, on the data it has, and wait until it answers; the data of a killed one are recovered by it.

        Raises:
            RigError: It did not start.
        """
        self._temporary.mkdir(parents=True, exist_ok=True)
        if not self._data.exists():
            self._install()
        self.process.start()
        self.process.wait_until(lambda: self.answers, seconds=START_SECONDS)
        return self

    def _installing(self) -> list[str]:
        rights = ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]
        return [self._install_program, "--no-defaults", *self._account(), f"--datadir={self._data}", *rights]

    def _install(self) -> None:
        environment = {**os.environ, "TMPDIR": str(self._temporary)}
        done = subprocess.run(
            self._installing(), capture_output=True, text=True, check=False, cwd=self.folder, env=environment
        )
        if done.returncode:
            shutil.rmtree(self._data, ignore_errors=True)
            raise RigError(f"{self.name} cannot make its system tables: {(done.stdout + done.stderr)[-2000:].strip()}")

    def kill(self) -> None:
        """Kill it with -9, as a power cut would; `start` brings it back."""
        self.process.kill()

    def stop(self) -> None:
        """Shut it down in order; safe to repeat."""
        self.process.stop(seconds=_STOP_SECONDS)
        self._reservation.close()
        shutil.rmtree(self._sockets, ignore_errors=True)

    def create(self, name: str) -> URL:
        """Make the database ``name`` as the CMS's installer does, and return its address."""
        create_database(self.url, name, variable="the rig's own MariaDB")
        return self.url.set(database=name)
