"""Rows of a list as a pandas table, and the table as a CSV file, a few thousand rows at a time.

Outside text in cells is shown unchanged and never evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import IO, TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from douban_pipeline.core.ui.lists.list_page import ListPage, Row, cell_text

if TYPE_CHECKING:
    from pandas import DataFrame

FORMULA_SIGNS = tuple("=+-@＝＋－＠")
"""First characters of cells that a spreadsheet evaluates."""

_SIGNS = (*FORMULA_SIGNS, "\t", "\r", "\n")


def protected(text: str) -> str:
    """Return ``text`` so that a spreadsheet shows it and does not evaluate it: a possible formula gets a ``'``."""
    line = " ".join(text.replace("\0", " ").split())
    # A text that already begins with ' gets another one, so that removing one restores the original.
    return f"'{line}" if line.startswith((*FORMULA_SIGNS, "'")) or text.startswith(_SIGNS) else line


def unprotected(text: str) -> str:
    """Return the original of a text from `protected`, except for spaces around it."""
    line = text.strip()
    return line[1:] if line.startswith("'") else line


STEP = 2000


def batches(rows: Iterable[Row], size: int = STEP) -> Iterator[list[Row]]:
    """Yield ``rows`` in lists of ``size``."""
    iterator = iter(rows)
    while batch := list(islice(iterator, size)):
        yield batch


def frame_of(page: ListPage, rows: Sequence[Row]) -> DataFrame:
    """Return rows as a table whose columns are the keys of the list's columns; missing cells are None."""
    import pandas  # imported here because loading it takes a third of a second

    keys = [column.key for column in page.columns]
    # As objects: otherwise a column of integers with missing values would become floats.
    return pandas.DataFrame([[row.get(key) for key in keys] for row in rows], columns=keys, dtype=object)


def write_csv(page: ListPage, frame: DataFrame, zone: ZoneInfo, file: IO[str], *, first: bool) -> None:
    """Write the CSV columns of a table to a file; cells are protected from being read as formulas.

    Args:
        page: The list.
        frame: From `frame_of`.
        zone: Time zone in which times are written.
        file: Opened without newline translation.
        first: Whether to begin with the headings.
    """

    def text(cell: Any) -> str:
        shown = cell_text(cell, zone)
        return shown if isinstance(cell, int | float) else protected(shown)

    read = {column.key: column.head for column in page.read_columns}
    table = frame[list(read)].map(text).rename(columns=read)
    table.to_csv(file, index=False, header=first, lineterminator="\r\n")
