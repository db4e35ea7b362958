"""The command `python -m douban_pipeline_tests.harness.soak`: its options, Ctrl-C, and what it leaves behind."""

from __future__ import annotations

import contextlib
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import stamina
import typer
from rich.console import Console
from rich.markup import escape

from douban_pipeline_tests.harness.benchmarks.machine import busy, describe
from douban_pipeline_tests.harness.rig.processes import RigError
from douban_pipeline_tests.harness.soak.audit import audit
from douban_pipeline_tests.harness.soak.course import Course, StopRequests, happened, live_through
from douban_pipeline_tests.harness.soak.evidence import Finding, of_the_soak
from douban_pipeline_tests.harness.soak.report import Report
from douban_pipeline_tests.harness.soak.systems.course import Systems
from douban_pipeline_tests.harness.soak.systems.lives import LIVES
from douban_pipeline_tests.harness.soak.watching import disk_growth
from douban_pipeline_tests.harness.soak.world import Scale, World

console = Console()
OUT = Path(".douban_pipeline") / "soak"
DOUBAN = "douban"
ALL = (DOUBAN, *LIVES)
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
    out: Annotated[Path, typer.Option(help="Folder for the report, the journal and the samples.")] = OUT,
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
    report.show(console)
    for path in report.write(out):
        console.print(f"written: {path}", soft_wrap=True)
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
    for stale in ("journal.jsonl", "samples.jsonl", "soak.json", "soak.md"):
        (out / stale).unlink(missing_ok=True)
    warning = busy()
    if warning:
        say(warning)
    stop_requests = StopRequests()
    about = {"systems": ", ".join(systems), "minutes": f"{scale.minutes:g}", "seed": str(scale.seed)}
    with _signals(stop_requests, say), ExitStack() as stack:
        others: Systems | None = None
        if set(systems) - {DOUBAN}:
            others = stack.enter_context(Systems(systems, scale, scratch / "systems", say))
        if DOUBAN not in systems:
            assert others is not None
            others.live(stop_requests.end, stop_requests.hurry)
            others.wait()
            return _with_systems(Report(about, [], {}, {}, drained=True), others)
        world = stack.enter_context(World(scale, scratch, say))
        say(f"Dagster's UI: {world.stack.url}; seed {scale.seed}")
        about |= {"videos": f"{scale.videos:,}", **describe(world.server.url)}
        if others is not None:
            others.live(stop_requests.end, stop_requests.hurry)
        course = live_through(world, out, stop_requests, say)
        say(f"drained: {'yes' if course.drained else 'NO'}; the audit")
        findings = [*audit(course.evidence(world)), _of_the_soak(course)]
        report = _report(about, findings, course, world)
        if others is None:
            return report
        others.wait()
        return _with_systems(report, others)


def _with_systems(report: Report, others: Systems) -> Report:
    """Return a report with what became of the systems beside Douban's."""
    undrained = [name for name, well in others.drained.items() if not well]
    notes = [f"{name}: what waited was not done in the end" for name in undrained]
    return replace(
        report,
        findings=[*report.findings, *others.audit()],
        happened={**report.happened, **others.happened()},
        drained=report.drained and not undrained,
        notes=[*report.notes, *notes],
    )


def _of_the_soak(course: Course) -> Finding:
    return of_the_soak(course.living.errors, sum(course.living.acts.values()))


def _report(about: dict[str, str], findings: list[Finding], course: Course, world: World) -> Report:
    watcher = course.watcher
    disk = disk_growth(watcher.samples)
    growth = {name: growth_seen.summary(unit) for name, (growth_seen, unit) in watcher.growths().items()}
    growth["disk"] = f"{disk['first_mb']:,.0f} → {disk['last_mb']:,.0f} MB, {disk['mb_per_hour']:+,.0f} MB/h"
    notes = []
    if not course.drained:
        notes.append(
            "what waited was not done in the end: invariants that only lack some of it are starved, not violated"
        )
    minutes = (course.drain_began - course.began).total_seconds() / 60
    for source, (per_minute, _) in world.limits.items():
        granted = watcher.last.granted.get(source, 0)
        share = granted / (per_minute * minutes) if minutes else 0.0
        notes.append(f"{source}: {granted:,} calls, {share:.0%} of what the limit allows while life went on")
    by_hand = sum(watcher.breakers.closed_by_hand.values())
    if by_hand:
        notes.append(
            f"{by_hand} breakers were closed by the job set_gate: by themselves they stay open for half an hour or more"
        )
    return Report(about, findings, happened(course, world), growth, course.drained, notes)


@contextlib.contextmanager
def _signals(stop_requests: StopRequests, say: Callable[[str], None]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM ask for an early end, then for a quick one, then take it."""

    def asked(_number: int, _frame: object) -> None:
        if stop_requests.hurry.is_set():
            raise KeyboardInterrupt
        if stop_requests.end.is_set():
            stop_requests.hurry.set()
            say("the drain is left; once more stops at once")
        else:
            stop_requests.end.set()
            say("life and troubles end early; once more leaves the drain too")

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, asked) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
