"""The options of the commands ``feeds …``; `feeds.terminal`, imported when one is called, implements them."""

from pathlib import Path
from typing import Annotated

import typer

commands = typer.Typer(name="feeds", help="Followed sources: what is polled, when, and why.", no_args_is_help=True)
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen; change nothing.")]


@commands.command("list")
def feeds_list(
    due: Annotated[bool, typer.Option("--due", help="Only what is due now.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show every source with its cadence, last and next poll, and state."""
    from douban_pipeline.feeds import terminal

    terminal.list_sources(due=due, as_json=as_json)


@commands.command("why")
def feeds_why(source: Annotated[str, typer.Argument(help="Id, address or title.")]) -> None:
    """Explain when a source is polled and why: statistics, cadence, expected publications, last polls."""
    from douban_pipeline.feeds import terminal

    terminal.explain(source)


@commands.command("add")
def feeds_add(
    url: Annotated[str, typer.Argument(help="Address; for a public account, its id in WeRSS.")],
    kind: Annotated[str, typer.Option(help="rss, werss, maccms or json.")] = "rss",
    title: Annotated[str, typer.Option(help="Title to show; its own by default.")] = "",
    cadence: Annotated[
        str, typer.Option(help="P0 (15 min) to P6 (24 h), used until its own cadence is learned.")
    ] = "P2",
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
        url,
        kind=kind,
        title=title,
        cadence=cadence,
        options=option or [],
        folder=folder,
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
def feeds_export(
    path: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="File to write; printed by default.")] = None,
) -> None:
    """Write the followed feeds as OPML."""
    from douban_pipeline.feeds import terminal

    terminal.export(path)


@commands.command("poll")
def feeds_poll(
    source: Annotated[list[str] | None, typer.Argument(help="Ids, addresses or titles; default: all due.")] = None,
) -> None:
    """Poll the sources that are due, or those named, without Dagster."""
    from douban_pipeline.feeds import terminal

    terminal.poll(source or [])
