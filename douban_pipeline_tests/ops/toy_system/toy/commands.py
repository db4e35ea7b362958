"""The toy's command in a terminal."""

import typer

commands = typer.Typer(name="toy")


@commands.command()
def greet() -> None:
    """Say hello."""
    typer.echo("hello")
