"""The command line: setup, checks, backups, the service. The pipeline itself runs in Dagster; `demo.cli` adds the demo.

Commands are only names, options and help here: each imports its implementation when it is called, so that ``--help``
does not load Dagster, SQLAlchemy or the dictionaries of the matcher. Help and Typer's own texts are in the language of
the terminal.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from douban_pipeline.core.language import terminal_language, terminal_text
from douban_pipeline.core.system import every_system, release_line

app = typer.Typer(
    help="Keeps the metadata of a maccms10 library true to Douban. Its work runs in Dagster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(release_line())
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the release and the versions of its tables, and exit.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Options before a command."""


_Systems = Annotated[
    list[str] | None,
    typer.Option("--system", help="douban, feeds … or all; may be repeated. Default: DOUBAN_PIPELINE_SYSTEMS."),
]

# --- an installation --------------------------------------------------------------------------------------------------


@app.command("init")
def initialise(
    database_url: Annotated[
        str | None,
        typer.Option(help="The CMS's database: mysql://USER:PASSWORD@HOST:3306/DATABASE; the password is asked for."),
    ] = None,
    table_prefix: Annotated[str | None, typer.Option(help="Prefix of the CMS's tables; found if there is one.")] = None,
    systems: Annotated[str | None, typer.Option(help="Systems to install, separated by commas.")] = None,
    home: Annotated[Path | None, typer.Option(help="Folder for reports and backups, outside the checkout.")] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Folder for the installation's files; by default `site` in HOME.")
    ] = None,
    answer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=ANSWER",
            help="Answer to a question: category-kinds, collector-compares, douban-url, search-url. May be repeated.",
        ),
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", metavar="VARIABLE=VALUE", help="Any setting. May be repeated.")
    ] = None,
    storage_url: Annotated[
        str | None, typer.Option(help="PostgreSQL of Dagster's storage; without one it is SQLite, for a first look.")
    ] = None,
    videos: Annotated[int, typer.Option(min=1, max=200, help="Videos to judge in the first look.")] = 20,
    ask: Annotated[
        bool | None, typer.Option(help="Ask for what is not given; by default if there is a terminal.")
    ] = None,
) -> None:
    """Set up an installation step by step, down to a page with the first proposals. Safe to repeat."""
    from douban_pipeline.ops.init.command import init
    from douban_pipeline.ops.init.new_installation import InitOptions, pairs

    init(
        InitOptions(
            database_url=database_url,
            table_prefix=table_prefix,
            systems=systems,
            home=home,
            folder=folder,
            settings=pairs(setting or (), "--set"),
            answers=pairs(answer or (), "--answer"),
            storage_url=storage_url,
            videos=videos,
            ask=sys.stdin.isatty() if ask is None else ask,
        )
    )


@app.command("setup")
def set_up(system: _Systems = None) -> None:
    """Check the settings and the databases, create or upgrade our tables, set Dagster's pool limits."""
    from douban_pipeline.ops import installation

    installation.set_up(system)


@app.command()
def check(
    dagster: Annotated[bool, typer.Option(help="Also check Dagster's instance.")] = True,
    sources: Annotated[
        bool, typer.Option("--sources", help="Send one request to each source and show the result.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for monitors.")] = False,
    system: _Systems = None,
) -> None:
    """Check everything the pipeline needs; exit with 1 if a check fails. Changes nothing."""
    from douban_pipeline.ops import installation_check

    if not installation_check.check(system, dagster=dagster, sources=sources, as_json=as_json):
        raise typer.Exit(1)


@app.command()
def upgrade(
    plan: Annotated[bool, typer.Option("--plan", help="Only print what it will run; change nothing.")] = False,
    system: _Systems = None,
) -> None:
    """Print what upgrades our tables to this release, and run it. Stop Dagster and take a backup first."""
    from douban_pipeline.ops import installation

    installation.upgrade(system, only_plan=plan)


@app.command()
def grants(
    user: Annotated[
        str | None, typer.Option(help="Name of the pipeline's database account; by default the URL's.")
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="Host it connects from, as the database server sees it; by default this machine.")
    ] = None,
    system: _Systems = None,
) -> None:
    """Print the least privileges that the pipeline's account needs, as SQL for the database's administrator."""
    from douban_pipeline.ops import installation

    installation.print_grants(system, user, host)


@app.command()
def backup(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to write a file per system.")],
    only_print: Annotated[bool, typer.Option("--print", help="Print the commands; run none.")] = False,
    keep: Annotated[int | None, typer.Option(min=1, help="Keep only this many of the newest backups.")] = None,
    system: _Systems = None,
) -> None:
    """Save our tables with mariadb-dump, pg_dump or sqlite3. Runs may continue; docs/upgrade.md says how to restore."""
    from douban_pipeline.ops import backup

    backup.back_up(system, folder, keep=keep, only_print=only_print)


@app.command("settings")
def show_settings(system: _Systems = None) -> None:
    """Show every setting: its variable, its value (never a secret) and what it means."""
    from douban_pipeline.ops import shown_settings

    shown_settings.show_settings(system)


# --- the service ------------------------------------------------------------------------------------------------------


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on; SERVE_HOST by default.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535, help="Port; SERVE_PORT by default.")] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, max=64, help="Number of server processes; SERVE_PROCESSES by default.")
    ] = None,
) -> None:
    """Serve the pages over HTTP until stopped. Addresses other than loopback need SERVE_TOKEN."""
    from douban_pipeline.ops import service

    service.serve(host, port, processes)


# --- the systems' own -------------------------------------------------------------------------------------------------


def add_commands_of_systems(app: typer.Typer) -> None:
    """Add the commands that the systems hand over: those under a name as its group, others beside the operators'."""
    for system in every_system():
        if system.commands is not None:
            app.add_typer(system.commands())


add_commands_of_systems(app)

# --- errors -----------------------------------------------------------------------------------------------------------


def main() -> None:
    """Run the command line; an error that a person can fix is one line without a traceback, and exit code 2.

    Ctrl-C before a command has begun is exit code 130, without a word.
    """
    try:
        from douban_pipeline.core.console import console, print_what_cannot_be_encoded
        from douban_pipeline.core.files import keep_private

        print_what_cannot_be_encoded()
        keep_private()
        if terminal_language() == "zh":
            in_terminal_language(app)()
        else:
            app()
    except Exception as error:
        line = _line_for(error)
        if line is None:
            raise
        console.print(line, highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _line_for(error: Exception) -> str | None:
    """Return the markup to print for an error that a person can fix; None for any other error."""
    from rich.markup import escape

    from douban_pipeline.core.extras import missing_library

    if _is_a(
        error,
        ("douban_pipeline.core.settings_base", "SettingsError"),
        ("douban_pipeline.core.database_urls", "DatabaseError"),
        ("douban_pipeline.core.errors", "OperatingError"),
        ("douban_pipeline.core.errors", "ProblemsError"),
    ):
        return f"[red]{terminal_text('error:')}[/red] {escape(str(error))}"
    if isinstance(error, OSError) and error.strerror:  # a full disk, or a folder that is not there or not writable
        named = f"{error.filename}: " if error.filename else ""
        return f"[red]{terminal_text('error:')}[/red] {escape(f'{named}{error.strerror}')}"
    if _is_a(error, ("dagster", "DagsterError")):
        short = escape(" ".join(str(error).split())[:400])
        opened = terminal_text("Dagster's instance in DAGSTER_HOME cannot be opened: ")
        return f"[red]{terminal_text('error:')}[/red] {opened}{short}"
    if isinstance(error, ModuleNotFoundError):
        for system in every_system():
            if error.name in system.libraries:
                return f"[red]{terminal_text('error:')}[/red] {escape(missing_library(error.name, system.name))}"
    if _is_a(error, ("neo4j.exceptions", "Neo4jError"), ("neo4j.exceptions", "DriverError")):
        return f"[red]{terminal_text('graph error:')}[/red] {escape(str(error))}"
    if _is_a(error, ("sqlalchemy.exc", "DBAPIError")):
        from douban_pipeline.core.database_errors import asked_database, explained

        if any(asked_database(error)):
            return f"[red]{terminal_text('error:')}[/red] {escape(str(explained(cast(Any, error))))}"
    of_databases = (("sqlalchemy.exc", "SQLAlchemyError"), ("sqlite3", "Error"), ("psycopg", "Error"))
    if _is_a(error, *of_databases):
        return f"[red]{terminal_text('database error:')}[/red] {escape(str(error))}"
    return None


def _is_a(error: Exception, *classes: tuple[str, str]) -> bool:
    """Return whether an error is of one of these classes, each given as module and name.

    A class whose module was not imported cannot have been raised, so nothing is imported here.
    """
    loaded = [(sys.modules[module], name) for module, name in classes if module in sys.modules]
    return any(isinstance(error, getattr(module, name, ())) for module, name in loaded)


INTERRUPTED = 130
"""Exit code of what Ctrl-C ended."""
TYPER_TEXTS = (
    "ARGUMENTS_PANEL_TITLE",
    "OPTIONS_PANEL_TITLE",
    "COMMANDS_PANEL_TITLE",
    "ERRORS_PANEL_TITLE",
    "DEFAULT_STRING",
    "REQUIRED_LONG_STRING",
    "RICH_HELP",
)
"""Texts of Typer's help by their names in `typer.rich_utils`; other releases may use other names."""


def in_terminal_language(app: typer.Typer) -> Any:
    """Return the commands of ``app`` with their help in the language of the terminal."""
    from typer import rich_utils

    for name in TYPER_TEXTS:
        if hasattr(rich_utils, name):
            setattr(rich_utils, name, terminal_text(getattr(rich_utils, name)))
    commands = typer.main.get_command(app)
    for each in with_help(commands):
        if each.help:
            each.help = terminal_text(each.help)
    return commands


def with_help(command: Any) -> Iterator[Any]:
    """Yield everything below a command that has a text of help: commands, arguments and options."""
    given = command.get_help_option(typer.Context(command))
    yield command
    yield from (each for each in (*command.params, given) if hasattr(each, "help"))
    for inner in getattr(command, "commands", {}).values():
        yield from with_help(inner)
