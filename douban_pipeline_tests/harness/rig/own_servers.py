"""Servers of a test run's own, where none answers: from wheels, or from programs that are installed and do not run."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from socket import create_connection
from tempfile import TemporaryDirectory

from douban_pipeline.demo import embedded_redis
from douban_pipeline_tests.harness.rig.dagster_stack import HOST, free_port
from douban_pipeline_tests.harness.rig.mariadb_server import MariaDbServer
from douban_pipeline_tests.harness.rig.mysql_server import MySqlServer
from douban_pipeline_tests.harness.rig.postgres_server import PostgresServer
from douban_pipeline_tests.harness.rig.processes import RigError
from douban_pipeline_tests.harness.rig.waiting import wait_for

START_SECONDS = 120.0
_STOP_SECONDS = 30.0


@contextmanager
def own_mariadb(folder: Path) -> Iterator[str]:
    """Start the MariaDB that is installed; yield its address.

    Raises:
        RigError: None is installed, or it does not start.
    """
    with MariaDbServer(folder) as server:
        yield server.url.render_as_string(hide_password=False)


@contextmanager
def own_mysql(folder: Path) -> Iterator[str]:
    """Start a MySQL of Debian's packages; yield its address.

    Raises:
        RigError: They cannot be had, or it does not start.
    """
    with MySqlServer(folder) as server:
        yield server.url.render_as_string(hide_password=False)


@contextmanager
def own_postgres(folder: Path) -> Iterator[str]:
    """Start the PostgreSQL of the wheel at a port of its own; yield its address.

    Raises:
        RigError: The wheel is not installed, or the server does not start.
    """
    with PostgresServer(folder) as server:
        yield server.url.render_as_string(hide_password=False)


def redis_program() -> str:
    """Return the path of the Redis that is installed, or of a wheel's.

    Raises:
        RigError: There is none.
    """
    program = embedded_redis.redis_program()
    if program is None:
        raise RigError("redis-server is not installed")
    return program


@contextmanager
def own_redis(folder: Path) -> Iterator[str]:
    """Start a Redis; yield the address of an empty database.

    Raises:
        RigError: There is none, or it does not start.
    """
    program = redis_program()
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = [program, "--bind", HOST, "--port", str(port), "--save", "", "--appendonly", "no", "--dir", str(folder)]
    with _running(command, port):
        yield f"redis://{HOST}:{port}/13"


@contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    def answers() -> bool:
        with suppress(OSError):
            create_connection((HOST, port), timeout=1).close()
            return True
        return process.poll() is not None

    try:
        if wait_for(answers, seconds=START_SECONDS) is None or process.poll() is not None:
            raise RigError(f"{command[0]} does not start")
        yield
    finally:
        process.send_signal(signal.SIGINT)  # Redis stops at once by it
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class OwnServers:
    """Starts each server that is asked for once, and stops all of them in the end."""

    def __init__(self) -> None:
        self._opened = ExitStack()
        self._urls: dict[str, str | None] = {}

    def url(self, name: str) -> str | None:
        """Return the address of the server of that kind; None where there is none to start."""
        if name not in self._urls:
            self._urls[name] = self._start(name)
        return self._urls[name]

    def _start(self, name: str) -> str | None:
        # Not below the folder of the tests, which other sessions close to the account of PostgreSQL.
        folder = self._opened.enter_context(TemporaryDirectory(prefix=f"tests-{name}-", ignore_cleanup_errors=True))
        starts = {"mariadb": own_mariadb, "mysql": own_mysql, "postgres": own_postgres, "redis": own_redis}[name]
        try:
            return self._opened.enter_context(starts(Path(folder) / "data"))
        except RigError:
            return None

    def close(self) -> None:
        """Stop all of them; safe to repeat."""
        self._opened.close()
        self._urls.clear()
