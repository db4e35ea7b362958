"""The console that commands print to."""

import re
import sys
from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console

console = Console()
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]+")


def plain(text: str) -> None:
    """Print ``text`` unchanged, never wrapped or coloured: for output that is piped or copied."""
    console.file.write(f"{text}\n")


def print_columns(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows in columns as wide as their longest cells: rich takes seconds for some thousand rows.

    A line's text stays on it; control characters, which may come from outside, become blanks.
    """
    lines = [[_CONTROL.sub(" ", cell) for cell in row] for row in (titles, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    gaps = [*(width + 2 for width in widths[:-1]), 0]
    text = "\n".join(
        "".join(cell + " " * (gap - cell_len(cell)) for cell, gap in zip(line, gaps, strict=True)).rstrip()
        for line in lines
    )
    plain(text)


def print_what_cannot_be_encoded() -> None:
    """Have the streams of this process write characters that their encoding lacks as escapes, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
