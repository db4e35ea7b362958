"""The options of the commands; `comments.terminal`, imported when one is called, does the work."""

from pathlib import Path
from typing import Annotated

import typer

commands = typer.Typer()


@commands.command("comment-worker")
def comment_worker(
    once: Annotated[bool, typer.Option("--once", help="Process the waiting events, then exit.")] = False,
) -> None:
    """Process the events of comment sections until stopped. Several workers share the work."""
    from douban_pipeline.comments import terminal

    terminal.work(once=once)


@commands.command("comment-person")
def comment_person(
    user: Annotated[int, typer.Argument(min=1, help="Id of the user in the CMS.")],
    export: Annotated[Path | None, typer.Option("--export", help="File that everything stored is written to.")] = None,
    erase: Annotated[bool, typer.Option("--erase", help="Erase it; without this nothing is changed.")] = False,
    operator: Annotated[str, typer.Option("--operator", help="Who does it, for the log.")] = "",
) -> None:
    """Show what is stored of a person in the comments; write it to a file, or erase it."""
    from douban_pipeline.comments import terminal

    terminal.person(user, export, erase=erase, operator=operator)
