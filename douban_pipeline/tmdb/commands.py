"""The commands ``tmdb …``: imports. What they need is imported on a call."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from douban_pipeline.core.language import terminal_text
from douban_pipeline.tmdb.types import EntityType

commands = typer.Typer(
    name="tmdb", help="TMDB's answers in PostgreSQL, and the graph of films and people.", no_args_is_help=True
)


@commands.command()
def load(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Recorded answers, one JSON object per line; may be .gz or .xz."),
    ],
) -> None:
    """Load recorded answers as if TMDB had just sent them, and show what changed; exit with 1 if one is unreadable."""
    from collections import Counter
    from contextlib import closing

    from douban_pipeline.core.console import plain
    from douban_pipeline.tmdb.recorded_answers import UNREADABLE, load
    from douban_pipeline.tmdb.services import open_services
    from douban_pipeline.tmdb.settings import load_settings

    counts = Counter[str]()
    with closing(open_services(load_settings())) as services:
        for loaded in load(services.ready().store, files, services.clock):
            plain(str(loaded))
            counts[loaded.outcome] += 1
    plain(", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or terminal_text("nothing to load"))
    if counts[UNREADABLE]:
        raise typer.Exit(1)


@commands.command()
def ids(
    entity: Annotated[EntityType, typer.Argument(help="Kind of entity in the list.")],
    file: Annotated[
        Path | None, typer.Argument(help="TMDB's daily file: one JSON object per line; may be .gz or .xz.")
    ] = None,
    day: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Instead of a file: download the list of this day.")
    ] = None,
) -> None:
    """Load TMDB's daily list of ids: a stub is created for each unknown entity."""
    from contextlib import closing

    from douban_pipeline.core.console import plain
    from douban_pipeline.core.errors import ProblemsError, SourceError
    from douban_pipeline.tmdb.recorded_answers import read_lines
    from douban_pipeline.tmdb.services import open_services
    from douban_pipeline.tmdb.settings import load_settings
    from douban_pipeline.tmdb.store.exports import store_export

    if (file is None) == (day is None):
        raise ProblemsError([terminal_text("give either a file or --day")])
    with closing(open_services(load_settings())) as services:
        store = services.ready().store
        try:
            if file is not None:
                report = store_export(store, entity, (line for _, line in read_lines(file)))
            elif day is not None:
                with services.client() as client:
                    report = store_export(store, entity, client.exported_ids(entity, day.date()))
        except SourceError as error:
            raise ProblemsError([str(error)]) from error
    plain(
        terminal_text("{new} new stubs, {known} known already, {unreadable} lines unreadable").format(
            new=report.new, known=report.known, unreadable=report.unreadable
        )
    )
