"""The commands that try the pipeline on bundled samples; like those in `ops.cli`, they import what they call."""

from pathlib import Path
from typing import Annotated

import typer

from douban_pipeline.core.environment import SYSTEMS
from douban_pipeline.tmdb.commands import commands as tmdb

_Systems = Annotated[str, typer.Option(help=f"Systems, separated by commas: {', '.join(SYSTEMS)}. Default: all.")]


def add_commands(app: typer.Typer) -> None:
    """Add the commands ``demo``, ``dev``, ``replay`` and ``tmdb replay`` to the operators' command line."""
    for command in (demo, dev, replay):
        app.command()(command)
    tmdb.command("replay")(replay_tmdb)


def demo(systems: _Systems = "") -> None:
    """Run each system through Dagster on bundled samples and embedded servers, and print the results."""
    from douban_pipeline.core.console import console
    from douban_pipeline.demo import commands

    commands.run_once(systems, console)


def dev(
    systems: _Systems = "",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of Dagster's UI, on 127.0.0.1.")] = 3000,
    service_port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the service, on 127.0.0.1.")] = 8780,
) -> None:
    """Run Dagster, the service and the comment worker on the demo library, until Ctrl-C."""
    from douban_pipeline.core.console import console
    from douban_pipeline.demo import commands

    commands.open_all(systems, port, service_port, console)


def replay(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1.")] = 8790,
) -> None:
    """Serve the bundled replay upstream: douban.php, three searches and OpenRouter, from the sample."""
    from douban_pipeline.demo.stand_ins.replay import serve

    serve(port=port)


def replay_tmdb(
    recorded: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Recorded answers; default: the bundled ones.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on loopback.")] = 8791,
) -> None:
    """Serve recorded answers as TMDB's API does, on loopback, until Ctrl-C."""
    from douban_pipeline.demo.stand_ins.tmdb_server import serve

    serve(recorded, port)
