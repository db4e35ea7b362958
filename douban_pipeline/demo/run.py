"""The demo: runs the systems one after another, with the embedded servers they need, and prints a table of results."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import dagster as dg
from rich.console import Console

from douban_pipeline.core.environment import SYSTEMS
from douban_pipeline.core.extras import missing_library
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.settings_base import BASE_PREFIX
from douban_pipeline.core.system import SystemPart
from douban_pipeline.dagster_kit.in_process import silent_instance
from douban_pipeline.dagster_kit.runs import set_pool_limits
from douban_pipeline.demo.outcomes import DemoOutcome, print_outcomes
from douban_pipeline.demo.setup import demo_environment, demo_home, pool_limits, prepare_home

Demo = Callable[[Path, dg.DagsterInstance, Console], DemoOutcome]
"""Runs the demo of a system in the demo's folder, prints its course and returns its result."""
_EXTRAS = {"tmdb": "tmdb-embedded"}
"""Extras whose names differ from their system's."""


class _Exceptions(logging.Handler):
    """Collects what is logged with a traceback: nothing of the demo's script is."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.messages.append(f"{record.name}: {record.getMessage()}")


def run_demo(project: Path, systems: Sequence[str], console: Console) -> bool:
    """Run the demo of each of ``systems`` and print the results; return whether all succeeded and logged no error.

    Args:
        project: The folder whose `dagster.yaml` the demo's instance uses.
        systems: Names of systems.
        console: Where to print.
    """
    home = demo_home()
    console.print(f"{terminal_text('home       ')}{home}", highlight=False, soft_wrap=True)
    prepare_home(home, project)
    chosen = [name for name in SYSTEMS if name in systems]
    os.environ.update(demo_environment(home))
    outcomes = []
    exceptions = _Exceptions()
    logging.getLogger().addHandler(exceptions)
    with silent_instance() as instance:
        set_pool_limits(instance, pool_limits())
        for number, name in enumerate(chosen, 1):
            count = len(chosen)
            console.rule(
                terminal_text("{number} of {count}: {name}").format(number=number, count=count, name=name), align="left"
            )
            began = time.monotonic()
            # What has run and what runs: of the others, pages would say what is outdated as soon as those have run.
            os.environ[f"{BASE_PREFIX}SYSTEMS"] = ",".join(chosen[:number])
            outcome = _run(name, home, instance, console)
            outcomes.append((name, outcome, time.monotonic() - began))
    console.rule()
    print_outcomes(outcomes, console)
    console.print(
        terminal_text("Next: `make dev`, then open http://127.0.0.1:8780 (pages) or http://127.0.0.1:3000 (Dagster)"),
        highlight=False,
        soft_wrap=True,
    )
    logging.getLogger().removeHandler(exceptions)
    for message in exceptions.messages:
        said = terminal_text("an error was logged that the demo does not plan: {message}").format(message=message)
        console.print(said, style="red", markup=False, soft_wrap=True)
    return all(outcome.well for _, outcome, _ in outcomes) and not exceptions.messages


def demo_of(name: str) -> SystemPart[Demo]:
    """Return the demo of a system: the function ``run_<name>`` in the module of its name, imported when called."""
    return SystemPart(f"douban_pipeline.demo.{name}:run_{name}")


def _run(name: str, home: Path, instance: dg.DagsterInstance, console: Console) -> DemoOutcome:
    """Run the demo of a system; a system whose libraries are not installed is skipped."""
    try:
        run = demo_of(name)()
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get(name, name)
        return DemoOutcome(True, terminal_text("left out: ") + missing_library(error.name, extra))
    return run(home, instance, console)
