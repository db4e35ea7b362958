"""The required content of the graph for some entities, and which of several claims to one credit counts. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from douban_pipeline.tmdb.types import CREDITS, CreditClaim, Edge, EdgeKey, NodeKey, Property, Relation, claims_of


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
