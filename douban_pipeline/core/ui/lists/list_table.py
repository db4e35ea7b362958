"""Rows of a list as a table of pandas, and that as a CSV file, some thousand rows at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import IO, TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from douban_pipeline.core.ui.lists.list_page import ListPage, Row, cell_text
from douban_pipeline.core.ui.spreadsheet_cells import protected

if TYPE_CHECKING:
    from pandas import DataFrame

STEP = 2000


def batches(rows: Iterable[Row], size: int = STEP) -> Iterator[list[Row]]:
    """Yield ``rows`` in lists of ``size``."""
    iterator = iter(rows)
    while batch := list(islice(iterator, size)):
        yield batch


def frame_of(page: ListPage, rows: Sequence[Row]) -> DataFrame:
    """Return rows as a table with the keys of the list's columns as its own; what a row lacks is None."""
    import pandas  # takes a third of a second to load; only who makes tables has to wait for it

    keys = [column.key for column in page.columns]
    # As objects: a column of whole numbers and nothing would turn into fractions.
    return pandas.DataFrame([[row.get(key) for key in keys] for row in rows], columns=keys, dtype=object)


def write_csv(page: ListPage, frame: DataFrame, zone: ZoneInfo, file: IO[str], *, first: bool) -> None:
    """Write the columns of a table that are read to a CSV file; nothing in it is a formula.

    Args:
        page: The list.
        frame: From `frame_of`.
        zone: In which times are shown.
        file: Opened without translation of line ends.
        first: Begin with the heads of the columns.
    """

    def text(cell: Any) -> str:
        shown = cell_text(cell, zone)
        return shown if isinstance(cell, int | float) else protected(shown)

    read = {column.key: column.head for column in page.read_columns}
    table = frame[list(read)].map(text).rename(columns=read)
    table.to_csv(file, index=False, header=first, lineterminator="\r\n")
