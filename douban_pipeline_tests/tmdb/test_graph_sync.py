"""From the store to the graph: nothing lost, nothing twice, the same graph as one built anew."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from neo4j.exceptions import ClientError, Neo4jError

from douban_pipeline.demo.embedded_servers import GraphAddress
from douban_pipeline.tmdb import graph_sync
from douban_pipeline.tmdb.graph.batch import Written
from douban_pipeline.tmdb.graph.target import GraphTarget
from douban_pipeline.tmdb.graph_sync import GraphUnavailableError, drain, rebuild_graph
from douban_pipeline.tmdb.store import outbox
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline_tests.tmdb.given import NOW, actor, answer, cast, crew, movie, show, title

pytestmark = pytest.mark.postgres


def put(store: PostgresTmdbStore, *entities: tuple[str, dict[str, Any]]) -> None:
    store.persist_payloads([answer(entity, raw) for entity, raw in entities])


def edges_of(target: GraphTarget) -> list[tuple[str, int, int, str]]:
    keys = target.dump()[1]
    return sorted((key.relation.value, key.start.tmdb_id, key.end.tmdb_id, key.credit_id) for key in keys)


def assert_same_when_built_anew(store: PostgresTmdbStore, target: GraphTarget) -> None:
    running = target.dump()
    rebuild_graph(store, target, batch=3)
    assert target.dump() == running


def test_one_film_changes_one_edge_changes(store: PostgresTmdbStore, target: GraphTarget):
    put(store, ("movie", movie(1, cast(2, "a"), cast(3, "b"), crew(4, "c"))), ("person", actor(2, title(1, "a"))))
    assert drain(store, target).done == 2
    assert edges_of(target) == [
        ("ACTED_IN", 2, 1, "a"),
        ("ACTED_IN", 3, 1, "b"),
        ("BELONGS_TO_GENRE", 1, 18, ""),
        ("DIRECTED", 4, 1, "c"),
    ]
    put(store, ("movie", movie(1, cast(3, "b"), crew(4, "c"))))
    assert drain(store, target).written == Written(deleted=1)
    assert ("ACTED_IN", 2, 1, "a") not in edges_of(target), "the person still names it, but the film knows better"
    assert drain(store, target).done == 0
    assert_same_when_built_anew(store, target)


def test_gone_and_back(store: PostgresTmdbStore, target: GraphTarget):
    film = movie(1, cast(2, "a"), cast(3, "b"))
    put(store, ("movie", film), ("person", actor(2, title(1, "a"), title(1, "z", character="Voice"))))
    drain(store, target)
    store.write(lambda writer: writer.gone(EntityKey(EntityType.MOVIE, 1), NOW))
    drain(store, target)
    assert edges_of(target) == [("ACTED_IN", 2, 1, "a"), ("ACTED_IN", 2, 1, "z")], "what the person says of it"
    assert_same_when_built_anew(store, target)
    put(store, ("movie", film))
    drain(store, target)
    assert ("ACTED_IN", 3, 1, "b") in edges_of(target)
    assert_same_when_built_anew(store, target)


def test_after_any_history_the_graph_is_the_one_built_anew(store: PostgresTmdbStore, target: GraphTarget):
    draw = random.Random(20)
    for _ in range(24):
        ids = draw.sample(range(1, 6), 3)
        credits = [draw.choice((cast, crew))(each, f"{each}-{draw.randrange(9)}") for each in ids]
        for credit in credits:
            credit["name"] = f"Name {draw.randrange(3)}"
        entity, tmdb_id = draw.choice(["movie", "movie", "tv", "person"]), draw.randrange(1, 6)
        if entity == "person":
            kinds = [(each, draw.choice(("movie", "tv"))) for each in ids]
            raw = actor(tmdb_id, *(title(each, f"{kind}{tmdb_id}-{each}", kind) for each, kind in kinds))
        else:
            named = [{**credit, "credit_id": f"{entity}{tmdb_id}-{credit['credit_id']}"} for credit in credits]
            raw = (movie if entity == "movie" else show)(tmdb_id, *named)
        if draw.random() < 0.2:
            key = EntityKey(EntityType(entity), tmdb_id)
            store.write(lambda writer, key=key: writer.gone(key, NOW))
        else:
            put(store, (entity, raw))
        if draw.random() < 0.4:
            drain(store, target, batch=draw.choice((1, 3)))
    drain(store, target)
    assert_same_when_built_anew(store, target)


def test_a_poisoned_entity_is_put_aside_and_the_rest_flows(
    store: PostgresTmdbStore, target: GraphTarget, monkeypatch: pytest.MonkeyPatch
):
    put(store, *(("movie", movie(each)) for each in (1, 2, 3)))
    original = graph_sync.apply_entities

    def poisoned(store: PostgresTmdbStore, target: GraphTarget, keys: Any) -> Written:
        if any(key.tmdb_id == 2 for key in keys):
            raise ClientError("a property that it does not take")
        return original(store, target, keys)

    monkeypatch.setattr(graph_sync, "apply_entities", poisoned)
    report = drain(store, target, attempts=1)
    assert (report.done, report.dead) == (2, 1)
    assert store.run(outbox.counts).dead == 1
    [buried] = store.run(outbox.dead)
    assert "a property that it does not take" in buried["last_error"]
    monkeypatch.undo()
    store.run(outbox.requeue_dead)
    assert drain(store, target).done == 1
    assert target.counts()["Movie"] == 3


@pytest.mark.parametrize(
    "code",
    [
        "Neo.TransientError.General.MemoryPoolOutOfMemoryError",
        "Neo.TransientError.General.OutOfMemoryError",
        "Neo.ClientError.General.TransactionOutOfMemoryError",
    ],
)
def test_an_entity_that_takes_more_memory_than_the_graph_has_is_put_aside_and_the_rest_flows(
    code: str, store: PostgresTmdbStore, target: GraphTarget, monkeypatch: pytest.MonkeyPatch
):
    put(store, *(("movie", movie(each)) for each in (1, 2, 3)))
    original = graph_sync.apply_entities

    def too_large(store: PostgresTmdbStore, target: GraphTarget, keys: Any) -> Written:
        if any(key.tmdb_id == 2 for key in keys):
            raise Neo4jError._hydrate_neo4j(code=code, message="too large")
        return original(store, target, keys)

    monkeypatch.setattr(graph_sync, "apply_entities", too_large)
    report = drain(store, target, attempts=1)
    assert (report.done, report.dead) == (2, 1)


def test_a_credit_that_moved_to_another_person_is_that_person_s_also_when_built_anew(
    store: PostgresTmdbStore, target: GraphTarget
):
    # TMDB merged two people; of the older one only the old answer is here. The film itself is not stored.
    put(store, ("person", actor(1, title(7, "c"))))
    drain(store, target)
    put(store, ("person", actor(2, title(7, "c"))))
    report = drain(store, target)
    assert (report.done, report.failed) == (1, {})
    assert edges_of(target) == [("ACTED_IN", 2, 7, "c")]
    rebuild_graph(store, target, batch=3)
    assert edges_of(target) == [("ACTED_IN", 2, 7, "c")]


@pytest.mark.parametrize("at_once", [False, True])
def test_of_two_answers_that_have_one_credit_the_newer_one_counts(
    store: PostgresTmdbStore, target: GraphTarget, at_once: bool
):
    old, new = (answer("person", actor(number, title(7, "c"))) for number in (2, 1))
    store.persist_payloads([old])
    if not at_once:
        drain(store, target)
    store.persist_payloads([replace(new, fetched_at=NOW + timedelta(hours=1))])
    drain(store, target)
    assert edges_of(target) == [("ACTED_IN", 1, 7, "c")]
    assert_same_when_built_anew(store, target)


def test_an_entity_that_ends_its_worker_is_put_aside_and_the_rest_flows(
    store: PostgresTmdbStore, target: GraphTarget, monkeypatch: pytest.MonkeyPatch
):
    put(store, *(("movie", movie(each)) for each in (1, 2, 3)))
    original = graph_sync.apply_entities

    def too_large(store: PostgresTmdbStore, target: GraphTarget, keys: Any) -> Written:
        if any(key.tmdb_id == 2 for key in keys):
            raise MemoryError  # as where the process is killed, nobody releases its rows
        return original(store, target, keys)

    monkeypatch.setattr(graph_sync, "apply_entities", too_large)
    for _ in range(8):
        with suppress(MemoryError):
            drain(store, target, attempts=3, lease_seconds=0)
    counts = store.run(outbox.counts)
    assert (counts.waiting, counts.dead) == (0, 1)
    [buried] = store.run(outbox.dead)
    assert (buried["tmdb_id"], buried["attempts"]) == (2, 3)
    assert "ended without a result" in buried["last_error"]
    assert target.counts()["Movie"] == 2


def test_while_the_graph_is_down_nothing_is_lost_and_no_attempt_counts(store: PostgresTmdbStore):
    put(store, ("movie", movie(1)))
    with GraphTarget("bolt://127.0.0.1:1", "x", "x", "x") as nowhere:
        nowhere._driver.close()
        from neo4j import GraphDatabase

        nowhere._driver = GraphDatabase.driver("bolt://127.0.0.1:1", max_transaction_retry_time=0)
        for _ in range(2):
            with pytest.raises(GraphUnavailableError):
                drain(store, nowhere)
    [claimed] = store.run(lambda connection: outbox.claim(connection, "w", 9, 60))
    assert claimed.attempts == 1


def test_a_change_while_it_is_written_is_written_next(
    store: PostgresTmdbStore, target: GraphTarget, monkeypatch: pytest.MonkeyPatch
):
    put(store, ("movie", movie(1, title="A")))
    original = GraphTarget.apply
    titles: list[str] = []

    def changes_once(self: GraphTarget, batch: Any, **options: Any) -> Written:
        [node] = batch.full.values()
        titles.append(node["title"])
        if len(titles) == 1:
            put(store, ("movie", movie(1, title="B")))
        return original(self, batch, **options)

    monkeypatch.setattr(GraphTarget, "apply", changes_once)
    report = drain(store, target)
    assert titles == ["A", "B"]
    assert report.changed_meanwhile == 1
    assert target.ask("MATCH (m:Movie) RETURN m.title AS title") == [{"title": "B"}]


def test_a_change_delivered_twice_ends_in_the_same_graph(store: PostgresTmdbStore, target: GraphTarget):
    put(store, ("movie", movie(1, cast(2, "a"))))
    drain(store, target)
    running = target.dump()
    with store.transaction() as connection:
        connection.execute("UPDATE tmdb.neo4j_etl_outbox SET processed_at = NULL, available_at = now()")
    report = drain(store, target)
    assert (report.done, report.written) == (1, Written())
    assert target.dump() == running


def test_old_answers_leave_the_graph_when_they_leave_the_store(store: PostgresTmdbStore, target: GraphTarget):
    put(store, ("movie", movie(1, cast(2, "a"))))
    drain(store, target)
    with store.transaction() as connection:
        connection.execute("UPDATE tmdb.movies SET fetched_at = now() - interval '200 days'")
    store.expire(NOW)
    drain(store, target)
    assert target.dump() == ({}, {})


# --- killed -----------------------------------------------------------------------------------------------------------

WORKER = """
import sys
from douban_pipeline.tmdb import graph_sync
from douban_pipeline.tmdb.graph import rows, target as module
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore

url, uri, user, password, database, where = sys.argv[1:]

def stop(*_):
    print("here", flush=True)
    sys.stdin.read()  # until it is killed

if where == "before the graph":
    graph_sync.apply_entities = stop
elif where == "within the batch":
    rows._delete_orphans = stop
elif where == "before the acknowledgement":
    graph_sync.outbox.acknowledge = stop
with PostgresTmdbStore(url) as store, module.GraphTarget(uri, user, password, database) as graph:
    report = graph_sync.drain(store, graph, batch=2, lease_seconds=0.5)
print(report.done, flush=True)
"""


def worker(store_url: str, address: GraphAddress, where: str) -> subprocess.Popen[str]:
    arguments = [store_url, address.uri, address.user, address.password, address.database, where]
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("where", ["before the graph", "within the batch", "before the acknowledgement"])
def test_a_killed_worker_loses_nothing(
    store: PostgresTmdbStore, store_url: str, target: GraphTarget, graph_address: GraphAddress, where: str
):
    put(store, *(("movie", movie(each, cast(9, f"c{each}"))) for each in (1, 2, 3)))
    with worker(store_url, graph_address, where) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        os.kill(process.pid, signal.SIGKILL)
    while store.run(outbox.counts).waiting:  # the lease of the dead one ends within a second
        drain(store, target, lease_seconds=0.5)
    assert target.counts()["ACTED_IN"] == 3
    assert_same_when_built_anew(store, target)


def test_two_workers_do_each_row_once(
    store: PostgresTmdbStore, store_url: str, target: GraphTarget, graph_address: GraphAddress
):
    put(store, *(("movie", movie(each, cast(9, f"c{each}"), cast(each, f"d{each}"))) for each in range(1, 31)))
    workers = [worker(store_url, graph_address, "") for _ in range(2)]
    done = [int(process.communicate()[0]) for process in workers]
    assert sum(done) >= 30
    assert store.run(outbox.counts).waiting == 0
    assert target.counts()["ACTED_IN"] == 60
