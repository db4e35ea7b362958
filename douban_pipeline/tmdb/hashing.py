"""Two hashes of an answer: of all of it, and of the part that reaches the graph. Pure.

Of 38 answers that were recorded again later, every one differed somewhere (votes, popularity, new keys), but few
differed in nodes or edges: a changed first hash means that the stored answer is outdated, only a changed second one
that the graph is. Both start with the version of their algorithm: after a change of it everything counts as changed
once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from douban_pipeline.tmdb.cleaning import clean
from douban_pipeline.tmdb.types import Node, PayloadError, Projection

VERSION = "v1"


def canonical(raw: Mapping[str, Any]) -> str:
    """Return an answer as the canonical JSON text that is hashed and stored: sorted keys, no blanks, no NUL.

    Raises:
        PayloadError: It is not JSON.
    """
    try:
        text = _dump(raw)
        if "\\u0000" not in text:
            text.encode()  # raises for half a surrogate pair
            return text
    except UnicodeEncodeError:
        pass
    except (TypeError, ValueError, RecursionError) as error:
        raise PayloadError(f"no JSON: {error}") from None
    return _dump(clean(raw))


def text_hash(text: str) -> str:
    """Return the hash of a canonical text."""
    return f"{VERSION}:{hashlib.sha256(text.encode()).hexdigest()}"


def raw_hash(raw: Mapping[str, Any]) -> str:
    """Return the hash of a whole answer.

    Raises:
        PayloadError: It is not JSON.
    """
    return text_hash(canonical(raw))


def graph_hash(projection: Projection) -> str:
    """Return the hash of nodes and edges, independent of their order."""
    edges = sorted(
        (*start, *end, relation, credit_id, _held(properties))
        for (relation, start, end, credit_id), properties in projection.edges
    )
    return text_hash(_dump([_node(projection.node), sorted(map(_node, projection.others)), edges]))


def _node(node: Node) -> list[Any]:
    return [*node.key, _held(node.properties)]


def _held(properties: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [each for each in sorted(properties.items()) if each[1] is not None]


_dump = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
