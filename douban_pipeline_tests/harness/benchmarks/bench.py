"""A bench of one system by itself: each figure as it is known, then all in the table of the benchmarks, and a file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from douban_pipeline_tests.harness.benchmarks.measuring import Figure
from douban_pipeline_tests.harness.benchmarks.report import endings, rich_table, shown
from douban_pipeline_tests.harness.benchmarks.results import Outcome, Results, write_results

console = Console(width=160, highlight=False)


def say(words: str) -> None:
    """Tell what is being done, with the machine's load."""
    console.print(f"load {os.getloadavg()[0]:4.1f}  {escape(words)}", soft_wrap=True)


def bench(name: str, figures: Iterable[Figure], file: Path | None = None) -> Results:
    """Measure, print every figure when it is known and all of them beside their targets; write them to ``file``."""
    began, found = time.perf_counter(), list[Figure]()
    results = Results(datetime.now(UTC), 1, (), {"cores": str(os.cpu_count())})
    for figure in figures:
        found.append(figure)
        say(f"{figure.name}: {shown(figure.value, figure.unit)}")
    results.outcomes.append(Outcome(name, 0, time.perf_counter() - began, tuple(found)))
    console.print(rich_table(results))
    for line in endings(results):
        console.print(f"[red]{escape(line)}[/red]", soft_wrap=True)
    if file is not None:
        write_results(file, results)
    return results
