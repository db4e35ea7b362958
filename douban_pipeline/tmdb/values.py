"""Converts TMDB's values into values that PostgreSQL and the graph can store, and hashes answers. Pure."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

import msgspec

from douban_pipeline.tmdb.types import BIGGEST_ID, PayloadError, Projection

_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DEEPEST = 200


def clean(value: Any, depth: int = 0) -> Any:
    """Return a JSON value accepted by ``jsonb``: without NUL, and with U+FFFD in place of half a surrogate pair.

    Raises:
        PayloadError: It contains a value that is not JSON (NaN, infinity, other types), or is nested too deeply.
    """
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value.replace("\x00", ""))
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise PayloadError(f"{value} is no JSON")
        return value
    if depth > _DEEPEST:
        raise PayloadError(f"nested more than {_DEEPEST} deep")
    if isinstance(value, Mapping):
        return {clean(str(name)): clean(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item, depth + 1) for item in value]
    raise PayloadError(f"{type(value).__name__} is no JSON")


def text_of(value: object) -> str | None:
    """Return a text without NUL and blanks around it; None if nothing is left."""
    if not isinstance(value, str):
        return None
    if not value.isprintable() and ("\x00" in value or _SURROGATE.search(value)):
        value = str(clean(value))
    return value.strip() or None


def day_of(value: object) -> date | None:
    """Return the date ``YYYY-MM-DD``; None for anything else, such as TMDB's empty dates."""
    match = _DAY.fullmatch(value.strip()) if isinstance(value, str) else None
    try:
        return date(*map(int, match.groups())) if match else None
    except ValueError:
        return None


def moment_of(value: object) -> datetime | None:
    """Return the time of an ISO text, UTC where it names no zone; None for anything else."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return found if found is None or found.tzinfo else found.replace(tzinfo=UTC)


def number_of(value: object) -> float | None:
    """Return a finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def count_of(value: object) -> int | None:
    """Return a whole number that fits an ``int`` column; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= BIGGEST_ID:
        return None
    return value


def id_of(value: object) -> int | None:
    """Return a TMDB id; None for a value that cannot be one."""
    return value if type(value) is int and 0 < value <= BIGGEST_ID else None


def items_of(value: object, name: str) -> list[dict[str, Any]]:
    """Return the objects in the list ``value[name]``; empty if there is no such list."""
    found = value.get(name) if isinstance(value, Mapping) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


_HASH_VERSION = "v1"
_GRAPH_VERSION = "v2"


def canonical(raw: Mapping[str, Any]) -> str:
    """Return an answer as the canonical JSON text that is hashed and stored: sorted keys, no blanks, no NUL.

    Raises:
        PayloadError: It is not JSON.
    """
    try:
        text = _encode(raw)
        # What is no JSON comes back as something else: a NaN as null, a number that is a key as a text.
        if b"\\u0000" not in text and _decode(text) == raw:
            return text.decode()
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return _encode(clean(raw)).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise PayloadError(f"no JSON: {error}") from None


def text_hash(text: str) -> str:
    """Return the hash of a canonical text."""
    return f"{_HASH_VERSION}:{hashlib.sha256(text.encode()).hexdigest()}"


def raw_hash(raw: Mapping[str, Any]) -> str:
    """Return the hash of a whole answer.

    Raises:
        PayloadError: It is not JSON.
    """
    return text_hash(canonical(raw))


def graph_hash(projection: Projection) -> str:
    """Return the hash of nodes and edges, independent of their order: the encoder sorts them by their keys."""
    others: dict[str, dict[str, Mapping[str, Any]]] = {}
    for (label, tmdb_id), properties in projection.others:
        others.setdefault(label, {})[str(tmdb_id)] = properties
    edges: dict[str, dict[str, tuple[Any, ...]]] = {}
    for (relation, start, end, credit_id), properties in projection.edges:
        edges.setdefault(relation, {})[credit_id or str(end[1])] = start[1], end, properties or None
    return f"{_GRAPH_VERSION}:{hashlib.sha256(_encode([projection.node, others, edges])).hexdigest()}"


_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode
