"""Threads for calls that may take minutes: an interrupted run does not wait for them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def call_threads(most: int, name: str) -> Iterator[ThreadPoolExecutor]:
    """Yield a pool of threads, and wait at the end until all calls have returned.

    If the run is interrupted (Ctrl-C, or Dagster ends it), calls that have not begun are cancelled and the others are
    left to themselves: a process that ends in an orderly way still waits for them, see `core.interrupts`.
    """
    pool = ThreadPoolExecutor(most, thread_name_prefix=name)
    try:
        yield pool
    except Exception:
        pool.shutdown()
        raise
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    else:
        pool.shutdown()
