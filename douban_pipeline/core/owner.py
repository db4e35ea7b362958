"""Who holds a lease: a run in a process on a machine, and whether it can still be alive."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def owner_name(run_id: str) -> str:
    """Return the name under which this process works for run ``run_id``: ``run@host:pid``."""
    return f"{run_id}@{socket.gethostname()}:{os.getpid()}"


def is_dead(owner: str) -> bool:
    """Return whether ``owner`` is known to be gone: a process of this machine that no longer exists.

    A process elsewhere, or an owner that cannot be read, counts as alive; its lease runs out by itself.
    """
    _, _, place = owner.rpartition("@")
    host, _, pid = place.rpartition(":")
    if host != socket.gethostname() or not pid.isdecimal() or int(pid) == os.getpid():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return _is_zombie(pid)


def _is_zombie(pid: str) -> bool:
    """Return whether a process has ended and only waits for its parent to notice (Linux)."""
    try:
        stat = Path("/proc", pid, "stat").read_text()
    except OSError:
        return False
    # The name in brackets may itself hold brackets and blanks.
    return stat.rpartition(")")[2].split()[0] == "Z"
