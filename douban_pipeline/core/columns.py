"""Columns that tables of several systems have: keys, counts, texts and times."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Integer, SmallInteger, String, text

from douban_pipeline.core.column_types import BigId, UtcDateTime

EMPTY = text("''")
ZERO = text("0")


def key(name: str) -> Column[int]:
    """Return a key that the database numbers."""
    return Column(name, BigId, primary_key=True, autoincrement=True)


def big(name: str) -> Column[int]:
    """Return a 64-bit number that is always given."""
    return Column(name, BigInteger, nullable=False)


def link(name: str) -> Column[int]:
    """Return a 64-bit number, 0 where it is not given: such as a key of another row, or none."""
    return Column(name, BigInteger, nullable=False, server_default=ZERO)


def count(name: str) -> Column[int]:
    """Return a number that begins at 0."""
    return Column(name, Integer, nullable=False, server_default=ZERO)


def small(name: str) -> Column[int]:
    """Return a small number that begins at 0."""
    return Column(name, SmallInteger, nullable=False, server_default=ZERO)


def words(name: str, most: int, **options: Any) -> Column[str]:
    """Return a text of so many characters at most, empty where it is not given."""
    return Column(name, String(most), nullable=False, server_default=EMPTY, **options)


def moment(name: str, **options: Any) -> Column[Any]:
    """Return a time, which may be missing unless ``nullable=False`` is given."""
    return Column(name, UtcDateTime, **options)
