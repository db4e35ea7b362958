"""Measures for tests of the runner: one that goes well, and others that do not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Measure, Target, World
from douban_pipeline_tests.harness.rig.waiting import wait_for

LONG = 600
PIDS = "pids"


def well(world: World) -> Sequence[Figure]:
    """Find a number, and what it was given."""
    world.say("counting")
    unwanted = [name for name in os.environ if name in ("DAGSTER_HOME", "DOUBAN_PIPELINE_AI_INTROS")]
    return [
        Figure("size", world.size, "", Target(most=1_000)),
        Figure("seed", world.seed, ""),
        Figure("unwanted variables", len(unwanted), ""),
        Figure("files in scratch", len(list(world.scratch.iterdir())), ""),
        Figure("writes", not world.services.settings.dry_run, ""),
    ]


def fails(world: World) -> Sequence[Figure]:
    """Break."""
    raise ValueError(f"no {world.size} of these")


def killed(world: World) -> Sequence[Figure]:
    """Die as a process does that took too much memory."""
    os.kill(os.getpid(), signal.SIGKILL)
    return []


def hangs(world: World) -> Sequence[Figure]:
    """Start a process and wait for ever; clean up when asked to stop."""
    other = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({LONG})"])
    (world.scratch.parent.parent / PIDS).write_text(f"{os.getpid()} {other.pid}")
    world.say("hanging")
    try:
        wait_for(lambda: None, seconds=LONG)
    finally:
        (world.scratch.parent.parent / "cleaned").touch()
    return []


MEASURES = tuple(Measure(run.__name__, "", run) for run in (well, fails, killed, hangs))
