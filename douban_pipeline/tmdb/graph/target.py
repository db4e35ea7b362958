"""The graph database: writes batches of entities, each in one transaction. For Neo4j and compatible Bolt servers.

Of a batch only the difference to the graph is written: edges are read first, stale ones are deleted, new or different
ones are written, identified by ``credit_id``. There is one writer at a time, ensured by `PostgresTmdbStore.graph_lock`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Literal, LiteralString, Self

from neo4j import GraphDatabase, ManagedTransaction
from neo4j.exceptions import ConstraintError

from douban_pipeline.core.database import DatabaseError
from douban_pipeline.core.language import terminal_text
from douban_pipeline.tmdb.graph.batch import ContestedCreditError, GraphBatch, Written, check_edge, check_node
from douban_pipeline.tmdb.types import (
    CREDITS,
    CreditClaim,
    Edge,
    EdgeKey,
    NodeKey,
    NodeLabel,
    Property,
    Relation,
    claims_of,
)

ATTEMPTS = 4
"""Attempts to write a batch that violates a constraint: because a credit was at other ends before, or, as ArcadeDB
reports it, because of another writer."""
ROWS = 2000
"""Maximum number of rows of one statement."""
_TITLES = (NodeLabel.MOVIE, NodeLabel.TV)
_ALL = {
    NodeLabel.MOVIE: ("title", "original_title", "original_language", "release_date", "overview"),
    NodeLabel.TV: ("name", "original_name", "original_language", "first_air_date", "overview"),
    NodeLabel.PERSON: ("name", "known_for_department"),
    NodeLabel.GENRE: ("name",),
}
"""Properties of the graph; one that a node lacks is removed from it."""
_HELD = {
    Relation.ACTED_IN: ("character",),
    Relation.DIRECTED: (),
    Relation.CREW_MEMBER: ("job", "department"),
    Relation.BELONGS_TO_GENRE: (),
}
"""The same of edges."""
_first = itemgetter(0)
_CREDITS = "|".join(relation.value for relation in CREDITS)
_RETURNED = (
    "RETURN labels(s) AS s_labels, s.tmdb_id AS s_id, labels(t) AS t_labels, t.tmdb_id AS t_id, "
    "t.data_state AS state, type(e) AS type, properties(e) AS p"
)
"""Values read of an edge between a title ``t`` and a person or genre ``s``."""


OLDEST_NEO4J = (5, 7)
"""The first Neo4j with unique constraints on properties of edges, which keep each credit once."""


class GraphTarget:
    """A database behind a Bolt address. Close it, or use it in a ``with``.

    Args:
        uri: ``bolt://…`` or ``neo4j://…``.
        user: Account.
        password: Its password.
        database: Name of the database there.
    """

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
            return session.execute_read(lambda tx: tx.run(_literal(cypher), **parameters).data())

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
                session.run(_literal(statement)).consume()

    def apply(self, batch: GraphBatch, *, replace: bool = True) -> Written:
        """Write a batch in one transaction; writing it again changes nothing.

        Args:
            batch: The batch.
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
                    return session.execute_write(_write, batch, moved=attempt > 1)
            except ConstraintError:
                if not replace and (claims := self._contesting(batch)):
                    raise ContestedCreditError(claims) from None
                if attempt == ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _contesting(self, batch: GraphBatch) -> set[CreditClaim]:
        """Return the ends of edges of the graph that have credits of a batch at other ends, and of those there."""
        wanted = {edge.key.credit_id: edge.key for edge in batch.counting()}
        with self._driver.session(database=self.database, default_access_mode="READ") as session:
            moved = session.execute_read(_moved, wanted.values())
        return {claim for key in moved for each in (key, wanted[key.credit_id]) for claim in claims_of(each)}

    def differences(self, batch: GraphBatch) -> list[str]:
        """Return the differences between the graph and a batch, one sentence each; reads only.

        Raises:
            neo4j.exceptions.Neo4jError: The database refuses the query.
            neo4j.exceptions.DriverError: It does not answer.
        """
        wanted = {edge.key: _held(edge.properties) for edge in batch.counting()}
        with self._driver.session(database=self.database, default_access_mode="READ") as session:
            current = session.execute_read(_current, batch.owners)
            nodes = session.execute_read(_nodes, batch.full)
        found = [f"{_shown(key)} is missing" for key in wanted.keys() - current.keys()]
        found += [f"{_shown(key)} is stale" for key in current.keys() - wanted.keys()]
        found += [f"{_shown(key)} differs" for key in current.keys() & wanted.keys() if current[key] != wanted[key]]
        for node, properties in batch.full.items():
            if node not in nodes:
                found.append(f"({node.label.value} {node.tmdb_id}) is missing")
            elif nodes[node] != {**_held(properties), "tmdb_id": node.tmdb_id, "data_state": "full"}:
                found.append(f"({node.label.value} {node.tmdb_id}) differs")
        return sorted(found)

    def clear(self) -> None:
        """Delete all our nodes and edges, in several transactions."""
        with self._driver.session(database=self.database) as session:
            for label in NodeLabel:
                cypher = f"MATCH (n:{label.value}) WITH n LIMIT {ROWS} DETACH DELETE n RETURN count(*) AS done"
                while session.execute_write(_single, cypher):
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
        for pattern in (f"(s:Person)-[e:{_CREDITS}]->(t)", "(t)-[e:BELONGS_TO_GENRE]->(s:Genre)"):
            for key, properties, _ in _edges(self.ask(f"MATCH {pattern} {_RETURNED}")):
                edges[key] = properties
        return nodes, edges


def _write(tx: ManagedTransaction, batch: GraphBatch, *, moved: bool = False) -> Written:
    """Write a batch.

    A credit is one edge: with ``moved`` the batch replaces edges of entities outside it that have its credits. That
    takes a search by credit, which a graph may lack an index for.
    """
    wanted = {edge.key: edge for edge in batch.counting()}
    current = _current(tx, batch.owners)
    stale = [key for key in current if key not in wanted]
    new = [edge for key, edge in wanted.items() if current.get(key) != _held(edge.properties)]
    if moved:
        stale += _moved(tx, [edge.key for edge in new])
    _delete_edges(tx, stale)
    _merge_nodes(tx, batch)
    _write_edges(tx, [edge for edge in new if _is_missing(edge.key, batch, current)], "CREATE")
    _write_edges(tx, [edge for edge in new if not _is_missing(edge.key, batch, current)], "MERGE")
    ends = {end for key in stale for end in (key.start, key.end)} | set(batch.stubs)
    held = {end for key in wanted for end in (key.start, key.end)}
    return Written(len(new), len(stale), _delete_orphans(tx, ends - held - set(batch.full)))


def _moved(tx: ManagedTransaction, keys: Iterable[EdgeKey]) -> list[EdgeKey]:
    """Return the edges whose credits have other ends in ``keys``."""
    found: dict[EdgeKey, None] = {}
    credits = {(key.relation, key.credit_id): key for key in keys if key.relation in CREDITS}
    for relation in CREDITS:
        ids = sorted(credit_id for of, credit_id in credits if of is relation)
        for piece in _pieces(ids):
            cypher = f"MATCH (s:Person)-[e:{relation.value}]->(t) WHERE e.credit_id IN $ids {_RETURNED}"
            rows = tx.run(_literal(cypher), ids=list(piece)).data()
            found |= {key: None for key, _, _ in _edges(rows) if key != credits[relation, key.credit_id]}
    return list(found)


def _is_missing(key: EdgeKey, batch: GraphBatch, current: Mapping[EdgeKey, object]) -> bool:
    """Return whether the graph certainly lacks the edge: all edges of its title were read, without it."""
    title = key.start if key.relation is Relation.BELONGS_TO_GENRE else key.end
    return key not in current and title in batch.owners


def _current(tx: ManagedTransaction, owners: Iterable[NodeKey]) -> dict[EdgeKey, dict[str, Any]]:
    """Return the current edges that the owners may define."""
    found: dict[EdgeKey, dict[str, Any]] = {}
    ids: dict[NodeLabel, list[int]] = defaultdict(list)
    for owner in owners:
        ids[owner.label].append(owner.tmdb_id)
    for label in _TITLES:
        if ids[label]:
            for pattern in (
                f"(t:{label.value} {{tmdb_id: id}})<-[e:{_CREDITS}]-(s:Person)",
                f"(t:{label.value} {{tmdb_id: id}})-[e:BELONGS_TO_GENRE]->(s:Genre)",
            ):
                rows = tx.run(_literal(f"UNWIND $ids AS id MATCH {pattern} {_RETURNED}"), ids=sorted(ids[label])).data()
                found |= {key: properties for key, properties, _ in _edges(rows)}
    if ids[NodeLabel.PERSON]:
        cypher = f"UNWIND $ids AS id MATCH (s:Person {{tmdb_id: id}})-[e:{_CREDITS}]->(t) {_RETURNED}"
        rows = tx.run(_literal(cypher), ids=sorted(ids[NodeLabel.PERSON])).data()
        found |= {key: properties for key, properties, state in _edges(rows) if state != "full"}
    return found


def _nodes(tx: ManagedTransaction, keys: Iterable[NodeKey]) -> dict[NodeKey, dict[str, Any]]:
    """Return the properties of those nodes that exist."""
    ids: dict[NodeLabel, list[int]] = defaultdict(list)
    for key in keys:
        ids[key.label].append(key.tmdb_id)
    return {
        NodeKey(label, row["id"]): row["p"]
        for label, some in ids.items()
        for row in tx.run(
            _literal(f"UNWIND $ids AS id MATCH (n:{label.value} {{tmdb_id: id}}) RETURN id, properties(n) AS p"),
            ids=some,
        ).data()
    }


def _shown(key: EdgeKey) -> str:
    start, end = (f"({node.label.value} {node.tmdb_id})" for node in (key.start, key.end))
    return f"{start}-[{key.relation.value} {key.credit_id}]->{end}"


def _edges(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[EdgeKey, dict[str, Any], str | None]]:
    """Yield edges from rows whose ``t`` is the title and ``s`` the person or genre, with the title's state."""
    for row in rows:
        relation, properties = Relation(row["type"]), dict(row["p"])
        credit_id = properties.pop("credit_id", "")
        s, t = (NodeKey(_label(row[f"{end}_labels"]), row[f"{end}_id"]) for end in "st")
        start, end = (t, s) if relation is Relation.BELONGS_TO_GENRE else (s, t)
        yield EdgeKey(relation, start, end, credit_id), properties, row["state"]


def _label(labels: Sequence[str]) -> NodeLabel:
    return next(NodeLabel(label) for label in labels if label in {each.value for each in NodeLabel})


def _delete_edges(tx: ManagedTransaction, keys: Iterable[EdgeKey]) -> None:
    for (relation, start, end), group in _grouped(keys):
        named = " {credit_id: r[2]}" if relation in CREDITS else ""
        _run(
            tx,
            f"MATCH (s:{start.value} {{tmdb_id: r[0]}})-[e:{relation.value}{named}]->(t:{end.value} {{tmdb_id: r[1]}}) "
            "DELETE e",
            [(key.start.tmdb_id, key.end.tmdb_id, key.credit_id) for key in group],
        )


def _merge_nodes(tx: ManagedTransaction, batch: GraphBatch) -> None:
    rows: dict[NodeLabel, list[tuple[Property, ...]]] = defaultdict(list)
    for nodes, state in ((batch.full, "full"), (batch.stubs, "stub")):
        for key, properties in nodes.items():
            rows[key.label].append((key.tmdb_id, *map(properties.get, _ALL[key.label]), state))
    known: dict[NodeLabel, list[tuple[Property, ...]]] = defaultdict(list)
    for key in batch.known - set(batch.full):
        known[key.label].append((key.tmdb_id,))
    for label, found in sorted(rows.items()):
        names = _ALL[label] if label is NodeLabel.GENRE else (*_ALL[label], "data_state")
        held = ", ".join(f"n.{name} = r[{place}]" for place, name in enumerate(names, 1))
        _run(tx, f"MERGE (n:{label.value} {{tmdb_id: r[0]}}) SET {held}", sorted(found, key=_first))
    for label, found in sorted(known.items()):
        _run(tx, f"MERGE (n:{label.value} {{tmdb_id: r[0]}})", sorted(found, key=_first))


def _write_edges(tx: ManagedTransaction, edges: Iterable[Edge], verb: Literal["CREATE", "MERGE"]) -> None:
    """Write edges with their properties; merging takes longer than creating, because all edges of a node are
    searched."""
    by_key = {edge.key: edge for edge in edges}
    for (relation, start, end), group in _grouped(by_key):
        named = " {credit_id: r[2]}" if relation in CREDITS else ""
        held = ", ".join(f"e.{name} = r[{place}]" for place, name in enumerate(_HELD[relation], 3))
        _run(
            tx,
            f"MATCH (s:{start.value} {{tmdb_id: r[0]}}) MATCH (t:{end.value} {{tmdb_id: r[1]}}) "
            f"{verb} (s)-[e:{relation.value}{named}]->(t) {held and f'SET {held}'}",
            [
                (key.start.tmdb_id, key.end.tmdb_id, key.credit_id, *map(by_key[key].properties.get, _HELD[relation]))
                for key in group
            ],
        )


def _delete_orphans(tx: ManagedTransaction, keys: Iterable[NodeKey]) -> int:
    """Delete those nodes that are not full entities and have no edge left."""
    ids: dict[NodeLabel, list[int]] = defaultdict(list)
    for key in keys:
        ids[key.label].append(key.tmdb_id)
    deleted = 0
    for label, found in sorted(ids.items()):
        stub = "" if label is NodeLabel.GENRE else "n.data_state = 'stub' AND "
        for piece in _pieces(sorted(found)):
            cypher = (
                f"UNWIND $rows AS r MATCH (n:{label.value} {{tmdb_id: r}}) WHERE {stub}NOT (n)--() "
                "DELETE n RETURN count(*) AS done"
            )
            deleted += _single(tx, cypher, rows=list(piece))
    return deleted


def _grouped(keys: Iterable[EdgeKey]) -> Iterator[tuple[tuple[Relation, NodeLabel, NodeLabel], list[EdgeKey]]]:
    """Yield keys by relation and labels, sorted by their ends, so that all writers lock them in the same order."""
    groups: dict[tuple[Relation, NodeLabel, NodeLabel], list[EdgeKey]] = defaultdict(list)
    for key in sorted(keys, key=lambda key: (key.end.tmdb_id, key.start.tmdb_id, key.credit_id)):
        groups[key.relation, key.start.label, key.end.label].append(key)
    yield from sorted(groups.items())


def _run(tx: ManagedTransaction, cypher: str, rows: Sequence[Sequence[Property]]) -> None:
    """Run a statement for each row, whose values are ``r[0]`` and so on: names beside them take as long as they do."""
    for piece in _pieces(rows):
        tx.run(_literal(f"UNWIND $rows AS r {cypher}"), rows=list(piece)).consume()


def _single(tx: ManagedTransaction, cypher: str, **parameters: Any) -> int:
    record = tx.run(_literal(cypher), **parameters).single()
    return int(record["done"]) if record else 0


def _pieces(rows: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(rows), ROWS):
        yield rows[start : start + ROWS]


def _held(properties: Mapping[str, Property]) -> dict[str, Property]:
    return {name: value for name, value in properties.items() if value is not None}


def _literal(cypher: str) -> LiteralString:
    """Mark a statement as trusted: it is built from labels and relations of `types`, never from outside text."""
    return cypher  # type: ignore[return-value,unused-ignore]
