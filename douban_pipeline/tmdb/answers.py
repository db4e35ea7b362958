"""What an answer of TMDB means for the store, derived from its request. Pure.

A request is a path with a query, an answer a status with a body. Paths may begin with the version, a host or neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from douban_pipeline.tmdb.types import EntityKey, EntityType, PayloadError
from douban_pipeline.tmdb.values import id_of, items_of

API_LANGUAGE = "en-US"
"""Language of the answer if the request names none."""
NOT_FOUND = 34
"""TMDB's status code for something that does not exist (any more)."""

_TYPES = {entity.value: entity for entity in EntityType}
_IMDB = re.compile(r"(tt|nm)\d+")
_LISTS = {
    EntityType.MOVIE: ("popular", "top_rated", "upcoming", "now_playing"),
    EntityType.TV: ("popular", "top_rated", "airing_today", "on_the_air"),
    EntityType.PERSON: ("popular",),
}
_PARTS = ("credits", "aggregate_credits", "combined_credits", "movie_credits", "tv_credits")
_RESULTS = {
    "results": None,
    "movie_results": EntityType.MOVIE,
    "tv_results": EntityType.TV,
    "person_results": EntityType.PERSON,
}


class Meaning(StrEnum):
    """How an answer is used."""

    ENTITY = "entity"
    """About one entity: stored; full if it contains the credits."""
    GONE = "missing"
    """The entity does not exist (any more)."""
    MENTIONS = "mentions"
    """Names entities; unknown ones become stubs."""
    TRANSLATIONS = "translations"
    """An entity in other languages."""
    GENRES = "genres"
    """Names of genres."""
    UNUSED = "unused"
    """Known, but not stored: pictures, keywords, configuration, lists of changed ids."""
    UNKNOWN = "unknown"
    """The request is unknown to this release."""
    FAILED = "failed"
    """The request was not answered; nothing follows from it."""


@dataclass(frozen=True, slots=True)
class TmdbRequest:
    """A request: the path without version, and its query."""

    path: str
    query: Mapping[str, str]

    @property
    def language(self) -> str:
        """The language of the answer."""
        return language_of(self.query.get("language")) or API_LANGUAGE


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity named in an answer, with the item that names it."""

    type: EntityType
    item: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AnswerReading:
    """Meaning of one answer.

    Attributes:
        meaning: How it is used.
        entity: Type of the entity, for the first four meanings.
        tmdb_id: Its id; None if the path uses another kind of id or the answer names several.
        mentions: Entities named in it.
        why: Reason for people if nothing is stored.
    """

    meaning: Meaning
    entity: EntityType | None = None
    tmdb_id: int | None = None
    mentions: Sequence[Mention] = ()
    why: str = ""

    @property
    def key(self) -> EntityKey | None:
        """The entity named in the path."""
        return EntityKey(self.entity, self.tmdb_id) if self.entity and self.tmdb_id else None


def language_of(value: object) -> str | None:
    """Return a language as ``xx`` or ``xx-YY``; None for anything else."""
    match = re.fullmatch(r"\s*([A-Za-z]{2})(?:[-_]([A-Za-z]{2}))?\s*", value) if isinstance(value, str) else None
    if match is None:
        return None
    return match[1].lower() + (f"-{match[2].upper()}" if match[2] else "")


def request_of(path: str, query: object = None) -> TmdbRequest:
    """Parse a recorded request: with or without host and version, its query separate or in the path."""
    parts = urlsplit(path)
    pairs: dict[str, str] = dict(parse_qsl(parts.query))
    if isinstance(query, str):
        pairs |= dict(parse_qsl(query.lstrip("?")))
    elif isinstance(query, Mapping):
        for name, value in query.items():
            pairs[str(name)] = str(value[0] if isinstance(value, list) and value else value)
    plain = re.sub(r"^/?\d+(?=/)", "", parts.path if parts.netloc or path.startswith("/") else f"/{parts.path}")
    return TmdbRequest("/" + plain.strip("/"), pairs)


def read_answer(request: TmdbRequest, status: int, body: object) -> AnswerReading:
    """Return the meaning of an answer."""
    words = request.path.strip("/").split("/")
    entity = _TYPES.get(words[0])
    tmdb_id = id_of(int(words[1])) if len(words) > 1 and re.fullmatch(r"\d{1,10}", words[1]) else None
    names_one = entity is not None and len(words) > 1 and (tmdb_id is not None or bool(_IMDB.fullmatch(words[1])))
    if not 200 <= status < 300 or _is_error(body):
        return _failure(status, body, entity if names_one and len(words) == 2 else None, tmdb_id)
    if entity is not None and len(words) == 2 and (names_one or words[1] == "latest"):
        return _about_one(entity, tmdb_id, body)
    if names_one and len(words) == 3:
        assert entity is not None
        return _part(entity, tmdb_id, words[2], body)
    if words[0] == "genre" and words[2:] == ["list"]:
        return AnswerReading(Meaning.GENRES)
    listed = words[1] if words[0] in ("search", "discover", "trending") and len(words) > 1 else ""
    if entity is not None and words[1:] and words[1] in _LISTS[entity]:
        listed = entity.value
    if listed in ("collection", "keyword", "company"):
        return AnswerReading(Meaning.UNUSED, why=f"no table of {listed}s")
    if listed or words[0] == "find":
        kind = _TYPES.get(listed)
        return AnswerReading(Meaning.MENTIONS, kind, None, tuple(_mentions(body, kind)))
    if words[-1] == "changes":
        return AnswerReading(Meaning.UNUSED, why="a list of changed entities without the changes")
    if words[0] == "configuration" or words[:2] in (["tv", "episode"], ["tv", "episode_group"]) or "season" in words:
        return AnswerReading(Meaning.UNUSED, why=f"nothing of {'/'.join(words[:2])} is stored")
    return AnswerReading(Meaning.UNKNOWN, why=f"unknown request: {request.path[:80]}")


def _is_error(body: object) -> bool:
    return isinstance(body, Mapping) and body.get("success") is False


def _failure(status: int, body: object, entity: EntityType | None, tmdb_id: int | None) -> AnswerReading:
    code = body.get("status_code") if isinstance(body, Mapping) else None
    if code == NOT_FOUND and status in (200, 404):
        if entity is not None:
            return AnswerReading(Meaning.GONE, entity, tmdb_id, why="TMDB does not have it")
        return AnswerReading(Meaning.FAILED, why="TMDB does not have what was requested (34)")
    said = {7: "the key is not valid", 25: "too many requests", 27: "too many things to append"}.get(code or 0, "")
    return AnswerReading(Meaning.FAILED, why=f"an error, HTTP {status}" + (f": {said} ({code})" if said else ""))


def _about_one(entity: EntityType, tmdb_id: int | None, body: object) -> AnswerReading:
    found = id_of(body.get("id")) if isinstance(body, Mapping) else None
    if found is None or (tmdb_id is not None and found != tmdb_id):
        return AnswerReading(Meaning.FAILED, why=f"not about the {entity.value} that was requested")
    return AnswerReading(Meaning.ENTITY, entity, found)


def _part(entity: EntityType, tmdb_id: int | None, part: str, body: object) -> AnswerReading:
    if part in _PARTS:
        kinds = {"movie_credits": EntityType.MOVIE, "tv_credits": EntityType.TV}
        kind = None if entity is EntityType.PERSON else EntityType.PERSON
        people = [Mention(each, item) for each, item in _credited(body, kinds.get(part, kind))]
        return AnswerReading(Meaning.MENTIONS, entity, tmdb_id, tuple(people))
    if part == "translations":
        found = id_of(body.get("id")) if isinstance(body, Mapping) else None
        if found is None:
            return AnswerReading(Meaning.FAILED, why="translations without an id")
        return AnswerReading(Meaning.TRANSLATIONS, entity, found)
    if part in ("similar", "recommendations"):
        return AnswerReading(Meaning.MENTIONS, entity, tmdb_id, tuple(_mentions(body, entity)))
    if part == "tagged_images":
        media = [item["media"] for item in items_of(body, "results") if isinstance(item.get("media"), dict)]
        return AnswerReading(Meaning.MENTIONS, entity, tmdb_id, tuple(_each(media, None)))
    return AnswerReading(Meaning.UNUSED, entity, tmdb_id, why=f"nothing of {entity.value}/…/{part} is stored")


def _credited(body: object, kind: EntityType | None) -> Iterator[tuple[EntityType, Mapping[str, Any]]]:
    for name in ("cast", "crew"):
        for mention in _each(items_of(body, name), kind):
            yield mention.type, mention.item


def _mentions(body: object, kind: EntityType | None) -> Iterator[Mention]:
    for name, type_ in _RESULTS.items():
        yield from _each(items_of(body, name), type_ or kind)


def _each(items: Sequence[Mapping[str, Any]], kind: EntityType | None) -> Iterator[Mention]:
    for item in items:
        media = item.get("media_type")
        type_ = kind or (_TYPES.get(media) if isinstance(media, str) else None)
        if type_ is None or id_of(item.get("id")) is None:
            continue
        yield Mention(type_, item)
        if type_ is EntityType.PERSON:
            yield from _each(items_of(item, "known_for"), None)


def without_appended(request: TmdbRequest, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer without the parts appended by its request, such as pictures, which other callers did not
    request."""
    appended = {name.strip() for name in request.query.get("append_to_response", "").split(",")}
    return {name: value for name, value in body.items() if name not in appended}


def payload_of(payload: Mapping[str, Any]) -> tuple[EntityType, Mapping[str, Any], str | None]:
    """Return type, answer and language of a payload ``{"type": …, "data": …}`` from the enrichment service.

    Raises:
        PayloadError: It is not such a payload.
    """
    kind, data = payload.get("type") or payload.get("media_type"), payload.get("data")
    entity = _TYPES.get(kind) if isinstance(kind, str) else None
    if entity is None or not isinstance(data, Mapping):
        raise PayloadError(f"a payload of type {str(kind)[:40]!r} with {type(data).__name__} as its data")
    return entity, data, language_of(payload.get("language"))
