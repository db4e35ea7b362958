"""The log of users' questions: question, candidates and choice; and their deletion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline.tmdb.values import clean, id_of, number_of, text_of

_TYPES = {entity.value: entity for entity in EntityType}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """A logged question; see the columns of ``tmdb.enrichment_requests``."""

    user_id: str
    session_id: str
    query_text: str
    tmdb_endpoint: str
    extracted_entities: Sequence[str] | None
    disambiguation: Sequence[Mapping[str, Any]] | None
    payloads: Sequence[Mapping[str, Any]] | None = None
    """The answers that it brought, which are stored beside it."""
    request_id: str | None = None
    conversation_id: UUID | None = None
    user_message_id: UUID | None = None
    candidates_top3: Any | None = None
    multi_results_raw: Any | None = None
    discover_results_raw: Any | None = None
    role_hint: str | None = None
    tmdb_language: str | None = None
    duration_ms: float | None = None


@dataclass(frozen=True, slots=True)
class _Candidate:
    key: EntityKey
    selected: bool
    score: float | None


_REQUEST = """
    INSERT INTO tmdb.enrichment_requests (
        id, request_id, user_id, session_id, conversation_id, user_message_id, query_text, tmdb_endpoint, role_hint,
        extracted_entities, selected, selected_media_type, selected_tmdb_id, selected_score, candidates_top3,
        multi_results_raw, discover_results_raw, tmdb_language, duration_ms
    ) VALUES (
        %(id)s, %(request_id)s, %(user_id)s, %(session_id)s, %(conversation_id)s, %(user_message_id)s, %(query_text)s,
        %(tmdb_endpoint)s, %(role_hint)s, %(extracted_entities)s, %(selected)s, %(selected_media_type)s,
        %(selected_tmdb_id)s, %(selected_score)s, %(candidates_top3)s, %(multi_results_raw)s,
        %(discover_results_raw)s, %(tmdb_language)s, %(duration_ms)s
    )
"""
_ENTITIES = """
    INSERT INTO tmdb.enrichment_request_entities (enrichment_request_id, entity_type, tmdb_id, selected, score)
    SELECT * FROM unnest(%s::uuid[], %s::text[], %s::int[], %s::boolean[], %s::float8[])
"""


def logged_of(connection: Connection, ids: Iterable[UUID]) -> set[UUID]:
    """Return those ids under which a question is logged."""
    rows = connection.execute("SELECT id FROM tmdb.enrichment_requests WHERE id = ANY(%s)", ([*ids],))
    return {logged_id for (logged_id,) in rows}


def log_requests(connection: Connection, asked: Sequence[tuple[UUID, LoggedRequest, Sequence[EntityKey]]]) -> None:
    """Store questions under ids, with the entities found for each: those of its ``disambiguation`` and those given.

    ``disambiguation`` holds one object per requested entity: either the choice itself (``media_type``, ``tmdb_id``,
    ``score``), or the choice in ``selected`` and all others in ``candidates``.
    """
    if not asked:
        return
    with connection.cursor() as cursor:
        cursor.executemany(_REQUEST, [_columns(logged_id, request) for logged_id, request, _ in asked])
    entities = [
        (logged_id, each.key.type.value, each.key.tmdb_id, each.selected, each.score)
        for logged_id, request, keys in asked
        for each in _entities(request, keys)
    ]
    if entities:
        connection.execute(_ENTITIES, [list(column) for column in zip(*entities, strict=True)])


def _columns(logged_id: UUID, request: LoggedRequest) -> dict[str, Any]:
    chosen = [choice for item in request.disambiguation or () if (choice := _selected(item)) is not None]
    first = _candidate(chosen[0], selected=True) if chosen else None
    return {
        "id": logged_id,
        "request_id": clean(request.request_id),
        "user_id": clean(request.user_id),
        "session_id": clean(request.session_id),
        "conversation_id": request.conversation_id,
        "user_message_id": request.user_message_id,
        "query_text": clean(request.query_text),
        "tmdb_endpoint": request.tmdb_endpoint,
        "role_hint": clean(request.role_hint),
        "extracted_entities": _json(request.extracted_entities),
        "selected": _json(chosen[0] if len(chosen) == 1 else chosen or None),
        "selected_media_type": first.key.type.value if first else None,
        "selected_tmdb_id": first.key.tmdb_id if first else None,
        "selected_score": first.score if first else None,
        "candidates_top3": _json(request.candidates_top3),
        "multi_results_raw": _json(request.multi_results_raw),
        "discover_results_raw": _json(request.discover_results_raw),
        "tmdb_language": request.tmdb_language,
        "duration_ms": number_of(request.duration_ms),
    }


def _entities(request: LoggedRequest, payloads: Iterable[EntityKey]) -> Iterable[_Candidate]:
    found = {key: _Candidate(key, selected=False, score=None) for key in payloads}
    for item in request.disambiguation or ():
        for each in item.get("candidates") or ():
            if (candidate := _candidate(each, selected=False)) is not None:
                found[candidate.key] = candidate
    for item in request.disambiguation or ():
        if (choice := _selected(item)) is not None and (candidate := _candidate(choice, selected=True)) is not None:
            found[candidate.key] = candidate
    return found.values()


def _selected(item: Mapping[str, Any]) -> Mapping[str, Any] | None:
    choice = item.get("selected", item)
    return choice if isinstance(choice, Mapping) and _candidate(choice, selected=True) is not None else None


def _candidate(item: object, *, selected: bool) -> _Candidate | None:
    if not isinstance(item, Mapping):
        return None
    entity = _TYPES.get(text_of(item.get("media_type") or item.get("type")) or "")
    tmdb_id = id_of(item.get("tmdb_id") or item.get("id"))
    if entity is None or tmdb_id is None:
        return None
    return _Candidate(EntityKey(entity, tmdb_id), selected, number_of(item.get("score")))


def _json(value: Any) -> Jsonb | None:
    return None if value is None else Jsonb(clean(value))


def delete_of_user(connection: Connection, user_id: str) -> int:
    """Delete all questions of a user with their references; return how many there were."""
    return _delete(connection, "user_id = %(value)s", user_id)


def delete_one(connection: Connection, logged_id: UUID) -> int:
    """Delete one question with its references; return how many there were."""
    return _delete(connection, "id = %(value)s", logged_id)


def delete_of_conversation(connection: Connection, conversation_id: UUID) -> int:
    """Delete the questions of a conversation with their references; return how many there were."""
    return _delete(connection, "conversation_id = %(value)s", conversation_id)


def delete_before(connection: Connection, before: datetime, most: int = 5000) -> int:
    """Delete at most ``most`` requests from before a given time; return how many."""
    condition = "id IN (SELECT id FROM tmdb.enrichment_requests WHERE created_at < %(value)s LIMIT %(most)s)"
    return _delete(connection, condition, before, most=most)


def _delete(connection: Connection, condition: str, value: object, **more: object) -> int:
    """Delete by one of the conditions above."""
    rows = connection.execute(
        f"DELETE FROM tmdb.enrichment_requests WHERE {condition} RETURNING request_id",  # noqa: S608
        {"value": value, **more},
    ).fetchall()
    named = [request_id for (request_id,) in rows if request_id is not None]
    if named:
        connection.execute("UPDATE tmdb.neo4j_etl_outbox SET request_id = NULL WHERE request_id = ANY(%s)", (named,))
    return len(rows)


def count_of(connection: Connection, user_id: str | None, conversation_id: UUID | None) -> int:
    """Return the number of questions of a user, or of a conversation."""
    row = connection.execute(
        "SELECT count(*) FROM tmdb.enrichment_requests "
        "WHERE user_id = %(user)s::text OR conversation_id = %(conversation)s::uuid",
        {"user": user_id, "conversation": conversation_id},
    ).fetchone()
    assert row is not None
    return int(row[0])
