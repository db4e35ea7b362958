"""The auditor of TMDB finds what is planted in the store and in the graph, and nothing in what is well."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from douban_pipeline.demo.embedded_servers import GraphAddress
from douban_pipeline.tmdb.graph.target import GraphTarget
from douban_pipeline.tmdb.graph_sync import drain
from douban_pipeline.tmdb.services import TmdbServices, open_services
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.harness.soak.tmdb import audit_tmdb
from douban_pipeline_tests.tmdb.given import NOW, answer, cast, movie

pytestmark = pytest.mark.postgres

ROLE, BEFORE = "新角色", "旧角色"


@pytest.fixture
def services(
    store_url: str, graph_address: GraphAddress, target: GraphTarget, tmp_path: Path
) -> Iterator[TmdbServices]:
    """Film 1, whose role was renamed, and film 2, both in the store and in the graph."""
    given: dict[str, Any] = {
        "home": tmp_path,
        "database_url": SecretStr(store_url),
        "graph_uri": graph_address.uri,
        "graph_user": graph_address.user,
        "graph_password": SecretStr(graph_address.password),
        "graph_database": graph_address.database,
    }
    # Its answers are as old as `given` makes them: a guard looks at those of the last days alone.
    opened = open_services(TmdbSettings(_env_file=None, **given), FakeClock(NOW))
    for role in (BEFORE, ROLE):
        put(opened.store, movie(1, cast(5, "a", role)), movie(2, cast(6, "b", "不变")))
        drain(opened.store, target)
    yield opened
    opened.close()


def put(store: PostgresTmdbStore, *films: dict[str, Any]) -> None:
    store.persist_payloads([answer("movie", film) for film in films])


def broken(services: TmdbServices) -> str:
    """Return what is violated, a line an invariant with all its examples."""
    findings = audit_tmdb(services, {1: ROLE, 2: "不变"}, {1: {BEFORE, ROLE}, 2: {"不变"}})
    assert len({finding.invariant for finding in findings}) == len(findings) == 4
    assert all(finding.checked for finding in findings)
    return "\n".join(f"{each.invariant}: {'; '.join(each.examples)}" for each in findings if not each.held)


def test_what_is_well(services: TmdbServices):
    assert broken(services) == ""


def spoil(statement: str) -> Callable[[TmdbServices, GraphTarget], None]:
    """Return what changes the store behind everybody's back."""

    def act(services: TmdbServices, _target: GraphTarget) -> None:
        with services.store.transaction() as connection:
            connection.execute(statement)

    return act


def cypher(statement: str) -> Callable[[TmdbServices, GraphTarget], None]:
    """Return what changes the graph behind everybody's back."""

    def act(_services: TmdbServices, target: GraphTarget) -> None:
        with target._driver.session(database=target.database) as session:
            session.execute_write(lambda tx: tx.run(statement).consume())

    return act


def stored_only(services: TmdbServices, _target: GraphTarget) -> None:
    """Store a new answer that is not written to the graph."""
    put(services.store, movie(1, cast(5, "a", ROLE), cast(7, "c", "新人")))


OLD_ROLE = json.dumps([cast(5, "a", BEFORE)], ensure_ascii=False)


@pytest.mark.parametrize(
    ("act", "invariant", "message"),
    [
        (
            cypher("MATCH (:Movie {tmdb_id: 2})<-[e:ACTED_IN]-() DELETE e"),
            "the graph is the projection",
            "is missing",
        ),
        (
            spoil(f"UPDATE tmdb.movies SET raw = jsonb_set(raw, '{{credits,cast}}', '{OLD_ROLE}') WHERE tmdb_id = 1"),
            "each answer is kept whole",
            f"movie/1: its first role is '{BEFORE}' in the store, TMDB says '{ROLE}'",
        ),
        (
            cypher(f"MATCH (:Movie {{tmdb_id: 1}})<-[e:ACTED_IN]-() SET e.character = '{BEFORE}'"),
            "the graph holds the newest role",
            f"movie/1: '{ROLE}' is not in the graph",
        ),
        (stored_only, "no change waits", "1 changes wait, 0 of them failed"),
    ],
    ids=[
        "an edge that is missing",
        "an older answer in the store",
        "an older role in the graph",
        "a change that waits",
    ],
)
def test_what_is_spoiled_is_found(
    services: TmdbServices,
    target: GraphTarget,
    act: Callable[[TmdbServices, GraphTarget], None],
    invariant: str,
    message: str,
):
    act(services, target)
    [found] = [line for line in broken(services).splitlines() if line.startswith(invariant)]
    assert message in found
