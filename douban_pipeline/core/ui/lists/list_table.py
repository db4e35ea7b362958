"""The rows of a list as a CSV file; outside text in cells is shown unchanged and never evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from douban_pipeline.core.files import replaced
from douban_pipeline.core.ui.lists.list_page import ListColumn, Row, cell_text, read_columns

Problem = Callable[[Path, OSError], Exception]

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


def write_csv(
    path: Path, columns: Sequence[ListColumn], batches: Iterable[Sequence[Row]], zone: ZoneInfo, problem: Problem
) -> int:
    """Replace a CSV file that a spreadsheet reads, and return the number of its rows.

    Args:
        path: The file, which a web server may serve.
        columns: The list's.
        batches: Its rows, a few hundred at a time.
        zone: Time zone in which times are written.
        problem: Returns the error to raise if it cannot be written.
    """
    import pandas  # imported here because loading it takes a third of a second

    def text(cell: Any) -> str:
        shown = cell_text(cell, zone)
        return shown if isinstance(cell, int | float) else protected(shown)

    read, count = read_columns(columns), 0
    heads = [column.head for column in read]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced(path, 0o644) as part, part.open("w", encoding="utf-8-sig", newline="") as file:
            pandas.DataFrame(columns=heads).to_csv(file, index=False, lineterminator="\r\n")
            for rows in batches:
                cells = [[text(row.get(column.key)) for column in read] for row in rows]
                pandas.DataFrame(cells, columns=heads).to_csv(file, index=False, header=False, lineterminator="\r\n")
                count += len(rows)
    except OSError as error:
        raise problem(path, error) from error
    return count
