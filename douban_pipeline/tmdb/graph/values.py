"""Validates values for the graph database. Pure.

Databases differ in what they refuse: ArcadeDB merges a node with a null key and stores lists of mixed types, Neo4j does
not. So everything is validated before it is sent.
"""

from __future__ import annotations

from collections.abc import Mapping

from douban_pipeline.tmdb.types import BIGGEST_ID, Edge, NodeKey, Property, Relation

_BIGGEST = 2**63


class GraphValueError(ValueError):
    """A key or a property cannot be sent; the message names it."""


def check_node(key: NodeKey, properties: Mapping[str, Property]) -> None:
    """Raise `GraphValueError` if a node has no usable key, or an invalid property."""
    if isinstance(key.tmdb_id, bool) or not isinstance(key.tmdb_id, int) or not 0 < key.tmdb_id <= BIGGEST_ID:
        raise GraphValueError(f"a {key.label.value} with the id {key.tmdb_id!r}")
    for name, value in properties.items():
        _check(f"{key.label.value} {key.tmdb_id}", name, value)


def check_edge(edge: Edge) -> None:
    """Raise `GraphValueError` if an edge has no usable key, or an invalid property."""
    for end in (edge.key.start, edge.key.end):
        check_node(end, {})
    credit_id = edge.key.credit_id
    if edge.key.relation is not Relation.BELONGS_TO_GENRE and (not isinstance(credit_id, str) or not credit_id):
        raise GraphValueError(f"a {edge.key.relation.value} with the credit {credit_id!r}")
    for name, value in edge.properties.items():
        _check(f"{edge.key.relation.value} {credit_id}", name, value)


def _check(of: str, name: str, value: object) -> None:
    if not isinstance(name, str) or not name.isidentifier():
        raise GraphValueError(f"a property {name!r} of {of}")
    if value is None or isinstance(value, bool | float):
        return
    if isinstance(value, int) and -_BIGGEST <= value < _BIGGEST:
        return
    if isinstance(value, str) and "\x00" not in value:
        return
    raise GraphValueError(f"{name} of {of} is {str(value)[:40]!r}, of type {type(value).__name__}")
