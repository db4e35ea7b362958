"""The commands ``demo`` and ``dev``: the bundled library through Dagster, once, or in Dagster's UI."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from threading import Thread

import dagster as dg
import httpx
import typer
from dagster._core.errors import DagsterExecutionInterruptedError
from rich.console import Console

from douban_pipeline.dagster_kit.runs import set_pool_limits
from douban_pipeline.demo import review_server
from douban_pipeline.demo.replay import ReplayServer
from douban_pipeline.demo.run import run_demo
from douban_pipeline.demo.sample import load_subjects
from douban_pipeline.demo.setup import (
    apply_states,
    demo_environment,
    demo_home,
    make_library,
    prepare_home,
    project_folder,
    spread_visits,
)
from douban_pipeline.digest.resources import POOL_LIMITS as DIGEST_POOL_LIMITS
from douban_pipeline.douban.chain.due.intake import Intake
from douban_pipeline.douban.jobs import POOL_LIMITS
from douban_pipeline.douban.services import open_services
from douban_pipeline.douban.settings import load_settings
from douban_pipeline.feeds.resources import POOL_LIMITS as FEEDS_POOL_LIMITS
from douban_pipeline.tmdb.resources import POOL_LIMITS as TMDB_POOL_LIMITS

DEMO_SPREAD = timedelta(minutes=30)
GRACE_SECONDS = 15
_ASKED = 600
"""Times, a second apart, that Dagster's UI is asked whether it answers."""


def run_once(console: Console) -> None:
    """Run the whole chain over the bundled sample, through Dagster, and print what came of it.

    Raises:
        typer.Exit: A run or a guard failed (1), or Ctrl-C stopped it (130).
    """
    try:
        well = run_demo(project_folder(), console)
    except (KeyboardInterrupt, DagsterExecutionInterruptedError):
        console.print("stopped; `make demo` goes on where it was")
        raise typer.Exit(130) from None
    if not well:
        raise typer.Exit(1)


def open_ui(port: int, console: Console) -> None:
    """Open Dagster's UI on the demo library, with sensors and schedules running, until Ctrl-C.

    Raises:
        typer.BadParameter: The port is taken.
        typer.Exit: It ended; with the exit status of Dagster.
    """
    refuse_taken_port(port)
    project, home = project_folder(), demo_home()
    console.print(f"home       {home}", highlight=False, soft_wrap=True)
    prepare_home(home, project)
    listener = review_server.listen()
    with ReplayServer(load_subjects()) as upstream:
        os.environ.update(
            demo_environment(
                home,
                douban_url=upstream.douban_url,
                search_url=upstream.search_url,
                llm_url=upstream.llm_url,
                ui_url=f"http://127.0.0.1:{port}",
                review_url=review_server.address_of(listener),
            )
        )
        services = open_services(load_settings())
        make_library(services)
        Intake.of(services).initialise(spread=False)
        apply_states(services)
        spread_visits(services, DEMO_SPREAD)
        services.close()
        with dg.DagsterInstance.get() as instance:
            set_pool_limits(instance, {**POOL_LIMITS, **FEEDS_POOL_LIMITS, **DIGEST_POOL_LIMITS, **TMDB_POOL_LIMITS})
        if listener is not None:
            review_server.start(listener)
            console.print(f"The review sheet: {review_server.address_of(listener)}", soft_wrap=True)
        address = f"http://127.0.0.1:{port}"
        console.print("Dagster is starting: half a minute; its address follows when it answers", highlight=False)
        Thread(target=announce, args=(address, console), daemon=True).start()
        console.print(f"Every shard of the demo library comes due within {DEMO_SPREAD.seconds // 60} minutes.")
        command = [sys.executable, "-m", "dagster", "dev", "-w", str(project / "workspace.yaml")]
        command += ["-h", "127.0.0.1", "-p", str(port), "--log-level", "warning"]
        os.environ["PYTHONWARNINGS"] = "ignore:Parameter,ignore:Function"  # of beta features, used on purpose
        # From the demo's folder: Dagster lets a `.env` of the working directory override the environment, and a
        # checkout's may name a real CMS.
        raise typer.Exit(_until_stopped(command, home, console))


def refuse_taken_port(port: int) -> None:
    """Refuse a port that somebody listens on.

    Raises:
        typer.BadParameter: It is taken.
    """
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        raise typer.BadParameter(
            f"port {port} of 127.0.0.1 cannot be had ({error.strerror}): stop what is on it, or choose another with "
            "--port (make dev PORT=3111)"
        ) from None


def announce(address: str, console: Console, *, pause: float = 1.0) -> None:
    """Print the address once it answers; it is asked every ``pause`` seconds."""
    for _ in range(_ASKED):
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{address}/server_info", timeout=5.0, trust_env=False).status_code == HTTPStatus.OK:
                console.print(f"Dagster's UI: {address} (Ctrl-C stops everything)")
                return
        time.sleep(pause)


def _until_stopped(command: list[str], directory: Path, console: Console) -> int:
    """Run ``command`` until it ends; Ctrl-C reaches it too, and it is given the time to stop cleanly."""
    # A shell starts what runs in the background with Ctrl-C ignored, and Dagster stops its children by it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(command, cwd=directory)  # noqa: S603 (our own interpreter, no shell)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        return process.wait()
    except KeyboardInterrupt:
        console.print("stopping …")
    try:
        # In a terminal Ctrl-C reached Dagster as well; sent to this process alone, it did not.
        return process.wait(timeout=GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.terminate()
        return process.wait()
