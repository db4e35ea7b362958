"""What the benchmarks ran on, so that a number can be read years later. Names no host and no path."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import psutil
from sqlalchemy import URL, create_engine, text

from douban_pipeline import __version__

SERVER_SETTINGS = ("innodb_buffer_pool_size", "key_buffer_size", "innodb_flush_log_at_trx_commit")
_IN_BYTES = ("innodb_buffer_pool_size", "key_buffer_size")
_BUSY = 0.5


def describe(server: URL) -> dict[str, str]:
    """Return what matters of this machine and of the database server, by name, for people to read."""
    return {
        "cores": str(cores()),
        "processor": _processor(),
        "memory": f"{psutil.virtual_memory().total / 1e9:.1f} GB",
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "douban_pipeline": __version__,
        "Dagster": version("dagster"),
        "SQLAlchemy": version("sqlalchemy"),
        **_server(server),
        "load at start": " ".join(f"{load:.2f}" for load in os.getloadavg()),
    }


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def busy() -> str:
    """Return a warning if the machine has other work to do, else nothing."""
    load = os.getloadavg()[0]
    if load <= _BUSY * cores():
        return ""
    return f"the machine is busy: load {load:.1f} on {cores()} cores; times will be longer than they should be"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _server(url: URL) -> dict[str, str]:
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            found = {"database": str(connection.execute(text("SELECT VERSION()")).scalar_one())}
            for name in SERVER_SETTINGS:
                row = connection.execute(text("SHOW VARIABLES LIKE :name"), {"name": name}).first()
                if row is not None:
                    found[name] = f"{int(row[1]) / 2**20:.0f} MiB" if name in _IN_BYTES else str(row[1])
            return found
    finally:
        engine.dispose()
