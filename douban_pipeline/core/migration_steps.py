"""Repeatable migration steps: servers without transactional DDL keep what an upgrade did before it was interrupted.

Every migration changes tables through these steps alone, so that an upgrade can also be listed without being executed:
the steps work on a `Shape` of our tables, which is read from the database once and then updated by the steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from alembic import context, op

OPTIONS: Any = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mysql_row_format": "DYNAMIC",
}


@dataclass(slots=True)
class Shape:
    """The tables with the names of their columns and indexes, including the steps so far."""

    columns: dict[str, set[str]] = field(default_factory=dict)
    indexes: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def read(
        cls,
        connection: sa.Connection,
        owns: Callable[[str], bool],
        *,
        without: frozenset[str] = frozenset(),
        schema: str | None = None,
    ) -> Shape:
        """Return the current shape of the tables whose names satisfy ``owns``, without those in ``without``."""
        found = sa.inspect(connection)
        shape = cls()
        for table in {*found.get_table_names(schema)} - without:
            if owns(table):
                shape.columns[table] = {column["name"] for column in found.get_columns(table, schema)}
                shape.indexes[table] = {str(index["name"]) for index in found.get_indexes(table, schema)}
        return shape


def _shape() -> Shape:
    shape: Shape = context.config.attributes["shape"]
    return shape


def create_table(table: str, *items: Any) -> None:
    """Create ``table`` unless it exists."""
    shape = _shape()
    if table not in shape.columns:
        op.create_table(table, *items, **OPTIONS)
        shape.columns[table] = {item.name for item in items if isinstance(item, sa.Column)}
        shape.indexes[table] = set()


def add_columns(table: str, *columns: sa.Column[Any]) -> None:
    """Add the ``columns`` missing from ``table``."""
    present = _shape().columns[table]
    for column in columns:
        if column.name not in present:
            op.add_column(table, column)
            present.add(column.name)


def add_index(table: str, name: str, *columns: str, instead_of: str = "") -> None:
    """Add the index ``name`` unless it exists, and drop the one it replaces."""
    present = _shape().indexes[table]
    if name not in present:
        op.create_index(name, table, list(columns))
        present.add(name)
    drop_index(table, instead_of)


def drop_index(table: str, name: str) -> None:
    """Drop the index ``name`` if it exists."""
    present = _shape().indexes[table]
    if name in present:
        op.drop_index(name, table_name=table)
        present.discard(name)
