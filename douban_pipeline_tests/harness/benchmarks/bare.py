"""What the libraries do alone: statements straight to the driver, as little around them as there can be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine


@contextmanager
def bare_cursor(engine: Engine) -> Iterator[Any]:
    """Give a cursor of the driver, and commit at the end."""
    connection = engine.raw_connection()
    try:
        with connection.cursor() as cursor:  # type: ignore[attr-defined]
            yield cursor
        connection.commit()
    finally:
        connection.close()


def bare_insert(engine: Engine, table: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Insert ``rows`` by the driver's own `executemany`, which makes one statement of many, and commit.

    ``table`` and ``names`` come from this project's own tables, never from outside.
    """
    places = ", ".join(["%s"] * len(names))
    with bare_cursor(engine) as cursor:
        cursor.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})", rows)
