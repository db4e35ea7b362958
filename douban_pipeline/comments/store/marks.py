"""Marks of progress: how far a job has come."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from douban_pipeline.comments.store import tables
from douban_pipeline.core.database import upsert


@dataclass(frozen=True, slots=True)
class Mark:
    """Progress of a job: up to this number at this moment."""

    name: str
    number: int = 0
    at: datetime | None = None


def read_mark(connection: Connection, name: str) -> Mark | None:
    """Return a mark; None before it is first stored."""
    row = connection.execute(select(tables.mark).where(tables.mark.c.name == name)).one_or_none()
    return None if row is None else Mark(name, row.number, row.at)


def store_mark(connection: Connection, mark: Mark) -> None:
    """Store a mark; it replaces the one of the same name."""
    row = {"name": mark.name, "number": mark.number, "at": mark.at}
    upsert(connection, tables.mark, [row], keys=("name",), changes=("number", "at"))
