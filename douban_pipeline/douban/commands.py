"""The options of the commands ``index …``; what does it is imported when one is called."""

from pathlib import Path
from typing import Annotated

import typer

commands = typer.Typer()


index = typer.Typer(
    name="index",
    help="The local index of subjects, searched without a request: load it, search it.",
    no_args_is_help=True,
)
commands.add_typer(index)


@index.command("load")
def index_load(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="JSON lines or CSV with id, title, other names and year; may be .gz or .xz."
        ),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and count; write nothing.")] = False,
) -> None:
    """Build the index from these files, replacing what was loaded before. Searches use it first."""
    from douban_pipeline.douban import terminal

    terminal.load(files, dry_run=dry_run)


@index.command("archive")
def index_archive() -> None:
    """Index the subjects in the archive, as the job index_archive does each night."""
    from douban_pipeline.douban import terminal

    terminal.index_archive()


@index.command("show")
def index_show() -> None:
    """Show what the indexes hold, and when they were made."""
    from douban_pipeline.douban import terminal

    terminal.show()


@index.command("find")
def index_find(
    title: Annotated[str, typer.Argument(help="A title, in any spelling.")],
    year: Annotated[int | None, typer.Option(help="Show subjects of this year first.")] = None,
) -> None:
    """Show the known subjects with a title like this one."""
    from douban_pipeline.douban import terminal

    terminal.find(title, year)
