"""Names of tables and indexes under the prefix of the site, and the options that all tables share."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import Index, MetaData, Table
from sqlalchemy.schema import SchemaItem

from douban_pipeline.core.platform_tables import MYSQL_OPTIONS


@dataclass(frozen=True, slots=True)
class TableMaker:
    """Makes tables under one prefix: with ``mac_``, ``video`` becomes ``mac_douban_video``."""

    prefix: str
    metadata: MetaData = field(default_factory=MetaData)

    def name(self, suffix: str) -> str:
        """Return the full name of a table, an index or a constraint."""
        return f"{self.prefix}douban_{suffix}"

    def table(self, suffix: str, *items: SchemaItem) -> Table:
        """Return a new table with these columns, indexes and constraints."""
        return Table(self.name(suffix), self.metadata, *items, **MYSQL_OPTIONS)

    def index(self, suffix: str, *columns: str) -> Index:
        """Return an index; ``suffix`` begins with the table's, because SQLite names indexes per database."""
        return Index(f"ix_{self.name(suffix)}", *columns)
