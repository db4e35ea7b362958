"""The commands about entries, and those that pause, move and remove sources: ``feeds entries``, ``feeds remove`` …"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import typer
from sqlalchemy import Row

from douban_pipeline.core.console import console, plain
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.terminal_table import Table
from douban_pipeline.feeds import subscriptions, wording
from douban_pipeline.feeds.store import entry_lists, source_lists
from douban_pipeline.feeds.store.entry_lists import Selection
from douban_pipeline.feeds.terminal import opened


def show_entries(
    *, source: str, folder: str, unread: bool, starred: bool, search: str, limit: int, as_json: bool
) -> None:
    """Print entries, the newest first."""
    words = search.split()
    with opened(makes_file=False) as services, reading(services.engine) as connection:
        only = subscriptions.named_sources(connection, [source])[0].source_id if source else None
        if folder and folder not in source_lists.folders(connection):
            raise ProblemsError([terminal_text("there is no folder {folder}").format(folder=folder)])
        chosen = Selection(unread=unread or None, starred=starred or None, source_id=only, folder=folder or None)
        rows: list[Row[Any]] = []
        if words:
            after = None
            while len(rows) < limit:
                page = entry_lists.search_page(connection, chosen, words, after, limit - len(rows))
                rows += page.rows
                after = page.next
                if after is None:
                    break
        else:
            rows += entry_lists.entry_page(connection, chosen, None, limit).rows
        named = entry_lists.titles_of(connection, [row.source_id for row in rows])
        zone = services.settings.zone

    def title(row: Row[Any]) -> str:
        of = named.get(row.source_id)
        return (of.title or of.url) if of is not None else row.source_id

    if as_json:
        names = ("entry_id", "source_id", "title", "link", "summary", "published_at", "found_at")
        marks = ("unread", "starred")
        shown = [
            {name: getattr(row, name) for name in names}
            | {"source": title(row)}
            | {name: bool(getattr(row, name)) for name in marks}
            for row in rows
        ]
        plain(json.dumps(shown, ensure_ascii=False, indent=1))
        return
    table = Table(
        terminal_text("published", "terminal"),
        terminal_text("source"),
        terminal_text("title"),
        terminal_text("marks"),
    )
    for row in rows:
        marks_shown = "".join(("●" if row.unread else "", "★" if row.starred else ""))
        table.add_row(wording.moment_text(row.published_at, zone), title(row)[:30], row.title[:100], marks_shown)
    console.print(table)
    console.print(terminal_text("{count} entries").format(count=len(rows)))


def remove(given: Sequence[str], *, yes: bool, dry_run: bool) -> None:
    """Delete sources with what they published, after asking."""
    with opened() as services:
        for each, counts in subscriptions.remove(services, given, dry_run=True):
            line = terminal_text("{title}: {entries} entries ({starred} starred), {polls} polls").format(
                title=each.title or each.url, **counts
            )
            console.print(line, highlight=False, markup=False)
        if dry_run:
            console.print(terminal_text("would be deleted; nothing was changed"))
            return
        if not yes and not typer.confirm(terminal_text("Delete them for good?")):
            raise ProblemsError([terminal_text("nothing was deleted")])
        removed = subscriptions.remove(services, given, dry_run=False)
    console.print(terminal_text("{count} sources deleted").format(count=len(removed)))


def set_paused(given: Sequence[str], *, paused: bool, reason: str, dry_run: bool) -> None:
    """Pause or resume sources."""
    if paused and not reason.strip():
        raise ProblemsError([terminal_text("say why with --reason: it stands in the list of sources")])
    with opened() as services:
        found = subscriptions.set_paused(services, given, paused=paused, reason=reason.strip(), dry_run=dry_run)
    before = terminal_text("would be ") if dry_run else ""
    done = terminal_text("paused") if paused else terminal_text("resumed")
    for each in found:
        console.print(f"{before}{done}{terminal_text(': ')}{each.title or each.url}", highlight=False, markup=False)


def set_address(given: str, url: str, *, dry_run: bool) -> None:
    """Give a source another address."""
    with opened() as services:
        before, after = subscriptions.set_address(services, given, url, dry_run=dry_run)
    would = terminal_text("would be ") if dry_run else ""
    said = terminal_text("moved: {title}, {before} → {after}").format(
        title=before.title or before.source_id, before=before.url, after=after.url
    )
    console.print(f"{would}{said}", highlight=False, markup=False, soft_wrap=True)
