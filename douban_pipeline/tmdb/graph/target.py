"""The graph database: writes batches of entities, each in one transaction. For Neo4j and compatible Bolt servers.

Of a batch only the difference to the graph is written: edges are read first, stale ones are deleted, new or different
ones are written, identified by ``credit_id``. There is one writer at a time, ensured by `PostgresTmdbStore.graph_lock`.
"""

from __future__ import annotations

import re
from typing import Any, Self

from neo4j import GraphDatabase
from neo4j.exceptions import ConstraintError

from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.language import terminal_text
from douban_pipeline.tmdb.graph.batch import ContestedCreditError, GraphBatch, Written, check_edge, check_node
from douban_pipeline.tmdb.graph.rows import (
    ANY_CREDIT,
    RETURNED,
    ROWS,
    counted,
    current_edges,
    current_nodes,
    edges_of,
    held,
    moved_edges,
    shown,
    trusted,
    write,
)
from douban_pipeline.tmdb.types import CREDITS, CreditClaim, EdgeKey, NodeKey, NodeLabel, Relation, claims_of

ATTEMPTS = 4
"""Attempts to write a batch that violates a constraint: because a credit was at other ends before, or, as ArcadeDB
reports it, because of another writer."""

OLDEST_NEO4J = (5, 7)
"""The first Neo4j with unique constraints on properties of edges, which keep each credit once."""


class GraphTarget:
    """A database behind a Bolt address. Close it, or use it in a ``with``."""

    def __init__(self, uri: str, user: str, password: str, database: str) -> None:
        self.uri = uri
        self.database = database
        self._driver = GraphDatabase.driver(
            uri, auth=(user, password) if user else None, connection_timeout=10, max_transaction_retry_time=15
        )

    def close(self) -> None:
        """Close the connections."""
        self._driver.close()

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def ask(self, cypher: str, **parameters: Any) -> list[dict[str, Any]]:
        """Return the rows of a read-only statement.

        Raises:
            neo4j.exceptions.Neo4jError: The database refuses the statement.
            neo4j.exceptions.DriverError: The database does not answer.
        """
        with self._driver.session(database=self.database, default_access_mode="READ") as session:
            return session.execute_read(lambda tx: tx.run(trusted(cypher), **parameters).data())

    def server(self) -> str:
        """Return the server's name and version.

        Raises:
            neo4j.exceptions.DriverError: It does not answer.
        """
        return str(self._driver.get_server_info().agent)

    def too_old(self) -> str:
        """Return the sentence about a Neo4j that is older than `OLDEST_NEO4J`, empty for any other server.

        Raises:
            neo4j.exceptions.DriverError: It does not answer.
        """
        version = re.match(r"Neo4j/(\d+)\.(\d+)", self.server())
        if version is None or (int(version[1]), int(version[2])) >= OLDEST_NEO4J:
            return ""
        text = terminal_text(
            "Neo4j {found} at {uri} is too old: {oldest} or newer is needed, for unique properties of edges"
        )
        oldest = ".".join(map(str, OLDEST_NEO4J))
        return text.format(found=f"{version[1]}.{version[2]}", uri=self.uri, oldest=oldest)

    def set_up(self) -> None:
        """Create the constraints and indexes that are missing: keys of nodes, credits of edges, names.

        Raises:
            DatabaseError: The server is too old for them.
        """
        if sentence := self.too_old():
            raise DatabaseError(sentence)
        statements = [
            f"CREATE CONSTRAINT {label.value.lower()}_tmdb_id IF NOT EXISTS "
            f"FOR (n:{label.value}) REQUIRE n.tmdb_id IS UNIQUE"
            for label in NodeLabel
        ]
        statements += [
            f"CREATE CONSTRAINT {relation.value.lower()}_credit_id IF NOT EXISTS "
            f"FOR ()-[e:{relation.value}]-() REQUIRE e.credit_id IS UNIQUE"
            for relation in CREDITS
        ]
        for label, name in ((NodeLabel.PERSON, "name"), (NodeLabel.MOVIE, "title"), (NodeLabel.TV, "name")):
            statements.append(
                f"CREATE INDEX {label.value.lower()}_{name} IF NOT EXISTS FOR (n:{label.value}) ON (n.{name})"
            )
        with self._driver.session(database=self.database) as session:
            for statement in statements:
                session.run(trusted(statement)).consume()

    def apply(self, batch: GraphBatch, *, replace: bool = True) -> Written:
        """Write a batch in one transaction; writing it again changes nothing.

        Args:
            replace: Replace edges of entities outside the batch that have its credits.

        Raises:
            ContestedCreditError: There are such edges, and ``replace`` is false.
            GraphValueError: It contains a value that cannot be sent; nothing was written.
            neo4j.exceptions.Neo4jError: The database refuses it; nothing was written.
            neo4j.exceptions.DriverError: The database does not answer; possibly nothing was written.
        """
        for key, properties in (*batch.full.items(), *batch.stubs.items()):
            check_node(key, properties)
        for edges in batch.owners.values():
            for edge in edges:
                check_edge(edge)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with self._driver.session(database=self.database) as session:
                    return session.execute_write(write, batch, moved=attempt > 1)
            except ConstraintError:
                if not replace and (claims := self._contesting(batch)):
                    raise ContestedCreditError(claims) from None
                if attempt == ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _contesting(self, batch: GraphBatch) -> set[CreditClaim]:
        wanted = {edge.key.credit_id: edge.key for edge in batch.counting()}
        with self._driver.session(database=self.database, default_access_mode="READ") as session:
            moved = session.execute_read(moved_edges, wanted.values())
        return {claim for key in moved for each in (key, wanted[key.credit_id]) for claim in claims_of(each)}

    def differences(self, batch: GraphBatch) -> list[str]:
        """Return the differences between the graph and a batch, one sentence each; reads only.

        Raises:
            neo4j.exceptions.Neo4jError: The database refuses the query.
            neo4j.exceptions.DriverError: It does not answer.
        """
        wanted = {edge.key: held(edge.properties) for edge in batch.counting()}
        with self._driver.session(database=self.database, default_access_mode="READ") as session:
            current = session.execute_read(current_edges, batch.owners)
            nodes = session.execute_read(current_nodes, batch.full)
        found = [f"{shown(key)} is missing" for key in wanted.keys() - current.keys()]
        found += [f"{shown(key)} is stale" for key in current.keys() - wanted.keys()]
        found += [f"{shown(key)} differs" for key in current.keys() & wanted.keys() if current[key] != wanted[key]]
        for node, properties in batch.full.items():
            if node not in nodes:
                found.append(f"({node.label.value} {node.tmdb_id}) is missing")
            elif nodes[node] != {**held(properties), "tmdb_id": node.tmdb_id, "data_state": "full"}:
                found.append(f"({node.label.value} {node.tmdb_id}) differs")
        return sorted(found)

    def clear(self) -> None:
        """Delete all our nodes and edges, in several transactions."""
        with self._driver.session(database=self.database) as session:
            for label in NodeLabel:
                cypher = f"MATCH (n:{label.value}) WITH n LIMIT {ROWS} DETACH DELETE n RETURN count(*) AS done"
                while session.execute_write(counted, cypher):
                    pass

    def counts(self) -> dict[str, int]:
        """Return the number of nodes by label, and of edges by type."""
        found = {}
        for label in NodeLabel:
            found[label.value] = self.ask(f"MATCH (n:{label.value}) RETURN count(n) AS n")[0]["n"]
        for relation in Relation:
            found[relation.value] = self.ask(f"MATCH ()-[e:{relation.value}]->() RETURN count(e) AS n")[0]["n"]
        return found

    def dump(self) -> tuple[dict[NodeKey, dict[str, Any]], dict[EdgeKey, dict[str, Any]]]:
        """Return all nodes and edges with their properties, for comparing small graphs."""
        nodes: dict[NodeKey, dict[str, Any]] = {}
        edges: dict[EdgeKey, dict[str, Any]] = {}
        for label in NodeLabel:
            for row in self.ask(f"MATCH (n:{label.value}) RETURN n.tmdb_id AS id, properties(n) AS p"):
                nodes[NodeKey(label, row["id"])] = row["p"]
        for pattern in (f"(s:Person)-[e:{ANY_CREDIT}]->(t)", "(t)-[e:BELONGS_TO_GENRE]->(s:Genre)"):
            for key, properties, _ in edges_of(self.ask(f"MATCH {pattern} {RETURNED}")):
                edges[key] = properties
        return nodes, edges
