"""The options of the commands ``tmdb …``; what they do is in `ops.tmdb`, imported when one is called."""

from datetime import datetime
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from douban_pipeline.tmdb.types import EntityType

tmdb = typer.Typer(help="TMDB's answers in PostgreSQL, and the graph of films and people.", no_args_is_help=True)
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@tmdb.command("setup")
def set_up(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the SQL instead; change nothing.")] = False,
    graph: Annotated[bool, typer.Option(help="Create the graph's constraints and indexes, too.")] = True,
) -> None:
    """Create or upgrade the schema tmdb, and the constraints of the graph database."""
    from douban_pipeline.ops import tmdb as work

    work.set_up(dry_run=dry_run, graph=graph)


@tmdb.command()
def check(
    graph: Annotated[bool, typer.Option(help="Look at the graph database, too.")] = True, as_json: _Json = False
) -> None:
    """Check what the system needs; exit with 1 if something fails. It changes nothing."""
    from douban_pipeline.ops import tmdb as work

    if not work.check(graph=graph, as_json=as_json):
        raise typer.Exit(1)


@tmdb.command()
def load(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Recorded answers, one JSON a line; gz, xz.")],
    as_json: _Json = False,
) -> None:
    """Take recorded answers in as if TMDB had just given them, and say of each what changed; 1 if one is unreadable."""
    from douban_pipeline.ops import tmdb as work

    if not work.load_files(files, as_json=as_json):
        raise typer.Exit(1)


@tmdb.command()
def ids(
    entity: Annotated[EntityType, typer.Argument(help="What the list is of.")],
    file: Annotated[Path | None, typer.Argument(help="As TMDB offers it every day: one JSON a line; gz, xz.")] = None,
    day: Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Or: fetch the list of this day.")] = None,
) -> None:
    """Take TMDB's daily list of ids in: a stub of each entity that is not known."""
    from douban_pipeline.ops import tmdb as work

    work.load_ids(entity, file, day.date() if day else None)


@tmdb.command()
def fetch(
    entities: Annotated[list[str], typer.Argument(metavar="ENTITY...", help="As in TMDB's paths: movie/603 tv/1396.")],
    language: Annotated[str, typer.Option(help="Of the answers; the base language without it.")] = "",
) -> None:
    """Ask TMDB for entities with their credits, store them, and say what changed; exit with 1 if one is not had."""
    from douban_pipeline.ops import tmdb as work

    if not work.fetch(entities, language=language):
        raise typer.Exit(1)


@tmdb.command()
def ask(
    question: Annotated[str, typer.Argument(help="As people ask: 《喜宴》的导演是谁？")],
    kb: Annotated[str, typer.Option(help="What the question is about where it does not say: movie or tv.")] = "movie",
    user: Annotated[str, typer.Option(help="Whose question it is; without it nothing is written down.")] = "",
    session: Annotated[str, typer.Option(help="In which session; without it nothing is written down.")] = "",
    incognito: Annotated[bool, typer.Option("--incognito", help="Write nothing down.")] = False,
    as_json: _Json = False,
) -> None:
    """Answer a question about films, series and people from TMDB; exit with 1 if TMDB gives no answer."""
    from douban_pipeline.ops import tmdb_service as work

    if not work.ask(question, kb=kb, user=user, session=session, incognito=incognito, as_json=as_json):
        raise typer.Exit(1)


@tmdb.command("replay-spool")
def replay_spool(
    dry_run: Annotated[bool, typer.Option(help="Say how many wait, and write nothing.")] = False,
) -> None:
    """Write to PostgreSQL what waits in this machine's spool; exit with 1 if something is left."""
    from douban_pipeline.ops import tmdb_service as work

    if not work.replay_spool(dry_run=dry_run):
        raise typer.Exit(1)


@tmdb.command()
def replay(
    recorded: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Recorded answers; the bundled ones without.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on loopback.")] = 8791,
) -> None:
    """Serve recorded answers as TMDB's API does, on loopback, until Ctrl-C."""
    from douban_pipeline.ops import tmdb as work

    work.replay(recorded, port)


@tmdb.command()
def sync(
    seconds: Annotated[float | None, typer.Option(min=1, help="Stop after this long.")] = None,
) -> None:
    """Bring what changed into the graph, until nothing is due; exit with 1 if something could not be written."""
    from douban_pipeline.ops import tmdb as work

    if not work.sync(seconds=seconds):
        raise typer.Exit(1)


@tmdb.command()
def rebuild(
    dry_run: Annotated[bool, typer.Option(help="Say from how much, and change nothing.")] = True,
) -> None:
    """Empty the graph and build it again from the stored answers. A dry run unless --no-dry-run is given."""
    from douban_pipeline.ops import tmdb as work

    work.rebuild(dry_run=dry_run)


@tmdb.command()
def requeue() -> None:
    """Queue again what was put aside because it could not be written to the graph."""
    from douban_pipeline.ops import tmdb as work

    work.requeue()


@tmdb.command()
def prune(
    dry_run: Annotated[bool, typer.Option(help="Say what would go, and change nothing.")] = True,
) -> None:
    """Delete what is kept no longer: questions, done rows of the outbox, answers older than TMDB's terms allow."""
    from douban_pipeline.ops import tmdb as work

    work.prune(dry_run=dry_run)


@tmdb.command()
def forget(
    user: Annotated[str, typer.Option(help="Whose questions.")] = "",
    conversation: Annotated[UUID | None, typer.Option(help="Or: of which conversation.")] = None,
) -> None:
    """Delete all questions of a user, or of a conversation, and what else names them."""
    from douban_pipeline.ops import tmdb_service as work

    work.forget(user=user, conversation=conversation)


@tmdb.command()
def graph(
    question: Annotated[str, typer.Argument(help="directors, co-actors, regulars or path.")],
    names: Annotated[list[str], typer.Argument(help="Of whom or what: one name; two for path.")],
    most: Annotated[int, typer.Option(min=1, max=1000, help="Rows at most.")] = 10,
    as_json: _Json = False,
) -> None:
    """Ask the graph: who directed a title, who acts together, a director's regulars, how two people are connected."""
    from douban_pipeline.ops import tmdb as work

    work.ask(question, tuple(names), most=most, as_json=as_json)
