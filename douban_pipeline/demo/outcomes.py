"""The result of each system's demo: a row of the final table, and a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.terminal_table import Table
from douban_pipeline.core.ui.templates import render


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """Result of a system's demo.

    Attributes:
        well: Whether everything succeeded.
        done: Short description of what was done.
        page: A page to open; None if the system has none.
    """

    well: bool
    done: str
    page: Path | None = None


@dataclass(frozen=True, slots=True)
class Chapter:
    """A section of a page: lines of text, then a table; either may be empty. Rows have the length of ``heads``."""

    key: str
    title: str
    lines: Sequence[str] = ()
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[object]] = field(default_factory=tuple)


def write_page(path: Path, title: str, about: str, chapters: Sequence[Chapter]) -> Path:
    """Write the result of a system's demo as a page; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    page = render(
        __package__, "outcome.html.j2", title=title, badge="示例", about=about, lang="zh-Hans", chapters=chapters
    )
    path.write_text(page, encoding="utf-8")
    return path


def print_outcomes(outcomes: Sequence[tuple[str, DemoOutcome, float]], console: Console) -> None:
    """Print one row per system with its seconds, then the address of each system's page."""
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
    for name, outcome, _ in outcomes:
        if outcome.page is not None:
            console.print(f"{name:<9}  {outcome.page.as_uri()}", highlight=False, soft_wrap=True)
