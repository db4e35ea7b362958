"""The commands ``feeds …``: follow sources, and explain when and why one is polled; pages and Dagster show the rest.

What they need is imported when one is called: the help of all systems loads this module.
"""

from pathlib import Path
from typing import Annotated

import typer

commands = typer.Typer(name="feeds", help="Followed sources: what is polled, when, and why.", no_args_is_help=True)
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen; change nothing.")]


@commands.command("why")
def feeds_why(source: Annotated[str, typer.Argument(help="Id, address or title.")]) -> None:
    """Explain when a source is polled and why: statistics, cadence, last polls."""
    from douban_pipeline.feeds import terminal

    terminal.explain(source)


@commands.command("add")
def feeds_add(
    url: Annotated[str, typer.Argument(help="Address; for a public account, its id in WeRSS.")],
    kind: Annotated[str, typer.Option(help="rss, werss, maccms or json.")] = "rss",
    title: Annotated[str, typer.Option(help="Title to show; its own by default.")] = "",
    option: Annotated[
        list[str] | None, typer.Option(help="Fields of a JSON list: path=data.list, id=…, title=…, link=…, time=….")
    ] = None,
    folder: Annotated[str, typer.Option(help="Folder, outer/inner.")] = "",
    credential: Annotated[str, typer.Option(help="Name of its credentials, for a source that wants a login.")] = "",
    dry_run: _DryRun = False,
) -> None:
    """Follow a source or a page's feed, or change the source that has this address."""
    from douban_pipeline.feeds import terminal

    terminal.add(
        {"mp_id" if kind == "werss" else "url": url, "kind": kind, "title": title, "folder": folder},
        options=dict(each.partition("=")[::2] for each in option or []),
        credential=credential,
        dry_run=dry_run,
    )


@commands.command("import")
def feeds_import(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="OPML, as feed readers export it.")],
    dry_run: _DryRun = False,
) -> None:
    """Follow the feeds of an OPML file; known ones stay as they are."""
    from douban_pipeline.feeds import terminal

    terminal.import_file(path, dry_run=dry_run)


@commands.command("export")
def feeds_export() -> None:
    """Print the followed feeds as OPML."""
    from douban_pipeline.feeds import terminal

    terminal.export()


@commands.command("set-url")
def feeds_set_url(
    source: Annotated[str, typer.Argument(help="Id, address or title.")],
    url: Annotated[str, typer.Argument(help="The new address.")],
) -> None:
    """Give a source another address; its entries and statistics stay, and it is due at once."""
    from douban_pipeline.feeds import terminal

    terminal.set_address(source, url)
