"""The commands ``demo`` and ``dev``: run all systems on bundled samples, once or until stopped."""

import io
import socket
import sys

import dagster as dg
import typer
from rich.console import Console

from douban_pipeline.core.environment import SYSTEMS
from douban_pipeline.core.language import terminal_text
from douban_pipeline.demo.dev import run_dev
from douban_pipeline.demo.run import run_demo
from douban_pipeline.demo.setup import demo_home
from douban_pipeline.ops.workspace import project_folder


def run_once(systems: str, console: Console) -> None:
    """Run the demo of systems, through Dagster, and print the result.

    Args:
        systems: Their names, separated by commas; empty means all of them.
        console: Where to print.

    Raises:
        typer.BadParameter: There is no such system.
        typer.Exit: A run or a guard failed (1), or Ctrl-C stopped it (130).
    """
    chosen = chosen_systems(systems)
    _print_by_lines()
    try:
        well = run_demo(project_folder(), chosen, console)
    except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
        console.print(terminal_text("stopped; `make demo` continues from there"))
        raise typer.Exit(130) from None
    if not well:
        raise typer.Exit(1)


def open_all(systems: str, port: int, service_port: int, console: Console) -> None:
    """Run Dagster, the service and the comment worker on the demo's library until Ctrl-C.

    Args:
        systems: Names of the systems, separated by commas; empty means all of them.
        port: Port of Dagster's UI.
        service_port: Port of the service.
        console: Where to print.

    Raises:
        typer.BadParameter: There is no such system, or a port is in use.
        typer.Exit: The command ended.
    """
    chosen = chosen_systems(systems)
    refuse_taken_port(port, "--port (make dev PORT=3111)")
    refuse_taken_port(service_port, "--service-port (make dev SERVICE_PORT=8888)")
    if port == service_port:
        raise typer.BadParameter(
            terminal_text("port {port} is given twice: Dagster's UI and the service need one each").format(port=port)
        )
    _print_by_lines()
    raise typer.Exit(run_dev(project_folder(), demo_home(), chosen, port, service_port, console))


def chosen_systems(names: str) -> list[str]:
    """Return the systems with the given comma-separated names; all if none is given.

    Raises:
        typer.BadParameter: There is no such system.
    """
    chosen = {name.strip() for name in names.split(",") if name.strip()} or {*SYSTEMS}
    unknown = sorted(chosen - {*SYSTEMS})
    if unknown:
        known = ", ".join(SYSTEMS)
        raise typer.BadParameter(
            terminal_text("there is no system {unknown!r}; systems: {known}").format(unknown=unknown[0], known=known)
        )
    return [name for name in SYSTEMS if name in chosen]


def refuse_taken_port(port: int, option: str) -> None:
    """Check that a port is free; ``option`` is the option that chooses another.

    Raises:
        typer.BadParameter: The port is in use.
    """
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        raise typer.BadParameter(
            terminal_text(
                "port {port} of 127.0.0.1 cannot be had ({error}): stop what is on it, or choose another with {option}"
            ).format(port=port, error=error.strerror, option=option)
        ) from None


def _print_by_lines() -> None:
    """Flush after each line, so that a reader of a pipe sees the lines as they are printed."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
