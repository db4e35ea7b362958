"""What work costs in steps that are the same on every machine, however busy: calls, statements, steps of SQLite."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, event

_STEP = 5
"""Instructions of SQLite's virtual machine between two notes of it."""


@dataclass(slots=True)
class Counted:
    """A number that is known when the block has ended."""

    number: int = 0


def calls(work: Callable[[], object]) -> int:
    """Return how many functions, Python's and C's, ``work`` calls on this thread."""
    counted = 0

    def note(_frame: Any, what: str, _given: Any) -> None:
        nonlocal counted
        if what in ("call", "c_call"):
            counted += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return counted


@contextmanager
def statements(engine: Engine) -> Iterator[Counted]:
    """Count the statements that are executed within the block."""
    counted = Counted()

    def note(*_: Any) -> None:
        counted.number += 1

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield counted
    finally:
        event.remove(engine, "before_cursor_execute", note)


@contextmanager
def sqlite_steps(engine: Engine) -> Iterator[Counted]:
    """Count the instructions that SQLite executes within the block, in steps of five."""
    counted = Counted()

    def note() -> int:
        counted.number += 1
        return 0

    def watch(connection: Any, *_: Any) -> None:
        connection.set_progress_handler(note, _STEP)

    def leave(connection: Any, *_: Any) -> None:
        connection.set_progress_handler(None, 0)

    event.listen(engine, "checkout", watch)
    event.listen(engine, "checkin", leave)
    try:
        yield counted
    finally:
        event.remove(engine, "checkout", watch)
        event.remove(engine, "checkin", leave)
