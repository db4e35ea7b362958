"""Python's garbage collector, switched off where it only costs time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Switch the collector off during the block, for work that builds much and drops next to nothing.

    Objects whose last reference goes are freed as ever; only cycles of references wait until the block ends.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
