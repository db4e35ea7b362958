"""Tables that commands print, readable in a narrow terminal, too. Apart from the console: few commands print any."""

from collections.abc import Iterator

from rich import table as rich_table
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.text import Text

_NARROW = 60
"""Columns of a terminal below which a table that does not fit is printed row by row."""


class Table(rich_table.Table):
    """A table that a narrow terminal shows as one line a cell, each under the name of its column."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table as it fits."""
        whole = Measurement.get(console, options.update(max_width=10_000), self).maximum
        if options.max_width < _NARROW and whole > options.max_width:
            yield from self._rows_in_lines(console)
        else:
            yield from super().__rich_console__(console, options)

    def _rows_in_lines(self, console: Console) -> Iterator[Text]:
        if self.title:
            yield _text(console, self.title)
        for cells in zip(*(column.cells for column in self.columns), strict=True):
            first, *others = (_text(console, cell) for cell in cells)
            first.stylize("bold")
            yield first
            heads = [_text(console, column.header) if self.show_header else Text() for column in self.columns[1:]]
            for head, cell in zip(heads, others, strict=True):
                if cell.plain.strip():
                    yield Text.assemble("  ", *((head, ": ") if head.plain else ()), cell)


def _text(console: Console, cell: RenderableType) -> Text:
    return console.render_str(cell) if isinstance(cell, str) else cell if isinstance(cell, Text) else Text(str(cell))
