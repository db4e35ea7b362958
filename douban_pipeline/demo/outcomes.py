"""The result of each system's demo: a row of the final table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape

from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.terminal_table import Table


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """Result of a system's demo.

    Attributes:
        well: Whether everything succeeded.
        done: Short description of what was done.
    """

    well: bool
    done: str


def print_outcomes(outcomes: Sequence[tuple[str, DemoOutcome, float]], console: Console) -> None:
    """Print one row per system with its seconds."""
    heads = (terminal_text("system"), terminal_text("what was done"), terminal_text("seconds"), "")
    table = Table(*heads, title=terminal_text("The demo"), title_justify="left")
    for name, outcome, seconds in outcomes:
        table.add_row(
            name,
            escape(outcome.done),
            f"{seconds:.0f}",
            f"[green]{terminal_text('ok')}[/]" if outcome.well else f"[red]{terminal_text('failed')}[/]",
        )
    table.caption = f"{sum(seconds for _, _, seconds in outcomes):.0f} {terminal_text('seconds')}"
    console.print(table)
