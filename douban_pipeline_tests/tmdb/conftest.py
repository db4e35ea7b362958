"""A store on a database of its own and a graph database, both emptied for each test; the service without either.

The stand-in of the API is `server`, which a module may have answer what it tests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from douban_pipeline.demo.embedded_servers import GraphAddress, embedded_graph
from douban_pipeline.tmdb.enrichment.service import TMDBEnrichmentService
from douban_pipeline.tmdb.enrichment.spool import Spool
from douban_pipeline.tmdb.graph.target import GraphTarget
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline_tests.conftest import new_database
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.stand_ins.tmdb_server import TmdbServer
from douban_pipeline_tests.tmdb.given import KEY
from douban_pipeline_tests.tmdb.serving import FakeStore, service_of

_TABLES = (
    "movies, people, tv_shows, genres, enrichment_requests, neo4j_etl_outbox, vod_link, vod_match, daily_numbers, "
    "gate, snapshot, credit_claim"
)


@pytest.fixture(scope="session")
def _migrated() -> Iterator[str]:
    with new_database("postgres") as url, PostgresTmdbStore(url) as store:
        store.upgrade()
        yield url


@pytest.fixture
def store_url(_migrated: str) -> str:
    """The address of a database with the empty schema."""
    with PostgresTmdbStore(_migrated) as store, store.transaction() as connection:
        connection.execute(f"TRUNCATE {', '.join(f'tmdb.{name}' for name in _TABLES.split(', '))} CASCADE")
    return _migrated


@pytest.fixture
def store(store_url: str) -> Iterator[PostgresTmdbStore]:
    """An empty store."""
    with PostgresTmdbStore(store_url) as opened:
        yield opened


@pytest.fixture(scope="session")
def _arcadedb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphAddress]:
    with embedded_graph(tmp_path_factory.mktemp("graph"), memory_mb=384) as address:
        yield address


@pytest.fixture(params=["arcadedb", *(["neo4j"] if "NEO4J_TEST_URI" in os.environ else [])])
def graph_address(request: pytest.FixtureRequest) -> GraphAddress:
    """Where each graph database answers: the wheel's, and the Neo4j at ``NEO4J_TEST_URI``, which is emptied."""
    if request.param == "arcadedb":
        found: GraphAddress = request.getfixturevalue("_arcadedb")
        return found
    named = {name: os.environ.get(f"NEO4J_TEST_{name.upper()}", "neo4j") for name in ("user", "password", "database")}
    return GraphAddress(os.environ["NEO4J_TEST_URI"], **named)


@pytest.fixture
def target(graph_address: GraphAddress) -> Iterator[GraphTarget]:
    """An empty graph with its constraints."""
    address = graph_address
    with GraphTarget(address.uri, address.user, address.password, address.database) as opened:
        opened.set_up()
        opened.clear()
        yield opened


@pytest.fixture
def server() -> Iterator[TmdbServer]:
    with TmdbServer() as running:
        yield running


@pytest.fixture
def fake_store() -> FakeStore:
    return FakeStore()


@pytest.fixture
def spool(tmp_path: Path, clock: FakeClock) -> Iterator[Spool]:
    opened = Spool(tmp_path / "tmdb" / "spool.sqlite", clock)
    yield opened
    opened.close()


@pytest.fixture
def service(
    server: TmdbServer, fake_store: FakeStore, spool: Spool, clock: FakeClock
) -> Iterator[TMDBEnrichmentService]:
    with ExitStack() as stack:
        yield service_of(server, fake_store, spool, clock, stack)


@pytest.fixture
def settings(
    store_url: str, graph_address: GraphAddress, server: TmdbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> TmdbSettings:
    """Settings of a code location whose store is empty, with a graph and the stand-in of the API."""
    monkeypatch.setattr("douban_pipeline.tmdb.services.REQUEST_TIMEOUT_SECONDS", 2.0)
    given: dict[str, Any] = {
        "home": tmp_path,
        "database_url": SecretStr(store_url),
        "graph_uri": graph_address.uri,
        "graph_user": graph_address.user,
        "graph_password": SecretStr(graph_address.password),
        "graph_database": graph_address.database,
        "api_url": server.api_url,
        "api_key": SecretStr(KEY),
        "requests_per_second": 1000.0,
    }
    return TmdbSettings(_env_file=None, **given)
