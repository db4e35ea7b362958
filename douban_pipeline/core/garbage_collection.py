"""Python's cyclic garbage collector, switched off or slowed down where it only costs time."""

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


_ALLOCATIONS = 10_000
"""Objects made, less those freed, after which the youngest are looked at; Python's 700 are those of a few requests."""


def collect_from_now_on() -> None:
    """Look only at objects made from now on, and less often: for a process that has loaded what it serves with.

    A full collection looks at everything that was ever loaded. While 2,000 callers waited for a page, collections took
    more than half of the processor's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS, 10, 10)
