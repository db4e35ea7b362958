"""Steps of migrations that may be done again: servers without transactions for DDL keep what an upgrade did before it
was cut off."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

OPTIONS: Any = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mysql_row_format": "DYNAMIC",
}


def create_table(table: str, *items: Any) -> None:
    """Create ``table`` unless it is there."""
    if not sa.inspect(op.get_bind()).has_table(table):
        op.create_table(table, *items, **OPTIONS)


def add_columns(table: str, *columns: sa.Column[Any]) -> None:
    """Add the ``columns`` that ``table`` does not have."""
    present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)}
    for column in columns:
        if column.name not in present:
            op.add_column(table, column)


def add_index(table: str, name: str, *columns: str, instead_of: str = "") -> None:
    """Add the index ``name`` unless it is there, and drop the one it replaces."""
    present = {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(table)}
    if name not in present:
        op.create_index(name, table, list(columns))
    if instead_of in present:
        op.drop_index(instead_of, table_name=table)
