"""What the libraries do alone with the same rows: psycopg with a table like ours, and one UNWIND MERGE to the graph.

Neither compares, hashes or queues anything: what our own work costs beside theirs is the ratio of the two.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from neo4j import GraphDatabase
from psycopg import sql

from douban_pipeline.core.database import chunks
from douban_pipeline.tmdb.graph.target import ROWS
from douban_pipeline.tmdb.embedded import GraphAddress
from douban_pipeline.tmdb.projection import columns_of, project
from douban_pipeline.tmdb.store.entities import EntityAnswer
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.store.statements import TABLES
from douban_pipeline.tmdb.types import EntityType, NodeLabel

_MOVIES = TABLES[EntityType.MOVIE]


def create_table(store: PostgresTmdbStore) -> None:
    """Create a table beside ours, with the same columns, constraints and indexes."""
    with store.transaction() as connection:
        connection.execute("CREATE SCHEMA bare")
        connection.execute("CREATE TABLE bare.movies (LIKE tmdb.movies INCLUDING ALL)")


def upsert(store: PostgresTmdbStore, given: Sequence[EntityAnswer], batch: int) -> None:
    """Upsert films by `executemany`, a transaction a batch."""
    names = [*_MOVIES.columns, "raw_language", "data_state", "raw", "raw_hash", "fetched_at"]
    query = sql.SQL(
        "INSERT INTO bare.movies (tmdb_id, {names}) VALUES (%(tmdb_id)s, {values}) ON CONFLICT (tmdb_id) DO UPDATE SET {set}"
    ).format(
        names=sql.SQL(", ").join(map(sql.Identifier, names)),
        values=sql.SQL(", ").join(map(sql.Placeholder, names)),
        set=sql.SQL(", ").join(sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name)) for name in names),
    )
    for piece in chunks(given, batch):
        with store.transaction() as connection, connection.cursor() as cursor:
            cursor.executemany(query, [_row(answer) for answer in piece])


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


def merge(address: GraphAddress, given: Iterable[EntityAnswer]) -> None:
    """Merge the nodes and edges of films with one statement a label and relation, as many rows at once as we send."""
    nodes: dict[NodeLabel, dict[int, dict[str, object]]] = {}
    edges: dict[tuple[str, str, str], list[dict[str, object]]] = {}
    for answer in given:
        found = project(answer.entity, answer.raw)
        for node in (found.node, *found.others):
            nodes.setdefault(node.key.label, {})[node.key.tmdb_id] = dict(node.properties)
        for key, properties in found.edges:
            row = {"s": key.start.tmdb_id, "t": key.end.tmdb_id, "c": key.credit_id, "p": dict(properties)}
            edges.setdefault((key.relation.value, key.start.label.value, key.end.label.value), []).append(row)
    with (
        GraphDatabase.driver(address.uri, auth=(address.user, address.password)) as driver,
        driver.session(database=address.database) as session,
    ):
        for label, rows in nodes.items():
            for piece in chunks([{"id": tmdb_id, "p": held} for tmdb_id, held in rows.items()], ROWS):
                cypher = f"UNWIND $rows AS r MERGE (n:{label.value} {{tmdb_id: r.id}}) SET n += r.p"
                session.execute_write(lambda tx, cypher=cypher, piece=piece: tx.run(cypher, rows=list(piece)).consume())
        for (relation, start, end), some in edges.items():
            named = " {credit_id: r.c}" if relation != "BELONGS_TO_GENRE" else ""
            for piece in chunks(some, ROWS):
                cypher = (
                    f"UNWIND $rows AS r MATCH (s:{start} {{tmdb_id: r.s}}) MATCH (t:{end} {{tmdb_id: r.t}}) "
                    f"MERGE (s)-[e:{relation}{named}]->(t) SET e += r.p"
                )
                session.execute_write(lambda tx, cypher=cypher, piece=piece: tx.run(cypher, rows=list(piece)).consume())
