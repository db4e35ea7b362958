"""Types of the TMDB system: entities, and the nodes and edges built from them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

Property = str | int | float | bool | None
"""Allowed values of a property of a node or an edge."""
NO_PROPERTIES: Mapping[str, Property] = MappingProxyType({})
"""Properties of what has none."""


class _KeyName(StrEnum):
    """Base of the enums used in keys: hashed as plain strings, which is faster than hashing enum members."""

    __hash__ = str.__hash__


class EntityType(_KeyName):
    """The entity types with a table, named as in TMDB's paths."""

    MOVIE = "movie"
    PERSON = "person"
    TV = "tv"


class NodeLabel(_KeyName):
    """Labels of nodes; ``tmdb_id`` is unique within one."""

    MOVIE = "Movie"
    PERSON = "Person"
    TV = "TVShow"
    GENRE = "Genre"


class Relation(_KeyName):
    """Types of edges. All but the last lead from a person to a title and are keyed by TMDB's ``credit_id``."""

    ACTED_IN = "ACTED_IN"
    DIRECTED = "DIRECTED"
    CREW_MEMBER = "CREW_MEMBER"
    BELONGS_TO_GENRE = "BELONGS_TO_GENRE"


CREDITS = (Relation.ACTED_IN, Relation.DIRECTED, Relation.CREW_MEMBER)
"""Relations between people and titles."""

LABELS = {EntityType.MOVIE: NodeLabel.MOVIE, EntityType.PERSON: NodeLabel.PERSON, EntityType.TV: NodeLabel.TV}
TYPES = {label: entity for entity, label in LABELS.items()}

BIGGEST_ID = 2**31 - 1
"""TMDB's ids are stored as ``int``."""


class PayloadError(ValueError):
    """A body is not an answer about an entity; the message says why."""


class EntityKey(NamedTuple):
    """Key of an entity: its type and TMDB's id within the type."""

    type: EntityType
    tmdb_id: int

    def __str__(self) -> str:
        """Return it in the form of TMDB's paths, e.g. ``movie/603``."""
        return f"{self.type.value}/{self.tmdb_id}"


class NodeKey(NamedTuple):
    """Key of a node."""

    label: NodeLabel
    tmdb_id: int


class Node(NamedTuple):
    """A node with its properties in the graph; None means that it has no such property."""

    key: NodeKey
    properties: Mapping[str, Property]


class EdgeKey(NamedTuple):
    """Key of an edge: relation, both ends and the credit, which is empty for genres."""

    relation: Relation
    start: NodeKey
    end: NodeKey
    credit_id: str = ""


class Edge(NamedTuple):
    """An edge with its properties besides ``credit_id``."""

    key: EdgeKey
    properties: Mapping[str, Property] = NO_PROPERTIES


class CreditClaim(NamedTuple):
    """An entity at an end of an edge that another answer contests: another edge with the same credit."""

    credit_id: str
    entity: EntityKey


def claims_of(key: EdgeKey) -> tuple[CreditClaim, CreditClaim]:
    """Return the claims at both ends of a credit's edge: the answer about either may define it."""
    start, end = (CreditClaim(key.credit_id, EntityKey(TYPES[end.label], end.tmdb_id)) for end in (key.start, key.end))
    return start, end


@dataclass(frozen=True, slots=True)
class Projection:
    """A full entity's part of the graph.

    Attributes:
        others: The nodes at the other ends of its edges, with the properties from the credits: enough for a stub.
    """

    node: Node
    others: tuple[Node, ...]
    edges: tuple[Edge, ...]
