"""The options of the commands ``feeds …``; `feeds.terminal`, imported when one is called, implements them."""

from pathlib import Path
from typing import Annotated

import typer

commands = typer.Typer(name="feeds", help="Followed sources: what is polled, when, and why.", no_args_is_help=True)
_Names = Annotated[list[str], typer.Argument(metavar="SOURCE...", help="Ids, addresses or titles.")]
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
        str, typer.Option(help="In profile plan: P0 (15 min) to P6 (24 h), until its own is learned.")
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


@commands.command("entries")
def feeds_entries(
    source: Annotated[str, typer.Option(help="Only of this source: id, address or title.")] = "",
    folder: Annotated[str, typer.Option(help="Only of sources in this folder.")] = "",
    unread: Annotated[bool, typer.Option("--unread", help="Only unread ones.")] = False,
    starred: Annotated[bool, typer.Option("--starred", help="Only starred ones.")] = False,
    search: Annotated[str, typer.Option(help="Only with all these words in title or summary.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what sources published, the newest first."""
    from douban_pipeline.feeds import terminal_reading

    terminal_reading.show_entries(
        source=source, folder=folder, unread=unread, starred=starred, search=search, limit=limit, as_json=as_json
    )


@commands.command("remove")
def feeds_remove(
    source: _Names,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
    dry_run: _DryRun = False,
) -> None:
    """Stop following sources and delete them with their entries, polls and statistics; pause keeps all of it."""
    from douban_pipeline.feeds import terminal_reading

    terminal_reading.remove(source, yes=yes, dry_run=dry_run)


@commands.command("pause")
def feeds_pause(
    source: _Names,
    reason: Annotated[str, typer.Option(help="Why, shown on the page.")],
    dry_run: _DryRun = False,
) -> None:
    """Poll sources no more until they are resumed; what is known of them stays."""
    from douban_pipeline.feeds import terminal_reading

    terminal_reading.set_paused(source, paused=True, reason=reason, dry_run=dry_run)


@commands.command("resume")
def feeds_resume(source: _Names, dry_run: _DryRun = False) -> None:
    """Poll paused sources again, and those that were gone; they are due at once."""
    from douban_pipeline.feeds import terminal_reading

    terminal_reading.set_paused(source, paused=False, reason="", dry_run=dry_run)


@commands.command("set-url")
def feeds_set_url(
    source: Annotated[str, typer.Argument(help="Id, address or title.")],
    url: Annotated[str, typer.Argument(help="The new address.")],
    dry_run: _DryRun = False,
) -> None:
    """Give a source another address; its entries and statistics stay, and it is due at once."""
    from douban_pipeline.feeds import terminal_reading

    terminal_reading.set_address(source, url, dry_run=dry_run)
