"""Keeps the embedded servers in HOME running from one command to the next: starting them takes half a minute.

A process of its own, the keeper, runs a server as long as it is used and `IDLE_SECONDS` more; whoever uses it holds a
shared lock on a file, which ends with a process however that ends. The keeper stops only while it has that lock for
itself, so that nobody begins to use a server that is stopping. A keeper that was killed has left its own lock: the next
command starts another one, which takes over or ends what is left.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from io import BufferedWriter
from pathlib import Path
from typing import Any

from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.language import terminal_text
from douban_pipeline.tmdb.embedded import (
    START_SECONDS,
    STOP_SECONDS,
    GraphAddress,
    embedded_graph,
    embedded_postgres,
    is_running,
    need_graph,
    need_postgres,
)

IDLE_SECONDS = 600.0
"""How long a server stays after its last use: a person types the next command within ten minutes, or is done."""
_TICK = 0.5
_POSTGRES, _GRAPH = "postgres", "graph"
_started: list[subprocess.Popen[bytes]] = []
"""The keepers that this process started, so that their ends are noticed."""


@dataclass(frozen=True, slots=True)
class _Files:
    """What keeper and users of the server with its data in ``folder`` share; beside it, since PostgreSQL wants an empty
    folder."""

    folder: Path

    @property
    def keeper(self) -> Path:
        """Locked by the keeper as long as it lives."""
        return self._beside("keeper")

    @property
    def use(self) -> Path:
        """Locked by whoever uses the server; its time is that of the last use."""
        return self._beside("use")

    @property
    def address(self) -> Path:
        """Where the server answers; there while it does."""
        return self._beside("address")

    @property
    def log(self) -> Path:
        """What the keeper says."""
        return self._beside("keeper.log")

    def _beside(self, name: str) -> Path:
        return self.folder.with_name(f"{self.folder.name}.{name}")


@contextmanager
def kept_postgres(folder: Path, *, idle: float = IDLE_SECONDS) -> Iterator[str]:
    """Yield the URL of the PostgreSQL on the data in ``folder``, which is started if need be and goes on after the
    block, until it was not used for ``idle`` seconds.

    Raises:
        DatabaseError: The wheel is not installed, or the server does not start.
    """
    need_postgres()
    with _in_use(_POSTGRES, folder, idle) as found:
        yield str(found["uri"])


@contextmanager
def kept_graph(folder: Path, *, idle: float = IDLE_SECONDS) -> Iterator[GraphAddress]:
    """Yield the address of the ArcadeDB on the data in ``folder``; as `kept_postgres`.

    Raises:
        DatabaseError: The wheel is not installed, or the server does not start.
    """
    need_graph()
    with _in_use(_GRAPH, folder, idle) as found:
        password = (folder / "password").read_text(encoding="ascii")
        yield GraphAddress(found["uri"], found["user"], password, found["database"])


def running(home: Path) -> list[str]:
    """Return the names of the servers in a HOME that run now."""
    return [name for name in (_POSTGRES, _GRAPH) if _is_held(_Files(home.absolute() / "tmdb" / name).keeper)]


def stop(home: Path) -> list[str]:
    """Stop the servers in a HOME, and wait until they have; return the names of those that ran.

    Raises:
        DatabaseError: One does not stop.
    """
    found = running(home)
    for name in found:
        files = _Files(home.absolute() / "tmdb" / name)
        with suppress(OSError, ValueError, ProcessLookupError):
            os.kill(int(files.keeper.read_text(encoding="ascii")), signal.SIGTERM)
        until = time.monotonic() + 2 * STOP_SECONDS
        while _is_held(files.keeper):
            if time.monotonic() > until:
                raise DatabaseError(terminal_text("the server in {folder} does not stop").format(folder=files.folder))
            time.sleep(0.05)
    return found


@contextmanager
def _in_use(name: str, folder: Path, idle: float) -> Iterator[Mapping[str, Any]]:
    files = _Files(folder.absolute())
    files.folder.parent.mkdir(parents=True, exist_ok=True)
    with files.use.open("ab") as use:
        fcntl.flock(use, fcntl.LOCK_SH)  # waits for a keeper that is stopping the server
        os.utime(files.use)
        try:
            yield _found(name, files, idle)
        finally:
            with suppress(FileNotFoundError):
                os.utime(files.use)


def _found(name: str, files: _Files, idle: float) -> Mapping[str, Any]:
    """Return where the server answers, after starting a keeper if there is none."""
    keeper: subprocess.Popen[bytes] | None = None
    until = time.monotonic() + START_SECONDS + STOP_SECONDS
    while time.monotonic() < until:
        if _is_held(files.keeper):
            with suppress(OSError, ValueError):
                found: Mapping[str, Any] = json.loads(files.address.read_text(encoding="utf-8"))
                if is_running(files.folder):  # else it was killed, which its keeper is about to notice
                    return found
        elif keeper is None:
            keeper = _start(name, files, idle)
        elif (code := keeper.poll()) is not None:
            if code:
                break
            keeper = None  # another command's was first, and has stopped since
        time.sleep(0.05)
    raise DatabaseError(
        terminal_text("the server in {folder} does not start").format(folder=files.folder),
        terminal_text("see {folder}").format(folder=files.log),
    )


def _start(name: str, files: _Files, idle: float) -> subprocess.Popen[bytes]:
    _started[:] = [each for each in _started if each.poll() is None]
    with files.log.open("ab") as log:
        keeper = subprocess.Popen(  # noqa: S603 - this very module
            [sys.executable, "-m", __name__, name, str(files.folder), str(idle)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C and the end of the terminal are the command's, not the server's
        )
    _started.append(keeper)
    return keeper


def _is_held(path: Path) -> bool:
    """Return whether a process holds a file's lock."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


# --- the keeper -------------------------------------------------------------------------------------------------------


@contextmanager
def _postgres(folder: Path) -> Iterator[dict[str, str]]:
    with embedded_postgres(folder) as url:
        yield {"uri": url}


@contextmanager
def _graph(folder: Path) -> Iterator[dict[str, str]]:
    with embedded_graph(folder) as found:
        yield {each: value for each, value in asdict(found).items() if each != "password"}


_SERVERS: Mapping[str, Callable[[Path], AbstractContextManager[dict[str, str]]]] = {
    _POSTGRES: _postgres,
    _GRAPH: _graph,
}


def keep(name: str, folder: Path, idle: float) -> None:
    """Run a server until it was not used for ``idle`` seconds, it ends, its folder is gone, or SIGTERM; does nothing
    where another keeper does.

    Raises:
        DatabaseError: It does not start.
    """
    files, asked_to_stop = _Files(folder), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked_to_stop.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with files.keeper.open("a+b") as own, files.use.open("ab") as use, ExitStack() as stack:
        try:
            fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        own.truncate(0)
        own.write(str(os.getpid()).encode())
        own.flush()
        files.address.unlink(missing_ok=True)
        server = stack.enter_context(_SERVERS[name](folder))
        stack.callback(files.address.unlink, missing_ok=True)  # before the server stops
        new = files.address.with_suffix(".new")
        new.write_text(json.dumps(server), encoding="utf-8")
        new.replace(files.address)
        while not asked_to_stop.wait(_TICK) and is_running(folder) and not _is_idle(files, use, idle):
            pass


def _is_idle(files: _Files, use: BufferedWriter, idle: float) -> bool:
    """Return whether nobody used the server for ``idle`` seconds; then nobody can begin to, either."""
    try:
        fcntl.flock(use, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    try:
        if time.time() - files.use.stat().st_mtime >= idle:
            return True
    except FileNotFoundError:
        return True
    fcntl.flock(use, fcntl.LOCK_UN)
    return False


if __name__ == "__main__":
    keep(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))
