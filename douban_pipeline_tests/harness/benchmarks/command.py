"""The benchmarks' command line."""

from __future__ import annotations

import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from douban_pipeline.douban.settings import PREFIX
from douban_pipeline_tests.harness.benchmarks import machine
from douban_pipeline_tests.harness.benchmarks.measuring import LARGE, SMALL, Measure
from douban_pipeline_tests.harness.benchmarks.prepare import Place
from douban_pipeline_tests.harness.benchmarks.registry import MEASURES, module_of, sizes_for
from douban_pipeline_tests.harness.benchmarks.report import endings, markdown, rich_table, rows_of
from douban_pipeline_tests.harness.benchmarks.results import (
    Results,
    ResultsError,
    read_results,
    write_results,
)
from douban_pipeline_tests.harness.benchmarks.runner import LIMIT_SECONDS, Runner, Step
from douban_pipeline_tests.harness.rig.databases import MARIADB, server_url
from douban_pipeline_tests.harness.rig.processes import RigError

WIDE = 180
console = Console(width=None if sys.stdout.isatty() else WIDE)  # a log file has room
SEED = 1
FAILED, STRICT, INTERRUPTED = 1, 1, 130


def default_folder() -> Path:
    """Return where results go unless something else is said."""
    return Path(os.environ.get(f"{PREFIX}HOME") or ".douban_pipeline") / "benchmarks"


def run(
    sizes: Annotated[str, typer.Option(help="Videos in each library, with commas between.")] = f"{SMALL},{LARGE}",
    only: Annotated[
        list[str] | None, typer.Option(help="Measures to do, with commas between; all if left out.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="What the libraries are generated from.")] = SEED,
    out: Annotated[Path | None, typer.Option(help="Folder for the results.")] = None,
    keep: Annotated[
        bool, typer.Option("--keep/--drop", help="Keep the libraries: the next run need not make them.")
    ] = False,
    against: Annotated[Path | None, typer.Option(help="Results of an earlier run (JSON) to compare with.")] = None,
    limit: Annotated[float, typer.Option(min=1, help="Seconds after which a measure has failed.")] = LIMIT_SECONDS,
    strict: Annotated[bool, typer.Option(help="Fail if a target is missed.")] = False,
    show: Annotated[bool, typer.Option("--list", help="Show the measures and do nothing.")] = False,
) -> None:
    """Measure the pipeline on MariaDB, on a generated library of 170,000 videos and one of 1,700,000.

    Libraries are databases of their own on the server of DOUBAN_TEST_MARIADB_URL, dropped afterwards.
    """
    if show:
        _list()
        return
    wanted, counts = _wanted([name.strip() for some in only or () for name in some.split(",")]), _counts(sizes)
    try:
        earlier = read_results(against) if against else None
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever ends us wants the same as by Ctrl-C
        results, folder = _measure(wanted, counts, seed, (out or default_folder()).absolute(), keep, limit)
    except (RigError, ResultsError) as error:
        _give_up(str(error))
    except KeyboardInterrupt:
        console.print("stopped: nothing runs any more")
        raise typer.Exit(INTERRUPTED) from None
    _tell(results, earlier, folder)
    if results.failed:
        raise typer.Exit(FAILED)
    if strict and any(row.met is False for row in rows_of(results)):
        raise typer.Exit(STRICT)


def _measure(
    wanted: list[Measure], sizes: tuple[int, ...], seed: int, out: Path, keep: bool, limit: float
) -> tuple[Results, Path]:
    """Do the measures and return what came of them, and the folder that tells more."""
    started = datetime.now(UTC)
    folder = out / f"{started:%Y%m%d-%H%M%S}"
    try:
        results = Results(started, seed, sizes, machine.describe(server_url(MARIADB)))
    except Exception as error:
        shown = server_url(MARIADB).render_as_string(hide_password=True)
        raise RigError(f"{shown} cannot be used ({error}); {MARIADB[0]} names another server") from error
    if warning := machine.busy():
        console.print(f"[yellow]{escape(warning)}[/yellow]")
    with console.status("starting") as status:

        def say(words: str) -> None:
            status.update(escape(words))
            if not console.is_terminal and ": " not in words:
                tell(words)

        def tell(words: str) -> None:
            console.print(escape(words), highlight=False)

        runner = Runner(seed, folder, keep, say, tell, limit)
        for size in sorted({size for measure in wanted for size in sizes_for(measure, sizes)}):
            steps = [Step(item, module_of(item)) for item in wanted if size in sizes_for(item, sizes)]
            try:
                runner.run(steps, Place(size, seed), results)
            finally:
                # After each library: who stops the second one still has the first.
                write_results(folder / "results.json", results)
    return results, folder


def _tell(results: Results, earlier: Results | None, folder: Path) -> None:
    (folder / "results.md").write_text(markdown(results, earlier), encoding="utf-8")
    console.print(rich_table(results, earlier))
    for size, seconds in results.preparation.items():
        if size:
            console.print(f"library of {size:,}: made ready in {seconds:.0f} s", highlight=False)
    for line in endings(results, earlier):
        console.print(f"[red]{escape(line)}[/red]", highlight=False, soft_wrap=True)
    console.print(f"results    {escape(str(folder))}", highlight=False, soft_wrap=True)


def _list() -> None:
    table = Table("measure", "what it does", "libraries")
    for measure in MEASURES:
        table.add_row(measure.name, measure.meaning, ", ".join(f"{size:,}" for size in measure.sizes) or "none")
    console.print(table)


def _wanted(names: list[str]) -> list[Measure]:
    known = {_plain(measure.name): measure for measure in MEASURES}
    for name in names:
        if _plain(name) not in known:
            _give_up(f"there is no measure {name!r}: give {', '.join(measure.name for measure in MEASURES)}")
    return [measure for measure in MEASURES if not names or _plain(measure.name) in map(_plain, names)]


def _plain(name: str) -> str:
    return name.replace("-", "_")


def _counts(sizes: str) -> tuple[int, ...]:
    try:
        found = sorted({int(size.strip().replace("_", "")) for size in sizes.split(",")})
    except ValueError:
        found = [0]
    if found[0] < 1:
        _give_up(f"--sizes {sizes!r} is not allowed: give numbers of videos, for instance {SMALL},{LARGE}")
    return tuple(found)


def _give_up(message: str) -> NoReturn:
    Console(stderr=True).print(escape(message), highlight=False, soft_wrap=True)
    raise typer.Exit(2)


def main() -> None:
    """Run the command line."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(run)
    app(prog_name="python -m douban_pipeline_tests.harness.benchmarks")
