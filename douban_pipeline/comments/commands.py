"""The options of the command ``comment-worker``; `comments.terminal`, imported when it is called, does the work."""

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
