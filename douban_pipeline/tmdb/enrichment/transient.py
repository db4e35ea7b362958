"""A transient graph: the nodes and edges of a few answers, for one question, not stored. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from douban_pipeline.tmdb.answers import payload_of
from douban_pipeline.tmdb.projection import project
from douban_pipeline.tmdb.types import Edge, EdgeKey, Node, NodeKey, Relation


@dataclass(frozen=True, slots=True)
class TransientGraph:
    """Nodes and edges, each key once."""

    nodes: Mapping[NodeKey, Node]
    edges: Mapping[EdgeKey, Edge]

    def name(self, key: NodeKey) -> str:
        """Return a node's name."""
        properties = self.nodes[key].properties
        return str(properties.get("title") or properties.get("name") or key.tmdb_id)

    def people(self, relation: Relation, title: NodeKey | None = None, job: str = "") -> list[str]:
        """Return the names of the people who directed, acted in or worked on a title, in TMDB's order, each once."""
        found = (
            self.name(edge.key.start)
            for edge in self.edges.values()
            if edge.key.relation is relation
            and (title is None or edge.key.end == title)
            and (not job or str(edge.properties.get("job", "")) == job)
        )
        return list(dict.fromkeys(found))

    def titles(self, relation: Relation, person: NodeKey) -> list[NodeKey]:
        """Return the titles that a person directed, acted in or worked on, each once."""
        found = (edge.key for edge in self.edges.values() if edge.key.relation is relation and edge.key.start == person)
        return list(dict.fromkeys(key.end for key in found))

    def to_json(self) -> dict[str, Any]:
        """Return it in the form used by the API: nodes by ``LABEL:ID``, edges between them."""
        return {
            "nodes": [
                {"id": _id(key), "label": key.label.value, "tmdb_id": key.tmdb_id, **_held(node.properties)}
                for key, node in self.nodes.items()
            ],
            "edges": [
                {
                    "type": key.relation.value,
                    "start": _id(key.start),
                    "end": _id(key.end),
                    **({"credit_id": key.credit_id} if key.credit_id else {}),
                    **_held(edge.properties),
                }
                for key, edge in self.edges.items()
            ],
        }


class TransientGraphBuilder:
    """Builds transient graphs, by the rules of the stored graph."""

    def build_from_tmdb_payloads(self, payloads: Iterable[Mapping[str, Any]]) -> TransientGraph:
        """Return the graph of payloads ``{"type": "movie", "data": …}``; an entity's own full answer takes precedence.

        Raises:
            PayloadError: One of them is not such a payload.
        """
        nodes: dict[NodeKey, Node] = {}
        edges: dict[EdgeKey, Edge] = {}
        own: dict[NodeKey, Node] = {}
        for payload in payloads:
            entity, data, _ = payload_of(payload)
            projection = project(entity, data, votes=True)
            own[projection.node.key] = projection.node
            nodes.setdefault(projection.node.key, projection.node)
            for other in projection.others:
                nodes.setdefault(other.key, other)
            for edge in projection.edges:
                edges.setdefault(edge.key, edge)
        return TransientGraph({**nodes, **own}, edges)


def _id(key: NodeKey) -> str:
    return f"{key.label.value}:{key.tmdb_id}"


def _held(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if value is not None}


EMPTY = TransientGraph({}, {})
