"""Ends a command at Ctrl-C even while threads of it wait for answers."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
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
