"""Statements that write rows of a batch to the graph and read them, in a transaction of the driver's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Literal, LiteralString

from neo4j import ManagedTransaction

from douban_pipeline.core.database import chunks
from douban_pipeline.tmdb.graph.batch import GraphBatch, Written
from douban_pipeline.tmdb.types import CREDITS, Edge, EdgeKey, NodeKey, NodeLabel, Property, Relation

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
_OF_EDGES = {
    Relation.ACTED_IN: ("character",),
    Relation.DIRECTED: (),
    Relation.CREW_MEMBER: ("job", "department"),
    Relation.BELONGS_TO_GENRE: (),
}
"""The same of edges."""
_first = itemgetter(0)
ANY_CREDIT = "|".join(relation.value for relation in CREDITS)
RETURNED = (
    "RETURN labels(s) AS s_labels, s.tmdb_id AS s_id, labels(t) AS t_labels, t.tmdb_id AS t_id, "
    "t.data_state AS state, type(e) AS type, properties(e) AS p"
)
"""Values read of an edge between a title ``t`` and a person or genre ``s``."""


def write(tx: ManagedTransaction, batch: GraphBatch, *, moved: bool = False) -> Written:
    """Write a batch.

    A credit is one edge: with ``moved`` the batch replaces edges of entities outside it that have its credits. That
    takes a search by credit, which a graph may lack an index for.
    """
    wanted = {edge.key: edge for edge in batch.counting()}
    current = current_edges(tx, batch.owners)
    stale = [key for key in current if key not in wanted]
    new = [edge for key, edge in wanted.items() if current.get(key) != held(edge.properties)]
    if moved:
        stale += moved_edges(tx, [edge.key for edge in new])
    _delete_edges(tx, stale)
    _merge_nodes(tx, batch)
    _write_edges(tx, [edge for edge in new if _is_missing(edge.key, batch, current)], "CREATE")
    _write_edges(tx, [edge for edge in new if not _is_missing(edge.key, batch, current)], "MERGE")
    ends = {end for key in stale for end in (key.start, key.end)} | set(batch.stubs)
    ends -= {end for key in wanted for end in (key.start, key.end)} | set(batch.full)
    return Written(len(new), len(stale), _delete_orphans(tx, ends))


def moved_edges(tx: ManagedTransaction, keys: Iterable[EdgeKey]) -> list[EdgeKey]:
    """Return the edges whose credits have other ends in ``keys``."""
    found: dict[EdgeKey, None] = {}
    credits = {(key.relation, key.credit_id): key for key in keys if key.relation in CREDITS}
    for relation in CREDITS:
        ids = sorted(credit_id for of, credit_id in credits if of is relation)
        for piece in chunks(ids, ROWS):
            cypher = f"MATCH (s:Person)-[e:{relation.value}]->(t) WHERE e.credit_id IN $ids {RETURNED}"
            rows = tx.run(trusted(cypher), ids=list(piece)).data()
            found |= {key: None for key, _, _ in edges_of(rows) if key != credits[relation, key.credit_id]}
    return list(found)


def _is_missing(key: EdgeKey, batch: GraphBatch, current: Mapping[EdgeKey, object]) -> bool:
    """Return whether the graph certainly lacks the edge: all edges of its title were read, without it."""
    title = key.start if key.relation is Relation.BELONGS_TO_GENRE else key.end
    return key not in current and title in batch.owners


def current_edges(tx: ManagedTransaction, owners: Iterable[NodeKey]) -> dict[EdgeKey, dict[str, Any]]:
    """Return the current edges that the owners may define."""
    found: dict[EdgeKey, dict[str, Any]] = {}
    ids: dict[NodeLabel, list[int]] = defaultdict(list)
    for owner in owners:
        ids[owner.label].append(owner.tmdb_id)
    for label in _TITLES:
        if ids[label]:
            for pattern in (
                f"(t:{label.value} {{tmdb_id: id}})<-[e:{ANY_CREDIT}]-(s:Person)",
                f"(t:{label.value} {{tmdb_id: id}})-[e:BELONGS_TO_GENRE]->(s:Genre)",
            ):
                rows = tx.run(trusted(f"UNWIND $ids AS id MATCH {pattern} {RETURNED}"), ids=sorted(ids[label])).data()
                found |= {key: properties for key, properties, _ in edges_of(rows)}
    if ids[NodeLabel.PERSON]:
        cypher = f"UNWIND $ids AS id MATCH (s:Person {{tmdb_id: id}})-[e:{ANY_CREDIT}]->(t) {RETURNED}"
        rows = tx.run(trusted(cypher), ids=sorted(ids[NodeLabel.PERSON])).data()
        found |= {key: properties for key, properties, state in edges_of(rows) if state != "full"}
    return found


def current_nodes(tx: ManagedTransaction, keys: Iterable[NodeKey]) -> dict[NodeKey, dict[str, Any]]:
    """Return the properties of those nodes that exist."""
    ids: dict[NodeLabel, list[int]] = defaultdict(list)
    for key in keys:
        ids[key.label].append(key.tmdb_id)
    return {
        NodeKey(label, row["id"]): row["p"]
        for label, some in ids.items()
        for row in tx.run(
            trusted(f"UNWIND $ids AS id MATCH (n:{label.value} {{tmdb_id: id}}) RETURN id, properties(n) AS p"),
            ids=some,
        ).data()
    }


def shown(key: EdgeKey) -> str:
    start, end = (f"({node.label.value} {node.tmdb_id})" for node in (key.start, key.end))
    return f"{start}-[{key.relation.value} {key.credit_id}]->{end}"


def edges_of(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[EdgeKey, dict[str, Any], str | None]]:
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
        assigned = ", ".join(f"n.{name} = r[{place}]" for place, name in enumerate(names, 1))
        _run(tx, f"MERGE (n:{label.value} {{tmdb_id: r[0]}}) SET {assigned}", sorted(found, key=_first))
    for label, found in sorted(known.items()):
        _run(tx, f"MERGE (n:{label.value} {{tmdb_id: r[0]}})", sorted(found, key=_first))


def _write_edges(tx: ManagedTransaction, edges: Iterable[Edge], verb: Literal["CREATE", "MERGE"]) -> None:
    """Write edges with their properties; merging takes longer than creating, because all edges of a node are
    searched."""
    by_key = {edge.key: edge for edge in edges}
    for (relation, start, end), group in _grouped(by_key):
        named = " {credit_id: r[2]}" if relation in CREDITS else ""
        assigned = ", ".join(f"e.{name} = r[{place}]" for place, name in enumerate(_OF_EDGES[relation], 3))
        _run(
            tx,
            f"MATCH (s:{start.value} {{tmdb_id: r[0]}}) MATCH (t:{end.value} {{tmdb_id: r[1]}}) "
            f"{verb} (s)-[e:{relation.value}{named}]->(t) {assigned and f'SET {assigned}'}",
            [
                (
                    key.start.tmdb_id,
                    key.end.tmdb_id,
                    key.credit_id,
                    *map(by_key[key].properties.get, _OF_EDGES[relation]),
                )
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
        for piece in chunks(sorted(found), ROWS):
            cypher = (
                f"UNWIND $rows AS r MATCH (n:{label.value} {{tmdb_id: r}}) WHERE {stub}NOT (n)--() "
                "DELETE n RETURN count(*) AS done"
            )
            deleted += counted(tx, cypher, rows=list(piece))
    return deleted


def _grouped(keys: Iterable[EdgeKey]) -> Iterator[tuple[tuple[Relation, NodeLabel, NodeLabel], list[EdgeKey]]]:
    """Yield keys by relation and labels, sorted by their ends, so that all writers lock them in the same order."""
    groups: dict[tuple[Relation, NodeLabel, NodeLabel], list[EdgeKey]] = defaultdict(list)
    for key in sorted(keys, key=lambda key: (key.end.tmdb_id, key.start.tmdb_id, key.credit_id)):
        groups[key.relation, key.start.label, key.end.label].append(key)
    yield from sorted(groups.items())


def _run(tx: ManagedTransaction, cypher: str, rows: Sequence[Sequence[Property]]) -> None:
    """Run a statement for each row, whose values are ``r[0]`` and so on: names beside them take as long as they do."""
    for piece in chunks(rows, ROWS):
        tx.run(trusted(f"UNWIND $rows AS r {cypher}"), rows=list(piece)).consume()


def counted(tx: ManagedTransaction, cypher: str, **parameters: Any) -> int:
    record = tx.run(trusted(cypher), **parameters).single()
    return int(record["done"]) if record else 0


def held(properties: Mapping[str, Property]) -> dict[str, Property]:
    return {name: value for name, value in properties.items() if value is not None}


def trusted(cypher: str) -> LiteralString:
    """Mark a statement as trusted: it is built from labels and relations of `types`, never from outside text."""
    return cypher  # type: ignore[return-value,unused-ignore]
