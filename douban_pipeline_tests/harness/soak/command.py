"""The command `python -m douban_pipeline_tests.harness.soak`: its options, Ctrl-C, and what it leaves behind."""

from __future__ import annotations

import contextlib
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import stamina
import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape

from douban_pipeline_tests.harness.benchmarks.machine import busy, describe
from douban_pipeline_tests.harness.rig.processes import RigError
from douban_pipeline_tests.harness.soak.course import LIVES, Course
from douban_pipeline_tests.harness.soak.ground import Ground, Scale
from douban_pipeline_tests.harness.soak.report import Report

console = Console()
OUT = Path(".douban_pipeline") / "soak"
ALL = (*LIVES,)
"""The systems that can live in a soak."""
HELD, VIOLATED, BROKEN, STARVED, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit status: all invariants held; one was violated; the rig did not work; work still waited for its turn in the end
and nothing was violated; it was stopped before it was audited."""


def run(
    minutes: Annotated[
        float, typer.Option(min=1, help="How long life and troubles go on; the drain comes on top.")
    ] = 30,
    videos: Annotated[int, typer.Option(min=64, help="Videos in the library at the beginning.")] = 3_000,
    seed: Annotated[int, typer.Option(help="What the library, life and troubles come from.")] = 1,
    systems: Annotated[str, typer.Option(help=f"Which systems live, of {','.join(ALL)}; empty for all.")] = "",
    out: Annotated[Path, typer.Option(help="Folder for the report and the journal.")] = OUT,
    keep: Annotated[bool, typer.Option(help="Keep the database's data and all logs for a look afterwards.")] = False,
) -> None:
    """Let all systems live while everything goes wrong, and prove that every invariant held.

    Ctrl-C ends life and troubles early: what waits is done, and all is audited. A second Ctrl-C leaves the drain, and
    audits what there is. A third stops at once.
    """
    scale, chosen = Scale(minutes, videos, seed), chosen_systems(systems)
    scratch = Path(tempfile.mkdtemp(prefix="douban-soak-"))
    out = out.absolute()
    stamina.set_active(True)
    stamina.instrumentation.set_on_retry_hooks([])
    try:
        report = soak(scale, chosen, scratch, out)
    except RigError as error:
        console.print(f"[red]the rig does not work:[/red] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(BROKEN) from error
    except KeyboardInterrupt:
        console.print("stopped; nothing was audited")
        raise typer.Exit(INTERRUPTED) from None
    finally:
        if keep:
            console.print(
                f"kept: {scratch} (the database: mariadbd --no-defaults --datadir={scratch}/mariadb/data)",
                soft_wrap=True,
            )
        else:
            shutil.rmtree(scratch, ignore_errors=True)
    console.print(Markdown(report.as_markdown()))
    console.print(f"written: {report.write(out)}", soft_wrap=True)
    raise typer.Exit(VIOLATED if report.violated else STARVED if report.starved else HELD)


def chosen_systems(given: str) -> tuple[str, ...]:
    """Return the systems that are named, separated by commas; all where none is.

    Raises:
        typer.BadParameter: One is none.
    """
    names = [name.strip() for name in given.split(",") if name.strip()]
    unknown = [name for name in names if name not in ALL]
    if unknown:
        raise typer.BadParameter(f"no system: {', '.join(unknown)}; use some of {', '.join(ALL)}")
    return tuple(name for name in ALL if name in names or not names)


def soak(scale: Scale, systems: Sequence[str], scratch: Path, out: Path) -> Report:
    """Do all of it; return what was found.

    Raises:
        RigError: A part of the rig did not start.
        KeyboardInterrupt: It was stopped for good.
    """
    began = time.monotonic()

    def say(text: str) -> None:
        passed = int(time.monotonic() - began)
        console.print(f"{passed // 60:3d}:{passed % 60:02d}  {escape(text)}", soft_wrap=True, highlight=False)

    out.mkdir(parents=True, exist_ok=True)
    for stale in ("journal.jsonl", "soak.md"):
        (out / stale).unlink(missing_ok=True)
    warning = busy()
    if warning:
        say(warning)
    ended, hurried = threading.Event(), threading.Event()
    ground = Ground(scale, scratch, out, say)
    with _signals(ended, hurried, say), Course(systems, ground) as course:
        about = {"systems": ", ".join(systems), "minutes": f"{scale.minutes:g}", "seed": str(scale.seed)}
        about |= {"videos": f"{scale.videos:,}", **describe(ground.server.url)}
        course.live(ended)
        ended.set()  # who asks for an end from now on means the drain
        course.drain(hurried)
        say("the audit")
        undrained = [name for name, well in course.drained.items() if not well]
        notes = [f"{name}: what waited was not done in the end: what only lacks it is starved" for name in undrained]
        return Report(about, course.audit(), course.happened(), not undrained, notes)


@contextlib.contextmanager
def _signals(ended: threading.Event, hurried: threading.Event, say: Callable[[str], None]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM ask for an early end, then for a quick one, then take it."""

    def asked(_number: int, _frame: object) -> None:
        if hurried.is_set():
            raise KeyboardInterrupt
        if ended.is_set():
            hurried.set()
            say("the drain is left; once more stops at once")
        else:
            ended.set()
            say("life and troubles end early; once more leaves the drain too")

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, asked) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
