"""The lists on the command line, read from the database by keyset pagination."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import IO

import typer

from douban_pipeline.core.clock import moment_in
from douban_pipeline.core.console import console
from douban_pipeline.core.files import replaced
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.ui.lists.list_page import cell_text, holds
from douban_pipeline.core.ui.lists.list_table import batches, frame_of, write_csv
from douban_pipeline.douban.reports.lists.catalogue import LISTS
from douban_pipeline.douban.reports.lists.keyset import ListFilter
from douban_pipeline.douban.reports.lists.named_list import NamedList, rows_of
from douban_pipeline.douban.services import Services, open_services
from douban_pipeline.douban.settings import load_settings

_WIDEST = 48


@dataclass(frozen=True, slots=True)
class ListRequest:
    """A request for a list, as typed."""

    categories: Sequence[int] = ()
    since: str = ""
    until: str = ""
    sources: Sequence[str] = ()
    text: str = ""
    sort: str = ""
    ascending: bool = False
    page: int = 1
    size: int = 50


def show(name: str, asked: ListRequest, csv: Path | None) -> None:
    """Print a page of a list, or write all its rows to a CSV file (``-`` is standard output)."""
    if name not in LISTS:
        known = ", ".join(LISTS)
        raise typer.BadParameter(
            terminal_text("there is no list {name!r}; lists: {known}").format(name=name, known=known)
        )
    services = open_services(load_settings()).ready()
    wanted = LISTS[name](services)
    if asked.sort and asked.sort not in wanted.rows.sorts:
        known = ", ".join(wanted.rows.sorts)
        orders = terminal_text("{name} can be ordered by {known}").format(name=name, known=known)
        raise typer.BadParameter(f"--sort {asked.sort}: {orders}")
    restricted = ListFilter(
        categories=asked.categories,
        since=_moment(services, "--since", asked.since),
        until=_moment(services, "--until", asked.until),
        sources=asked.sources,
        text=asked.text,
    )
    if csv is not None:
        count = _write(services, wanted, restricted, asked, csv)
        if csv != Path("-"):
            console.print(terminal_text("{count:,} rows: {csv}").format(count=count, csv=csv), highlight=False)
    else:
        _print(services, wanted, restricted, asked)
    services.close()


def _moment(services: Services, option: str, text: str) -> datetime | None:
    """Return the time given by a date, a time, or a number of days ago such as ``7d``."""
    whole_day = f"{text} 00:00" if len(text) == len("2026-11-20") else text
    try:
        if text.endswith("d") and text[:-1].isdecimal():
            return services.clock.now() - timedelta(days=int(text[:-1]))
        return moment_in(whole_day, services.settings.zone)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(f"{option}: {error}") from error


def _write(services: Services, wanted: NamedList, restricted: ListFilter, asked: ListRequest, csv: Path) -> int:
    count, first = 0, True
    rows = rows_of(services, wanted, restricted, sort=asked.sort, ascending=asked.ascending)
    with _opened(csv) as file:
        for batch in batches(rows):
            write_csv(wanted.page, frame_of(wanted.page, batch), services.settings.zone, file, first=first)
            count, first = count + len(batch), False
        if first:
            write_csv(wanted.page, frame_of(wanted.page, []), services.settings.zone, file, first=True)
    return count


@contextmanager
def _opened(csv: Path) -> Iterator[IO[str]]:
    if csv == Path("-"):
        yield sys.stdout
    else:
        with replaced(csv) as part, part.open("w", encoding="utf-8-sig", newline="") as file:
            yield file


def _print(services: Services, wanted: NamedList, restricted: ListFilter, asked: ListRequest) -> None:
    last = asked.page * asked.size
    rows = rows_of(services, wanted, restricted, sort=asked.sort, ascending=asked.ascending, most=last + 1)
    found = list(islice(rows, last - asked.size, last + 1))
    shown = found[: asked.size]
    name, *others = wanted.page.read_columns
    console.print(f"[bold]{wanted.page.title}[/bold]")
    for row in shown:
        zone = services.settings.zone
        # Two lines per row: in a table, twenty columns would be one letter wide each.
        console.print(cell_text(row.get(name.key), zone), markup=False, highlight=False, style="bold", soft_wrap=True)
        filled = [column for column in others if holds(column, row.get(column.key))]
        facts = (f"{column.head} {_short(cell_text(row.get(column.key), zone))}" for column in filled)
        console.print("  " + " · ".join(facts), markup=False, highlight=False, soft_wrap=True)
    following = terminal_text("; --page {page} has more").format(page=asked.page + 1)
    more = following if len(found) > asked.size else ""
    page = terminal_text("page {page}, {shown} rows").format(page=asked.page, shown=len(shown))
    console.print(f"{page}{more}", highlight=False)


def _short(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
