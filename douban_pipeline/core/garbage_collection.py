"""Python's cyclic garbage collector, switched off where it only costs time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Switch the collector off during the block, for work that creates many objects and frees few.

    Objects are still freed when their last reference goes; only reference cycles are kept until the block ends.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
