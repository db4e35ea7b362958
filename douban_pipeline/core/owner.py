"""The owner of a lease (a run in a process on a machine), and whether that process can still be alive."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def owner_name(run_id: str) -> str:
    """Return the name under which this process works for run ``run_id``: ``run@host:pid``."""
    return f"{run_id}@{socket.gethostname()}:{os.getpid()}"


def is_dead(owner: str) -> bool:
    """Return whether ``owner`` is known to be dead: a process of this machine that no longer exists.

    A process on another machine, or an owner that cannot be parsed, counts as alive; its lease expires.
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
    """Return whether a process has ended and waits for its parent to collect it (Linux)."""
    try:
        stat = Path("/proc", pid, "stat").read_text()
    except OSError:
        return False
    # The process name in parentheses may itself contain parentheses and blanks.
    return stat.rpartition(")")[2].split()[0] == "Z"
