"""The options of the commands ``tmdb …``; `tmdb.terminal` and `enrichment.terminal` do the work, imported on a call."""

from datetime import datetime
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from douban_pipeline.tmdb.types import EntityType

commands = typer.Typer(
    name="tmdb", help="TMDB's answers in PostgreSQL, and the graph of films and people.", no_args_is_help=True
)
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@commands.command("setup")
def set_up(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the SQL; change nothing.")] = False,
    graph: Annotated[bool, typer.Option(help="Also create the graph's constraints and indexes.")] = True,
) -> None:
    """Create or upgrade the schema tmdb, and the constraints of the graph database."""
    from douban_pipeline.tmdb import terminal

    terminal.set_up(dry_run=dry_run, graph=graph)


@commands.command()
def check(
    graph: Annotated[bool, typer.Option(help="Also check the graph database.")] = True, as_json: _Json = False
) -> None:
    """Check what the system needs; exit with 1 if a check fails. Changes nothing."""
    from douban_pipeline.tmdb import terminal

    if not terminal.check(graph=graph, as_json=as_json):
        raise typer.Exit(1)


@commands.command()
def load(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Recorded answers, one JSON object per line; may be .gz or .xz."),
    ],
    as_json: _Json = False,
) -> None:
    """Load recorded answers as if TMDB had just sent them, and show what changed; exit with 1 if one is unreadable."""
    from douban_pipeline.tmdb import terminal

    if not terminal.load_files(files, as_json=as_json):
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
    from douban_pipeline.tmdb import terminal

    terminal.load_ids(entity, file, day.date() if day else None)


@commands.command()
def fetch(
    entities: Annotated[list[str], typer.Argument(metavar="ENTITY...", help="As in TMDB's paths: movie/603 tv/1396.")],
    language: Annotated[str, typer.Option(help="Language of the answers; default: the base language.")] = "",
) -> None:
    """Fetch entities with their credits from TMDB, store them, and show what changed; exit with 1 if one fails."""
    from douban_pipeline.tmdb import terminal

    if not terminal.fetch(entities, language=language):
        raise typer.Exit(1)


@commands.command()
def ask(
    question: Annotated[str, typer.Argument(help="A question in plain words: 《喜宴》的导演是谁？")],
    kb: Annotated[str, typer.Option(help="Kind of title where the question does not say: movie or tv.")] = "movie",
    user: Annotated[str, typer.Option(help="User who asks; without it nothing is recorded.")] = "",
    session: Annotated[str, typer.Option(help="Session of the user; without it nothing is recorded.")] = "",
    incognito: Annotated[bool, typer.Option("--incognito", help="Record nothing.")] = False,
    as_json: _Json = False,
) -> None:
    """Answer a question about films, series and people from TMDB; exit with 1 if TMDB gives no answer."""
    from douban_pipeline.tmdb.enrichment import terminal

    if not terminal.ask(question, kb=kb, user=user, session=session, incognito=incognito, as_json=as_json):
        raise typer.Exit(1)


@commands.command("replay-spool")
def replay_spool(
    dry_run: Annotated[bool, typer.Option(help="Only show how many wait; write nothing.")] = False,
) -> None:
    """Write the records spooled on this machine to PostgreSQL; exit with 1 if some remain."""
    from douban_pipeline.tmdb.enrichment import terminal

    if not terminal.replay_spool(dry_run=dry_run):
        raise typer.Exit(1)


@commands.command()
def sync(
    seconds: Annotated[float | None, typer.Option(min=1, help="Stop after this many seconds.")] = None,
) -> None:
    """Write changes to the graph until none is due; exit with 1 if one could not be written."""
    from douban_pipeline.tmdb import terminal

    if not terminal.sync(seconds=seconds):
        raise typer.Exit(1)


@commands.command()
def rebuild(
    dry_run: Annotated[bool, typer.Option(help="Only show how much would be written; change nothing.")] = True,
) -> None:
    """Empty the graph and rebuild it from the stored answers. A dry run unless --no-dry-run is given."""
    from douban_pipeline.tmdb import terminal

    terminal.rebuild(dry_run=dry_run)


@commands.command()
def stop() -> None:
    """Stop the servers in HOME, which otherwise stop by themselves ten minutes after the last command."""
    from douban_pipeline.tmdb import terminal

    terminal.stop()


@commands.command()
def requeue() -> None:
    """Queue the changes again that were set aside because they could not be written to the graph."""
    from douban_pipeline.tmdb import terminal

    terminal.requeue()


@commands.command()
def prune(
    dry_run: Annotated[bool, typer.Option(help="Only show what would be deleted; change nothing.")] = True,
) -> None:
    """Delete expired data: questions, finished rows of the outbox, answers older than TMDB's terms allow."""
    from douban_pipeline.tmdb import terminal

    terminal.prune(dry_run=dry_run)


@commands.command()
def forget(
    user: Annotated[str, typer.Option(help="The user.")] = "",
    conversation: Annotated[UUID | None, typer.Option(help="Instead of a user: the conversation.")] = None,
) -> None:
    """Delete all questions of a user or a conversation, and all other records that name them."""
    from douban_pipeline.tmdb.enrichment import terminal

    terminal.forget(user=user, conversation=conversation)


@commands.command()
def graph(
    question: Annotated[str, typer.Argument(help="directors, co-actors, regulars or path.")],
    names: Annotated[list[str], typer.Argument(help="Name of a person or a title; two names for path.")],
    most: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of rows.")] = 10,
    picture: Annotated[Path | None, typer.Option(help="Also draw the answer into this SVG file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the picture if the file exists.")] = False,
    as_json: _Json = False,
) -> None:
    """Query the graph: a title's directors, who acts together, a director's regulars, how two people are connected."""
    from douban_pipeline.tmdb import terminal

    terminal.ask(question, tuple(names), most=most, picture=picture, force=force, as_json=as_json)
