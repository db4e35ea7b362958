"""Python's garbage collector, and when it had better rest."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Keep the collector from looking through all there is again and again, where next to nothing becomes garbage.

    What counts its references down to nothing is freed as ever; only circles wait.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
