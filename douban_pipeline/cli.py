"""The command line: setting up, looking at the settings, the demo, measuring. The work itself runs in Dagster."""

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import dagster as dg
import typer
from dagster._core.errors import DagsterExecutionInterruptedError
from pydantic import SecretStr
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.catalog import migrations
from douban_pipeline.catalog.database import DatabaseError
from douban_pipeline.clock import SystemClock
from douban_pipeline.demo.environment import demo_environment, demo_home
from douban_pipeline.demo.replay import ReplayServer
from douban_pipeline.demo.replay import serve as serve_replay
from douban_pipeline.demo.run import run_demo
from douban_pipeline.demo.sample import load_subjects
from douban_pipeline.demo.setup import apply_states, make_library, prepare_home, spread_visits
from douban_pipeline.evaluation.command import EvaluationError, Limits, Request, profile_names
from douban_pipeline.evaluation.command import run as run_evaluation
from douban_pipeline.evaluation.formats import FormatError
from douban_pipeline.launching.pools import POOL_LIMITS, set_pool_limits
from douban_pipeline.linking.guards import profile_of
from douban_pipeline.scheduling.intake import Intake
from douban_pipeline.services import open_services
from douban_pipeline.settings import Settings, SettingsError, load_settings, variable

app = typer.Typer(
    help="Keeps the metadata of a maccms10 library true to Douban. Its work runs in Dagster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()
DEMO_SPREAD = timedelta(minutes=30)
GRACE_SECONDS = 15


@app.command("setup")
def set_up() -> None:
    """Check the settings and the CMS's database, create or upgrade our tables, set Dagster's pool limits."""
    services = open_services(load_settings())
    if "DAGSTER_HOME" not in os.environ:
        raise typer.BadParameter("DAGSTER_HOME is not set: name the folder that holds Dagster's dagster.yaml")
    with dg.DagsterInstance.get() as instance:
        cms = services.cms
        console.print(f"CMS        {services.settings.shown_library_url}, {len(services.categories)} categories")
        console.print(f"           recycle bin: {'yes' if cms.has_recycle_bin else 'no (release before 2026)'}")
        before, after = migrations.upgrade(services.engine, services.settings.table_prefix)
        console.print(f"our tables version {before or 'none'} → {after}")
        set_pool_limits(instance)
        console.print(f"pools      {', '.join(f'{pool} {limit}' for pool, limit in POOL_LIMITS.items())}")
    dry = "[yellow]dry run: nothing is written to the CMS[/yellow]" if services.settings.dry_run else "live"
    console.print(f"mode       {dry}")
    console.print("Next: launch the job initialise_library, then start Dagster (README.md, “Start small”).")
    services.close()


@app.command("settings")
def show_settings() -> None:
    """Show every setting: its variable, its value (never a secret) and what it means."""
    settings = load_settings()
    # A variable that is cut off cannot be copied.
    table = Table(
        Column("variable", no_wrap=True), Column("value", overflow="fold"), Column("meaning", overflow="fold")
    )
    for name, definition in Settings.model_fields.items():
        value = settings.shown_library_url if name == "database_url" else _shown(getattr(settings, name))
        table.add_row(variable(name), value, definition.description or "")
    console.print(table)


@app.command()
def demo() -> None:
    """Run the whole chain over the bundled sample, through Dagster, and print what came of it."""
    try:
        well = run_demo(_project(), console)
    except (KeyboardInterrupt, DagsterExecutionInterruptedError):
        console.print("stopped; `make demo` goes on where it was")
        raise typer.Exit(130) from None
    if not well:
        raise typer.Exit(1)


@app.command()
def dev(
    port: Annotated[int, typer.Option(help="Port of Dagster's UI, on 127.0.0.1.")] = 3000,
) -> None:
    """Open Dagster's UI on the demo library, with sensors and schedules running."""
    project, home = _project(), demo_home()
    prepare_home(home, project)
    with ReplayServer(load_subjects()) as upstream:
        os.environ.update(
            demo_environment(
                home,
                douban_url=upstream.douban_url,
                search_url=upstream.search_url,
                llm_url=upstream.llm_url,
                ui_url=f"http://127.0.0.1:{port}",
            )
        )
        services = open_services(load_settings())
        make_library(services)
        Intake(services.engine, services.tables, services.cms, services.clock).initialise(spread=False)
        apply_states(services)
        spread_visits(services, DEMO_SPREAD)
        services.close()
        with dg.DagsterInstance.get() as instance:
            set_pool_limits(instance)
        console.print(f"Dagster's UI: http://127.0.0.1:{port} (Ctrl-C stops everything)")
        console.print(f"Every shard of the demo library comes due within {DEMO_SPREAD.seconds // 60} minutes.")
        command = [sys.executable, "-m", "dagster", "dev", "-w", str(project / "workspace.yaml")]
        command += ["-h", "127.0.0.1", "-p", str(port), "--log-level", "warning"]
        os.environ["PYTHONWARNINGS"] = "ignore:Parameter,ignore:Function"  # of beta features, used on purpose
        # From the demo's folder: Dagster lets a `.env` of the working directory override the environment, and a
        # checkout's may name a real CMS.
        raise typer.Exit(_until_stopped(command, home))


@app.command("evaluate")
def evaluate_matcher(
    corpus: Annotated[Path, typer.Option(help="Subjects, one JSON object a line.")],
    gold: Annotated[list[Path], typer.Option(help="Labelled rows, one JSON object a line; several may follow.")],
    more: Annotated[list[Path] | None, typer.Argument(metavar="[GOLD]...", help="More files of labelled rows.")] = None,
    profile: Annotated[
        list[str] | None, typer.Option(help="plan, calibrated or both; may be repeated. Default: the setting's.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the reports. Default: evaluation, in the folder of the setting home.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="An earlier report's folder, or its predictions.jsonl, to compare with.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Take only the first rows of each gold file.")] = None,
    hide_truth: Annotated[
        bool, typer.Option(help="Judge headline rows once more with their true subject taken out of the index.")
    ] = True,
    most_wrong: Annotated[
        int | None, typer.Option(min=0, help="Exit with 1 if there are more wrong links, over all rows.")
    ] = None,
    least_coverage: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Exit with 1 if a smaller share of the headline sources is linked."),
    ] = None,
) -> None:
    """Measure the matcher on labelled records: wrong links, coverage, reviews, requests; write a report of it."""
    settings = load_settings()
    names = profile_names(profile or (), settings.match_profile)
    request = Request(
        corpus=corpus,
        gold=[*gold, *(more or ())],
        profiles=[profile_of(settings.model_copy(update={"match_profile": name})) for name in names],
        out=out or settings.home / "evaluation",
        against=against,
        limit=limit,
        hide_truth=hide_truth,
        limits=Limits(most_wrong, least_coverage),
    )
    try:
        kept = run_evaluation(request, console, SystemClock())
    except KeyboardInterrupt:
        console.print("stopped; no report was written or changed")
        raise typer.Exit(130) from None
    if not kept:
        raise typer.Exit(1)


@app.command()
def replay(
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1.")] = 8790,
) -> None:
    """Serve the bundled replay upstream: douban.php, three searches and OpenRouter, from the sample."""
    serve_replay(port=port)


def _until_stopped(command: list[str], directory: Path) -> int:
    """Run ``command`` until it ends; Ctrl-C reaches it too, and it is given the time to stop cleanly."""
    # A shell starts what runs in the background with Ctrl-C ignored, and Dagster stops its children by it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(command, cwd=directory)  # noqa: S603 (our own interpreter, no shell)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        return process.wait()
    except KeyboardInterrupt:
        console.print("stopping …")
    try:
        # In a terminal Ctrl-C reached Dagster as well; sent to this process alone, it did not.
        return process.wait(timeout=GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.terminate()
        return process.wait()


def _project() -> Path:
    """Return the checkout: where `workspace.yaml` and `dagster.yaml` are."""
    project = Path(__file__).resolve().parent.parent
    if not (project / "workspace.yaml").exists():
        raise typer.BadParameter("the demo runs from a checkout (pip install -e .), where workspace.yaml is")
    return project


def _shown(value: object) -> str:
    if isinstance(value, frozenset):
        return ", ".join(str(item) for item in sorted(value)) or "—"
    if isinstance(value, tuple):
        return ", ".join(value) or "—"
    if isinstance(value, SecretStr):
        return "set" if value.get_secret_value() else "—"
    if isinstance(value, dict):
        return ", ".join(f"{name}={policy}" for name, policy in value.items()) or "—"
    return str(value)


def main() -> None:
    """Run the command line; an error a person can mend is told in a line, without a trace."""
    try:
        app()
    except (SettingsError, DatabaseError) as error:
        console.print(f"[red]error:[/red] {error}", markup=True, highlight=False)
        sys.exit(2)
    except (EvaluationError, FormatError) as error:
        console.print(f"[red]error:[/red] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except dg.DagsterError as error:
        told = " ".join(str(error).split())[:400]
        console.print(f"[red]error:[/red] Dagster's instance in DAGSTER_HOME cannot be opened: {told}", highlight=False)
        sys.exit(2)
    except SQLAlchemyError as error:
        console.print(f"[red]database error:[/red] {error}", highlight=False)
        sys.exit(2)
