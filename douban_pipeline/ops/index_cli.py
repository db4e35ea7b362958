"""The options of the commands ``index …``; `ops.index_commands`, imported when one is called, implements them."""

from pathlib import Path
from typing import Annotated

import typer

index = typer.Typer(
    help="The local index of subjects, searched without a request: load it, search it.", no_args_is_help=True
)


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
    from douban_pipeline.ops import index_commands

    index_commands.load(files, dry_run=dry_run)


@index.command("archive")
def index_archive() -> None:
    """Index the subjects in the archive, as the job index_archive does each night."""
    from douban_pipeline.ops import index_commands

    index_commands.index_archive()


@index.command("show")
def index_show() -> None:
    """Show what the indexes hold, and when they were made."""
    from douban_pipeline.ops import index_commands

    index_commands.show()


@index.command("find")
def index_find(
    title: Annotated[str, typer.Argument(help="A title, in any spelling.")],
    year: Annotated[int | None, typer.Option(help="Show subjects of this year first.")] = None,
) -> None:
    """Show the known subjects with a title like this one."""
    from douban_pipeline.ops import index_commands

    index_commands.find(title, year)
