"""The results as a table: what was measured, on either library, and whether it kept to its target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.markup import escape
from rich.table import Column, Table

from douban_pipeline_tests.harness.benchmarks.measuring import Figure
from douban_pipeline_tests.harness.benchmarks.results import Outcome, Results

RATES = ("/s", "%")
"""Units of which more is better."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure on all libraries.

    Attributes:
        measure: Whose it is.
        name: What it tells.
        figures: By size of the library, the smallest first.
        earlier: What an earlier run found, by size.
    """

    measure: str
    name: str
    figures: dict[int, Figure]
    earlier: dict[int, Figure]

    @property
    def unit(self) -> str:
        """The figure's unit."""
        return next(iter(self.figures.values())).unit

    @property
    def growth(self) -> float | None:
        """How often the smallest library's figure the largest one's is; None for one library, or from nothing."""
        values = [figure.value for figure in self.figures.values()]
        return values[-1] / values[0] if len(values) > 1 and values[0] > 0 else None

    @property
    def misses(self) -> list[str]:
        """What of the target is not kept, for people to read."""
        found = []
        for size, figure in self.figures.items():
            target = figure.target
            if target and target.most is not None and figure.value > target.most:
                found.append(
                    f"{shown(figure.value, figure.unit)} at {size:,}, at most {shown(target.most, figure.unit)}"
                )
            if target and target.least is not None and figure.value < target.least:
                found.append(
                    f"{shown(figure.value, figure.unit)} at {size:,}, at least {shown(target.least, figure.unit)}"
                )
        most = self._most_growth
        if self.growth is not None and most is not None and self.growth > most:
            found.append(f"grows {self.growth:.2f}×, at most {most:g}×")
        return found

    @property
    def met(self) -> bool | None:
        """Whether the target is kept; None if there is none."""
        return not self.misses if any(figure.target for figure in self.figures.values()) else None

    @property
    def target(self) -> str:
        """The target, for people to read."""
        said: dict[str, None] = {}
        for figure in self.figures.values():
            if figure.target and figure.target.most is not None:
                said[f"≤ {shown(figure.target.most, figure.unit)}"] = None
            if figure.target and figure.target.least is not None:
                said[f"≥ {shown(figure.target.least, figure.unit)}"] = None
        if self._most_growth is not None:
            said[f"growth ≤ {self._most_growth:g}×"] = None
        return ", ".join(said)

    @property
    def _most_growth(self) -> float | None:
        limits = [figure.target.growth for figure in self.figures.values() if figure.target]
        return next((limit for limit in limits if limit is not None), None)

    @property
    def ratios(self) -> str:
        """What it costs, on each library, as a multiple of what the best of the libraries alone does."""
        return " / ".join(f"{cost:.2f}×" for cost in map(_cost, self.figures.values()) if cost is not None)

    @property
    def since(self) -> str:
        """What it costs, on each library, as a multiple of what the earlier run found."""
        pairs = [(figure, self.earlier[size]) for size, figure in self.figures.items() if size in self.earlier]
        costs = [_multiple(now.value, then.value, now.unit) for now, then in pairs]
        return " / ".join(f"{cost:.2f}×" for cost in costs if cost is not None)


def _cost(figure: Figure) -> float | None:
    return None if figure.baseline is None else _multiple(figure.value, figure.baseline, figure.unit)


def _multiple(value: float, other: float, unit: str) -> float | None:
    above, below = (other, value) if unit in RATES else (value, other)
    return above / below if below > 0 else None


def shown(value: float, unit: str) -> str:
    """Return a number with its unit, in three digits or so."""
    size = abs(value)
    digits = 0 if size >= 100 or value == int(value) else 1 if size >= 10 else 2 if size >= 1 else 3
    number = f"{value:,.{digits}f}"
    return f"{number} {unit}".strip() if unit not in RATES else f"{number}{' ' if unit == '%' else ''}{unit}"


def rows_of(results: Results, earlier: Results | None = None) -> list[Row]:
    """Return a row for each figure, in the order in which they were measured."""
    before = {(outcome.measure, size, figure.name): figure for outcome, size, figure in _figures(earlier)}
    rows: dict[tuple[str, str], Row] = {}
    for outcome, size, figure in sorted(_figures(results), key=lambda item: item[1]):
        row = rows.setdefault((outcome.measure, figure.name), Row(outcome.measure, figure.name, {}, {}))
        row.figures[size] = figure
        then = before.get((outcome.measure, size, figure.name))
        if then is not None:
            row.earlier[size] = then
    order = list(dict.fromkeys(outcome.measure for outcome in results.outcomes))
    return sorted(rows.values(), key=lambda row: order.index(row.measure))


def _figures(results: Results | None) -> Iterator[tuple[Outcome, int, Figure]]:
    for outcome in results.outcomes if results else ():
        for figure in outcome.figures:
            yield outcome, outcome.size, figure


def notes_of(row: Row) -> list[str]:
    """Return what a reader has to know of a row's figures, each said once."""
    return list(dict.fromkeys(figure.note for figure in row.figures.values() if figure.note))


def headings(results: Results, compared: bool) -> list[str]:
    """Return the table's headings."""
    sizes = [f"{size:,}" if size else "no library" for size in _sizes(results)]
    found = ["what", "target", *sizes, "growth", "best of the libraries", "cost", "met?"]
    return [*found, "cost since"] if compared else found


def cells(row: Row, results: Results, compared: bool) -> list[str]:
    """Return a row's cells, see `headings`."""
    values = [shown(row.figures[size].value, row.unit) if size in row.figures else "" for size in _sizes(results)]
    growth = "" if row.growth is None else f"{row.growth:.2f}×"
    met = {True: "yes", False: "NO", None: ""}[row.met]
    found = [f"{row.measure}: {row.name}", row.target, *values, growth, _best(row), row.ratios, met]
    return [*found, row.since] if compared else found


def _sizes(results: Results) -> list[int]:
    return sorted({outcome.size for outcome in results.outcomes if outcome.figures})


def _best(row: Row) -> str:
    figures = [figure for figure in row.figures.values() if figure.baseline is not None]
    if not figures:
        return ""
    numbers = " / ".join(shown(figure.baseline, figure.unit) for figure in figures if figure.baseline is not None)
    return f"{numbers} ({figures[0].against})" if figures[0].against else numbers


def rich_table(results: Results, earlier: Results | None = None) -> Table:
    """Return the results as a table for the terminal."""
    compared = earlier is not None
    columns = [Column(heading, overflow="fold") for heading in headings(results, compared)]
    table = Table(*columns, box=box.SIMPLE)
    last = ""
    for row in rows_of(results, earlier):
        if last not in ("", row.measure):
            table.add_section()
        last = row.measure
        style = {True: "", False: "bold red", None: ""}[row.met]
        table.add_row(*map(escape, cells(row, results, compared)), style=style)
    return table


def markdown(results: Results, earlier: Results | None = None) -> str:
    """Return the results as Markdown, with the machine and the notes."""
    compared = earlier is not None
    machine = ", ".join(f"{name} {value}" for name, value in results.machine.items())
    titles = headings(results, compared)
    rows = rows_of(results, earlier)
    lines = [
        f"{results.started_at:%Y-%m-%d %H:%M} UTC, libraries generated from seed {results.seed}.",
        "",
        f"{machine}.",
        "",
        _line(titles),
        _line(["---"] * len(titles)),
        *(_line(cells(row, results, compared)) for row in rows),
        "",
        *(f"- {row.measure}: {row.name}: {note}" for row in rows for note in notes_of(row)),
        *(f"- **missed** {row.measure}: {row.name}: {'; '.join(row.misses)}" for row in rows if row.misses),
        *(f"- **failed** {_where(outcome)}: {outcome.failure.splitlines()[0]}" for outcome in results.failed),
    ]
    return "\n".join(lines) + "\n"


def _line(items: Sequence[str]) -> str:
    return "| " + " | ".join(item.replace("|", "\\|") for item in items) + " |"


def _where(outcome: Outcome) -> str:
    return f"{outcome.measure} at {outcome.size:,}" if outcome.size else outcome.measure


def endings(results: Results, earlier: Results | None = None) -> list[str]:
    """Return what has to be told at the end: targets missed, tables left changed, measures that failed."""
    rows = rows_of(results, earlier)
    return [
        *(f"missed: {row.measure}: {row.name}: {'; '.join(row.misses)}" for row in rows if row.misses),
        *(
            f"changed: {_where(outcome)} did not leave {', '.join(outcome.changed)} as it was"
            for outcome in results.outcomes
            if outcome.changed
        ),
        *(f"failed: {_where(outcome)}: {outcome.failure}" for outcome in results.failed),
    ]
