"""The options of the commands ``list`` and ``index …``; what does it is imported when one is called."""

from pathlib import Path
from typing import Annotated

import typer

commands = typer.Typer()


@commands.command("list")
def show_list(
    name: Annotated[
        str,
        typer.Argument(help="review, missing, duplicates, locked, intros, tasks, decisions or log."),
    ],
    category: Annotated[list[int] | None, typer.Option(help="Id of a category; may be repeated.")] = None,
    since: Annotated[
        str, typer.Option(help="Only from this time on, in the site's time zone: 2026-11-20, or 7d for the last week.")
    ] = "",
    until: Annotated[str, typer.Option(help="Only before this time.")] = "",
    source: Annotated[
        list[str] | None,
        typer.Option(help="Source of an id, model, operator, reviewer or status; may be repeated."),
    ] = None,
    text: Annotated[str, typer.Option(help="Text in the title or a reason, or the id of a video or a subject.")] = "",
    sort: Annotated[str, typer.Option(help="Column to sort by, such as updated, hits or id; largest first.")] = "",
    ascending: Annotated[bool, typer.Option("--ascending", help="Sort smallest first.")] = False,
    page: Annotated[int, typer.Option(min=1, help="Page number.")] = 1,
    size: Annotated[int, typer.Option(min=1, max=1000, help="Rows per page.")] = 50,
    csv: Annotated[Path | None, typer.Option(help="Write all rows to this CSV file; - is standard output.")] = None,
) -> None:
    """Show a list from the database: what waits for people, what is locked, what was written."""
    from douban_pipeline.douban.reports.lists import terminal

    asked = terminal.ListRequest(
        categories=category or (),
        since=since,
        until=until,
        sources=source or (),
        text=text,
        sort=sort,
        ascending=ascending,
        page=page,
        size=size,
    )
    terminal.show(name, asked, csv)


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
