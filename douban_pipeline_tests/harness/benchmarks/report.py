"""What the benchmarks found: figures beside their targets and what the libraries alone do, as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

from rich import box
from rich.markup import escape
from rich.table import Column, Table

from douban_pipeline_tests.harness.benchmarks.measuring import Figure

RATES = ("/s", "%")
"""Units of which more is better."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one measure went on one library (``size`` 0: on none); ``failure`` is the end of what a failed one said."""

    measure: str
    size: int
    figures: tuple[Figure, ...] = ()
    failure: str = ""

    @property
    def where(self) -> str:
        """The measure and its library."""
        return f"{self.measure} at {self.size:,}" if self.size else self.measure


@dataclass(slots=True)
class Results:
    """Everything that a run found, and on which machine."""

    started_at: datetime
    seed: int
    machine: Mapping[str, str]
    outcomes: list[Outcome] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure by size of the library, the smallest first."""

    measure: str
    name: str
    figures: dict[int, Figure]

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
            at, target = f" at {size:,}" if size else "", figure.target
            value = shown(figure.value, figure.unit)
            if target and target.most is not None and figure.value > target.most:
                found.append(f"{value}{at}, at most {shown(target.most, figure.unit)}")
            if target and target.least is not None and figure.value < target.least:
                found.append(f"{value}{at}, at least {shown(target.least, figure.unit)}")
        most = self._most_growth
        if self.growth is not None and most is not None and self.growth > most:
            found.append(f"grows {self.growth:.2f}×, at most {most:g}×")
        return found

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

    def cells(self, sizes: list[int]) -> list[str]:
        """Return the row of the table; the cost is a multiple of what the best of the libraries alone does."""
        bare = [figure for figure in self.figures.values() if figure.baseline is not None]
        best = " / ".join(shown(figure.baseline or 0.0, self.unit) for figure in bare)
        costs = [_multiple(figure.value, figure.baseline or 0.0, self.unit) for figure in bare]
        return [
            f"{self.measure}: {self.name}",
            self.target,
            *(shown(self.figures[size].value, self.unit) if size in self.figures else "" for size in sizes),
            "" if self.growth is None else f"{self.growth:.2f}×",
            f"{best} ({bare[0].against})" if bare and bare[0].against else best,
            " / ".join(f"{cost:.2f}×" for cost in costs if cost is not None),
            "NO" if self.misses else "yes" if self.target else "",
        ]


def _multiple(value: float, other: float, unit: str) -> float | None:
    above, below = (other, value) if unit in RATES else (value, other)
    return above / below if below > 0 else None


def shown(value: float, unit: str) -> str:
    """Return a number with its unit, in three digits or so."""
    size = abs(value)
    digits = 0 if size >= 100 or value == int(value) else 1 if size >= 10 else 2 if size >= 1 else 3
    number = f"{value:,.{digits}f}"
    return f"{number} {unit}".strip() if unit not in RATES else f"{number}{' ' if unit == '%' else ''}{unit}"


def rows_of(results: Results) -> list[Row]:
    """Return a row for each figure, in the order in which they were measured."""
    rows: dict[tuple[str, str], Row] = {}
    for outcome in sorted(results.outcomes, key=lambda each: each.size):
        for figure in outcome.figures:
            row = rows.setdefault((outcome.measure, figure.name), Row(outcome.measure, figure.name, {}))
            row.figures[outcome.size] = figure
    order = list(dict.fromkeys(outcome.measure for outcome in results.outcomes))
    return sorted(rows.values(), key=lambda row: order.index(row.measure))


def table_of(results: Results) -> Table:
    """Return the results as a table for the terminal."""
    sizes = sorted({outcome.size for outcome in results.outcomes if outcome.figures})
    libraries = [f"{size:,}" if size else "no library" for size in sizes]
    headings = ["what", "target", *libraries, "growth", "best of the libraries", "cost", "met?"]
    table = Table(*(Column(heading, overflow="fold") for heading in headings), box=box.SIMPLE)
    last = ""
    for row in rows_of(results):
        if last not in ("", row.measure):
            table.add_section()
        last = row.measure
        table.add_row(*map(escape, row.cells(sizes)), style="bold red" if row.misses else "")
    return table


def endings(results: Results) -> Iterator[str]:
    """Yield what has to be told at the end: targets missed, measures that failed."""
    for row in rows_of(results):
        if row.misses:
            yield f"missed: {row.measure}: {row.name}: {'; '.join(row.misses)}"
    for outcome in results.outcomes:
        if outcome.failure:
            yield f"failed: {outcome.where}: {outcome.failure}"


def write_results(path: Path, results: Results) -> None:
    """Write all figures with their notes as JSON, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".part")
    half.write_text(json.dumps(asdict(results), ensure_ascii=False, indent=1, default=str), encoding="utf-8")
    half.replace(path)
