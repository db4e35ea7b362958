"""Threads for calls that may take minutes, and Ctrl-C: no run and no command that is interrupted waits for them."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import typer

from douban_pipeline.core.console import console

_STATUS = 130
"""Exit status of what SIGINT ended."""


@contextmanager
def ends_at_once(text: str) -> Iterator[None]:
    """Print ``text`` and end the process if the block is interrupted.

    Only for work whose state in the database is good whenever the process is killed: threads that still wait for an
    answer are not waited for, and nothing that would be done at the end of the process is.
    """
    try:
        yield
    except KeyboardInterrupt:
        console.print(text, highlight=False, soft_wrap=True)
        if any(not each.daemon for each in threading.enumerate() if each is not threading.main_thread()):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(_STATUS)
        raise typer.Exit(_STATUS) from None


@contextmanager
def call_threads(most: int, name: str) -> Iterator[ThreadPoolExecutor]:
    """Yield a pool of threads, and wait at the end until all calls have returned.

    If the run is interrupted (Ctrl-C, or Dagster ends it), calls that have not begun are cancelled and the others are
    left to themselves: a process that ends in an orderly way still waits for them, see `ends_at_once`.
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
