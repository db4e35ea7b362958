"""The options of the commands ``index …``; what they do is in `ops.indexing`, imported when one is called."""

from pathlib import Path
from typing import Annotated

import typer

index = typer.Typer(help="Subjects that are found without a request: load them, look them up.", no_args_is_help=True)


@index.command("load")
def index_load(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="JSON lines or CSV: id, title, other names, year; perhaps .gz, .xz."),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and count; write nothing.")] = False,
) -> None:
    """Make the index of these files, in the place of what was loaded before. Searching begins with it."""
    from douban_pipeline.ops import indexing

    indexing.load(files, dry_run=dry_run)


@index.command("archive")
def index_archive() -> None:
    """Index the subjects that the archive describes, as the job index_archive does each night."""
    from douban_pipeline.ops import indexing

    indexing.index_archive()


@index.command("show")
def index_show() -> None:
    """Show what the indexes hold, and when they were made."""
    from douban_pipeline.ops import indexing

    indexing.show()


@index.command("find")
def index_find(
    title: Annotated[str, typer.Argument(help="A title, in any writing.")],
    year: Annotated[int | None, typer.Option(help="Moves subjects of that year up.")] = None,
) -> None:
    """Show which known subjects bear a title like this one."""
    from douban_pipeline.ops import indexing

    indexing.find(title, year)
