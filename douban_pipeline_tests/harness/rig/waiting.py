"""Waiting for something that others do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

_POLL_SECONDS = 0.2
Found = TypeVar("Found")


def wait_for(look: Callable[[], Found | None], *, seconds: float, poll: float = _POLL_SECONDS) -> Found | None:
    """Call ``look`` until it returns something true, and return that; None if nothing came within ``seconds``."""
    until = time.monotonic() + seconds
    while True:
        found = look()
        if found or time.monotonic() >= until:
            return found or None
        time.sleep(poll)
