"""The benchmarks of all systems: each measure in a process of its own, on a library that is ready for it."""

from __future__ import annotations

import ast
import inspect
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from sqlalchemy import URL, text
from sqlalchemy import inspect as tables_of

from douban_pipeline.douban.chain.due.intake import Intake
from douban_pipeline.douban.settings import PREFIX
from douban_pipeline.douban.store import migrations
from douban_pipeline_tests.harness.benchmarks import machine
from douban_pipeline_tests.harness.benchmarks.measures import (
    archive_size,
    budget,
    comments,
    duplicates,
    feeds,
    feeds_delays,
    instance,
    pages,
    queueing,
    ratios,
    rescoring,
    review,
    sensor_look,
    shard_run,
    taking_in,
    tmdb,
)
from douban_pipeline_tests.harness.benchmarks.measuring import LARGE, SMALL, Figure, Measure, Say, World
from douban_pipeline_tests.harness.benchmarks.report import (
    Outcome,
    Results,
    endings,
    rows_of,
    table_of,
    write_results,
)
from douban_pipeline_tests.harness.generated.filling import fill
from douban_pipeline_tests.harness.rig.databases import MARIADB, scratch_database, server_url
from douban_pipeline_tests.harness.rig.processes import RigError

MODULES = (
    taking_in,  # first: what it takes in is what the others work on
    sensor_look,
    queueing,
    shard_run,
    budget,
    duplicates,
    rescoring,
    archive_size,
    instance,
    pages,
    feeds,
    feeds_delays,
    tmdb,
    comments,
    review,
    ratios,
)
MEASURES: tuple[Measure, ...] = tuple(measure for module in MODULES for measure in module.MEASURES)
TAKES_IN = "initialise"
"""The measure that takes the videos in, and needs nobody to have done so before."""
LIMIT_SECONDS = 7_200.0
FAILED, INTERRUPTED = 1, 130
_PATIENCE_SECONDS = 60.0
console = Console(width=None if sys.stdout.isatty() else 180, highlight=False)  # a log file has room


def run(
    sizes: Annotated[str, typer.Option(help="Videos in each library, with commas between.")] = f"{SMALL},{LARGE}",
    only: Annotated[str, typer.Option(help="Measures to do, with commas between; all if left out.")] = "",
    given: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE of what --list shows in brackets; again for more.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="What the libraries are generated from.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Folder for results.json.")] = None,
    strict: Annotated[bool, typer.Option(help="Fail if a target is missed.")] = False,
    show: Annotated[bool, typer.Option("--list", help="Show the measures and do nothing.")] = False,
) -> None:
    """Measure all systems, Douban's on MariaDB with a generated library of 170,000 videos and one of 1,700,000.

    Libraries are databases of their own on the server of DOUBAN_TEST_MARIADB_URL, dropped afterwards.
    """
    if show:
        _list()
        return
    wanted, counts, options = _wanted(only), _counts(sizes), _options(given or ())
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever ends us wants the same as by Ctrl-C
    folder = out or Path(os.environ.get(f"{PREFIX}HOME") or ".douban_pipeline") / "benchmarks"
    try:
        results = Results(datetime.now(UTC), seed, machine.describe(server_url(MARIADB)))
        if warning := machine.busy():
            console.print(f"[yellow]{escape(warning)}[/yellow]")
        for size in sorted({size for measure in wanted for size in sizes_for(measure, counts)}):
            here = [measure for measure in wanted if size in sizes_for(measure, counts)]
            results.outcomes += _measure(here, size, seed, options)
            # After each library: who stops the second one still has the first.
            write_results(folder / "results.json", results)
    except RigError as error:
        _give_up(str(error))
    except KeyboardInterrupt:
        console.print("stopped: nothing runs any more")
        raise typer.Exit(INTERRUPTED) from None
    console.print(table_of(results))
    for line in endings(results):
        console.print(f"[red]{escape(line)}[/red]", soft_wrap=True)
    console.print(f"results    {escape(str(folder / 'results.json'))}", soft_wrap=True)
    missed = strict and any(row.misses for row in rows_of(results))
    if missed or any(outcome.failure for outcome in results.outcomes):
        raise typer.Exit(FAILED)


def _measure(measures: Sequence[Measure], size: int, seed: int, options: Mapping[str, Any]) -> Iterator[Outcome]:
    left = list(measures)
    while left:
        with _library(size, seed, taken_in=left[0].name != TAKES_IN) as url:
            for measure in list(left):
                left.pop(0)
                yield (outcome := _outcome(measure, size, seed, url, options))
                if outcome.failure and size:
                    break


def _outcome(measure: Measure, size: int, seed: int, url: URL | None, options: Mapping[str, Any]) -> Outcome:
    known = inspect.signature(measure.run).parameters
    wanted = {name: value for name, value in options.items() if name in known}
    title = f"{measure.name} at {size:,}" if size else measure.name
    console.print(f"{title}: {measure.meaning}")
    began = time.monotonic()
    try:
        figures = in_a_process(_figures, measure, size, seed, wanted, url=url)
    except MeasureError as error:
        console.print(f"[red]{escape(title)} failed[/red]")
        return Outcome(measure.name, size, failure=str(error))
    console.print(f"{title}: {len(figures)} figures in {time.monotonic() - began:.0f} s")
    return Outcome(measure.name, size, figures)


@contextmanager
def _library(size: int, seed: int, *, taken_in: bool) -> Iterator[URL | None]:
    if not size:
        yield None
        return
    with scratch_database(MARIADB, f"bench_{size}") as url:
        in_a_process(_fill, size, seed, taken_in, url=url)
        yield url


def _fill(say: Say, _scratch: Path, size: int, seed: int, taken_in: bool) -> None:
    world = World(size, seed, _scratch, say)
    services, prefix = world.services, world.services.settings.table_prefix
    fill(services.engine, size, seed=seed, now=services.clock.now(), prefix=prefix, progress=say)
    migrations.tree_of(prefix).upgrade(services.engine)
    services.gate.status()  # makes the sources' rows, which no measure then adds
    if taken_in:
        Intake(services.engine, services.tables, services.cms, services.clock).initialise(
            progress=lambda done: say(f"{done:,} videos taken in")
        )
    with services.engine.connect() as connection:
        # Plans are not to depend on when the server last looked at its tables by itself.
        for name in tables_of(connection).get_table_names():
            connection.execute(text(f"ANALYZE TABLE `{name}`")).all()
    services.close()


def _figures(
    say: Say, scratch: Path, measure: Measure, size: int, seed: int, options: Mapping[str, Any]
) -> tuple[Figure, ...]:
    return tuple(measure.run(World(size, seed, scratch, say), **options))


class MeasureError(Exception):
    """A process that measures failed; the message is the end of what it said."""


def in_a_process(job: Callable[..., Any], *given: Any, url: URL | None) -> Any:
    """Return what a job returns in a process of its own, in which the library at ``url`` is the pipeline's.

    The job is given `Say` and an empty folder first. Who is interrupted lets it clean up.

    Raises:
        MeasureError: It failed.
    """
    context = get_context("spawn")
    here, there = context.Pipe(duplex=False)
    scratch = Path(tempfile.mkdtemp(prefix="bench-"))
    address = url.render_as_string(hide_password=False) if url is not None else ""
    process = context.Process(target=_work, args=(there, address, scratch, job, *given))
    process.start()
    there.close()
    until = time.monotonic() + LIMIT_SECONDS
    try:
        while here.poll(max(until - time.monotonic(), 0)):
            kind, value = here.recv()
            if kind == "said":
                console.print(f"  load {os.getloadavg()[0]:4.1f}  {escape(value)}", soft_wrap=True)
            elif kind == "done":
                return value
            else:
                raise MeasureError(value)
        raise MeasureError(f"not done after {LIMIT_SECONDS:.0f} s")
    except EOFError:
        process.join()
        raise MeasureError(f"ended with exit code {process.exitcode}") from None
    finally:
        if process.is_alive() and process.pid:
            process.join(1)
            with _uninterrupted():
                if process.is_alive():
                    os.kill(process.pid, signal.SIGINT)
                    process.join(_PATIENCE_SECONDS)
                process.kill()
        shutil.rmtree(scratch, ignore_errors=True)


def _work(there: Connection, url: str, scratch: Path, job: Callable[..., Any], *given: Any) -> None:
    os.setsid()  # Ctrl-C in the terminal is our parent's to hand on
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]
    settings = {"HOME": str(scratch / "home"), "DATABASE_URL": url, "TABLE_PREFIX": "mac_", "DRY_RUN": "false"}
    os.environ.update({PREFIX + name: value for name, value in settings.items() if value})
    try:
        there.send(("done", job(lambda words: there.send(("said", words)), scratch, *given)))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BaseException:  # noqa: BLE001 (whatever it is, our parent reports it)
        there.send(("failed", traceback.format_exc()[-3_000:]))


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let a second Ctrl-C wait: what it would cut off is the cleaning up."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def sizes_for(measure: Measure, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return those of ``sizes`` on which ``measure`` is done: (0,) for one that needs no library.

    A size of somebody's own, for a quick try, suits every measure.
    """
    if not measure.sizes:
        return (0,)
    return tuple(size for size in sizes if size in measure.sizes or size not in (SMALL, LARGE))


def _list() -> None:
    table = Table("measure", "what it does", "libraries")
    for measure in MEASURES:
        options = [str(each) for each in list(inspect.signature(measure.run).parameters.values())[1:]]
        settable = f" [{', '.join(options)}]" if options else ""
        libraries = ", ".join(f"{size:,}" for size in measure.sizes) or "none"
        table.add_row(measure.name, escape(measure.meaning + settable), libraries)
    console.print(table)


def _wanted(only: str) -> list[Measure]:
    names = [name.strip().replace("_", "-") for name in only.split(",") if name.strip()]
    for name in names:
        if not any(_is(measure, name) for measure in MEASURES):
            _give_up(f"there is no measure {name!r}: give {', '.join(measure.name for measure in MEASURES)}")
    return [measure for measure in MEASURES if not names or any(_is(measure, name) for name in names)]


def _is(measure: Measure, name: str) -> bool:
    return measure.name == name or measure.name.startswith(f"{name}-")


def _counts(sizes: str) -> tuple[int, ...]:
    try:
        found = sorted({int(size.strip().replace("_", "")) for size in sizes.split(",")})
    except ValueError:
        found = [0]
    if found[0] < 1:
        _give_up(f"--sizes {sizes!r} is not allowed: give numbers of videos, for instance {SMALL},{LARGE}")
    return tuple(found)


def _options(given: Sequence[str]) -> dict[str, Any]:
    """Return what is set, numbers as numbers.

    What no measure has is refused: it would be left out without a word.
    """
    found: dict[str, Any] = {}
    known = {name for measure in MEASURES for name in [*inspect.signature(measure.run).parameters][1:]}
    for each in given:
        name, _, value = each.partition("=")
        if name not in known:
            _give_up(f"--set {each!r}: nothing is called {name!r}; --list shows what can be set")
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[name] = value
    return found


def _give_up(message: str) -> NoReturn:
    Console(stderr=True).print(escape(message), highlight=False, soft_wrap=True)
    raise typer.Exit(2)
