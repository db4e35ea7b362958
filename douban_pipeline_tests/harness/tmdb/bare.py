"""What the libraries do alone with the same rows: psycopg with a table like ours, and one UNWIND MERGE to the graph.

Neither compares, hashes or queues anything: what our own work costs beside theirs is the ratio of the two.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from neo4j import Driver, ManagedTransaction
from psycopg import sql

from douban_pipeline.tmdb.projection import columns_of, project
from douban_pipeline.tmdb.store.entities import EntityAnswer
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.store.statements import TABLES
from douban_pipeline.tmdb.types import EntityType, NodeLabel

_MOVIES = TABLES[EntityType.MOVIE]


def create_tables(store: PostgresTmdbStore) -> None:
    """Create tables beside ours, with the same columns, constraints and indexes."""
    with store.transaction() as connection:
        connection.execute("CREATE SCHEMA bare")
        connection.execute("CREATE TABLE bare.movies (LIKE tmdb.movies INCLUDING ALL)")


def upsert(store: PostgresTmdbStore, given: Sequence[EntityAnswer]) -> None:
    """Upsert films by `executemany`, in one transaction."""
    names = [*_MOVIES.columns, "raw_language", "data_state", "raw", "raw_hash", "fetched_at"]
    query = sql.SQL(
        "INSERT INTO bare.movies (tmdb_id, {names}) VALUES (%(tmdb_id)s, {values}) "
        "ON CONFLICT (tmdb_id) DO UPDATE SET {assigned}"
    ).format(
        names=sql.SQL(", ").join(map(sql.Identifier, names)),
        values=sql.SQL(", ").join(map(sql.Placeholder, names)),
        assigned=sql.SQL(", ").join(sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name)) for name in names),
    )
    with store.transaction() as connection, connection.cursor() as cursor:
        cursor.executemany(query, map(_row, given))


def _row(answer: EntityAnswer) -> dict[str, object]:
    return {
        "tmdb_id": answer.raw["id"],
        **columns_of(EntityType.MOVIE, answer.raw),
        "raw_language": answer.language,
        "data_state": "full",
        "raw": json.dumps(answer.raw, ensure_ascii=False),
        "raw_hash": "",
        "fetched_at": answer.fetched_at,
    }


def merge(driver: Driver, database: str, given: Iterable[EntityAnswer]) -> None:
    """Merge the nodes and edges of films with one statement a label and relation, in one transaction."""
    nodes: dict[NodeLabel, dict[int, Mapping[str, object]]] = {}
    edges: dict[tuple[str, str, str], list[dict[str, object]]] = {}
    for answer in given:
        found = project(answer.entity, answer.raw)
        for node in (found.node, *found.others):
            nodes.setdefault(node.key.label, {})[node.key.tmdb_id] = node.properties
        for key, properties in found.edges:
            row = {"s": key.start.tmdb_id, "t": key.end.tmdb_id, "c": key.credit_id, "p": dict(properties)}
            edges.setdefault((key.relation.value, key.start.label.value, key.end.label.value), []).append(row)

    def work(tx: ManagedTransaction) -> None:
        for label, held in nodes.items():
            rows = [{"id": tmdb_id, "p": dict(properties)} for tmdb_id, properties in held.items()]
            _unwind(tx, f"MERGE (n:{label.value} {{tmdb_id: r.id}}) SET n += r.p", rows)
        for (relation, start, end), some in edges.items():
            named = " {credit_id: r.c}" if relation != "BELONGS_TO_GENRE" else ""
            cypher = (
                f"MATCH (s:{start} {{tmdb_id: r.s}}) MATCH (t:{end} {{tmdb_id: r.t}}) "
                f"MERGE (s)-[e:{relation}{named}]->(t) SET e += r.p"
            )
            _unwind(tx, cypher, some)

    with driver.session(database=database) as session:
        session.execute_write(work)


def _unwind(tx: ManagedTransaction, cypher: str, rows: Sequence[Mapping[str, object]]) -> None:
    tx.run(f"UNWIND $rows AS r {cypher}", rows=[*rows]).consume()
