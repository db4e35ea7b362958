"""The command line: setting up, watching, backups, the demo, measuring. The work itself runs in Dagster."""

import sys
from collections.abc import Callable

import dagster as dg
import typer
from rich.markup import escape
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.database import DatabaseError
from douban_pipeline.douban.settings import SettingsError
from douban_pipeline.evaluation.command import EvaluationError
from douban_pipeline.evaluation.formats import FormatError
from douban_pipeline.ops.client_programs import OperatingError
from douban_pipeline.ops.commands import copies, demonstrating, measuring, setting_up, watching
from douban_pipeline.ops.commands.output import console

app = typer.Typer(
    help="Keeps the metadata of a maccms10 library true to Douban. Its work runs in Dagster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
COMMANDS: dict[str, Callable[..., None]] = {
    "setup": setting_up.set_up,
    "check": watching.check,
    "upgrade": setting_up.upgrade,
    "grants": setting_up.grants,
    "backup": copies.backup,
    "restore": copies.restore,
    "settings": setting_up.show_settings,
    "demo": demonstrating.demo,
    "dev": demonstrating.dev,
    "evaluate": measuring.evaluate_matcher,
    "replay": demonstrating.replay,
}
for name, command in COMMANDS.items():
    app.command(name)(command)


def main() -> None:
    """Run the command line; an error a person can mend is told in a line, without a trace."""
    try:
        app()
    except (SettingsError, DatabaseError) as error:
        console.print(f"[red]error:[/red] {error}", markup=True, highlight=False)
        sys.exit(2)
    except (EvaluationError, FormatError, OperatingError) as error:
        console.print(f"[red]error:[/red] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except dg.DagsterError as error:
        told = " ".join(str(error).split())[:400]
        console.print(f"[red]error:[/red] Dagster's instance in DAGSTER_HOME cannot be opened: {told}", highlight=False)
        sys.exit(2)
    except SQLAlchemyError as error:
        console.print(f"[red]database error:[/red] {error}", highlight=False)
        sys.exit(2)
