"""Metadata of materializations."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from douban_pipeline.core.ui.presentation import MOST_ROWS, table


def tables_with_rows(
    tables: Mapping[str, Sequence[Mapping[str, Any]]], *, most: int = MOST_ROWS
) -> dict[str, dg.MetadataValue]:
    """Return each of ``tables`` as Markdown under its name, leaving out those without rows."""
    return {name: dg.MetadataValue.md(table(rows, most=most)) for name, rows in tables.items() if rows}
