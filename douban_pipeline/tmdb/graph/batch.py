"""The required content of the graph for some entities, and which of several claims to one credit counts. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from douban_pipeline.tmdb.types import (
    BIGGEST_ID,
    CREDITS,
    CreditClaim,
    Edge,
    EdgeKey,
    NodeKey,
    Property,
    Relation,
    claims_of,
)


@dataclass(frozen=True, slots=True)
class GraphBatch:
    """The required content of the graph for some entities.

    Attributes:
        owners: The entities, with all edges they define, the oldest answer first. A title defines all its edges. A
            person defines those to titles that are not full; other titles have more complete data themselves.
        full: Full nodes, with their properties.
        stubs: Other nodes: ends of edges, and entities that are gone. They are deleted when their last edge is.
        known: Ends of edges that are full; they are written in batches of their own.
    """

    owners: Mapping[NodeKey, Sequence[Edge]] = field(default_factory=dict)
    full: Mapping[NodeKey, Mapping[str, Property]] = field(default_factory=dict)
    stubs: Mapping[NodeKey, Mapping[str, Property]] = field(default_factory=dict)
    known: frozenset[NodeKey] = frozenset()

    def counting(self) -> Iterator[Edge]:
        """Yield the edges that the graph has: a credit is one edge, and of contradicting answers the newest counts."""
        for claims in self._by_credit().values():
            yield claims[-1]

    def contested(self) -> set[CreditClaim]:
        """Return the claims to credits that several answers of the batch have at different ends."""
        return {
            claim
            for edges in self._by_credit().values()
            if len({edge.key for edge in edges}) > 1
            for edge in edges
            for claim in claims_of(edge.key)
        }

    def _by_credit(self) -> dict[EdgeKey | tuple[Relation, str], list[Edge]]:
        found: dict[EdgeKey | tuple[Relation, str], list[Edge]] = defaultdict(list)
        for edges in self.owners.values():
            for edge in edges:
                relation, credit_id = edge.key.relation, edge.key.credit_id
                found[(relation, credit_id) if relation in CREDITS else edge.key].append(edge)
        return found


@dataclass(frozen=True, slots=True)
class Written:
    """Changes made by a batch: edges merged, edges deleted, nodes deleted because they had no edges left."""

    merged: int = 0
    deleted: int = 0
    nodes_deleted: int = 0

    def __add__(self, other: Written) -> Written:
        """Return the sum of two batches."""
        return Written(
            self.merged + other.merged, self.deleted + other.deleted, self.nodes_deleted + other.nodes_deleted
        )


class ContestedCreditError(Exception):
    """The graph has credits of a batch at other ends, by answers that are not in the batch; nothing was written.

    Attributes:
        claims: The ends of those edges, in the graph and in the batch, each with the credit.
    """

    def __init__(self, claims: Iterable[CreditClaim]) -> None:
        self.claims = frozenset(claims)
        super().__init__(f"{len({claim.credit_id for claim in self.claims})} credits are at other ends in the graph")


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
