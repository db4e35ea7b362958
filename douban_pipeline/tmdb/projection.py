"""From TMDB's answers to columns, nodes and edges. Pure.

The graph holds what relations are asked about: titles, names, days, synopses, credits, genres. Votes, popularity,
pictures, billing order and counts of episodes change every day and stay in the store: they are no change of the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from douban_pipeline.tmdb.cleaning import count_of, day_of, id_of, items_of, number_of, text_of
from douban_pipeline.tmdb.types import (
    LABELS,
    Edge,
    EdgeKey,
    EntityKey,
    EntityType,
    Label,
    Node,
    NodeKey,
    PayloadError,
    Projection,
    Property,
    Relation,
)

Value = str | int | float | date | None
Raw = Mapping[str, Any]

_CHINESE = ("CN", "SG", "TW", "HK")
"""Regions whose Chinese titles stand in, in this order, where an answer has none of its own."""
NAME_OF = {EntityType.MOVIE: "title", EntityType.PERSON: "name", EntityType.TV: "name"}
"""The property and column that an entity is called by."""


def key_of(entity: EntityType, raw: Raw) -> EntityKey:
    """Return which entity an answer is about.

    Raises:
        PayloadError: It has no id that TMDB could have given.
    """
    tmdb_id = id_of(raw.get("id"))
    if tmdb_id is None:
        raise PayloadError(f"no id of a {entity.value}: {str(raw.get('id'))[:40]!r}")
    return EntityKey(entity, tmdb_id)


def is_full(entity: EntityType, raw: Raw) -> bool:
    """Return whether an answer is enough to build the entity's part of the graph from: whether its credits are in it.

    A series may bring ``aggregate_credits`` in the place of ``credits``, and a person ``movie_credits`` with
    ``tv_credits`` in the place of ``combined_credits``: they hold the same and more.
    """
    if entity is EntityType.PERSON:
        return _has_credits(raw, "combined_credits") or (
            _has_credits(raw, "movie_credits") and _has_credits(raw, "tv_credits")
        )
    return _has_credits(raw, "credits") or (entity is EntityType.TV and _has_credits(raw, "aggregate_credits"))


def _has_credits(raw: Raw, name: str) -> bool:
    found = raw.get(name)
    return isinstance(found, Mapping) and isinstance(found.get("cast"), list) and isinstance(found.get("crew"), list)


def columns_of(entity: EntityType, raw: Raw) -> dict[str, Value]:
    """Return the columns that are derived from an answer, or from an item of a list."""
    popularity = number_of(raw.get("popularity"))
    if entity is EntityType.PERSON:
        return {
            "name": _name(entity, raw),
            "original_name": text_of(raw.get("original_name")),
            "known_for_department": text_of(raw.get("known_for_department")),
            "popularity": popularity,
        }
    name, original, day = _title_names(entity)
    return {
        name: _name(entity, raw),
        original: text_of(raw.get(original)),
        "original_language": text_of(raw.get("original_language")),
        day: day_of(raw.get(day)),
        "popularity": popularity,
        "vote_average": number_of(raw.get("vote_average")),
        "vote_count": count_of(raw.get("vote_count")),
    }


def stub_properties(entity: EntityType, columns: Mapping[str, Value]) -> dict[str, Property]:
    """Return what the graph says of a stub, from its columns."""
    if entity is EntityType.PERSON:
        return {"name": _plain(columns["name"]), "known_for_department": _plain(columns["known_for_department"])}
    name, _, day = _title_names(entity)
    return {name: _plain(columns[name]), day: _plain(columns[day])}


def full_properties(entity: EntityType, raw: Raw, *, votes: bool = False) -> dict[str, Property]:
    """Return what the graph says of a full entity; ``votes`` adds the average vote, for graphs that are not kept."""
    columns = columns_of(entity, raw)
    if entity is EntityType.PERSON:
        return stub_properties(entity, columns)
    name, original, day = _title_names(entity)
    properties = {each: _plain(columns[each]) for each in (name, original, "original_language", day)}
    properties["overview"] = text_of(raw.get("overview"))
    if votes:
        properties["vote_average"] = _plain(columns["vote_average"])
    return properties


def project(entity: EntityType, raw: Raw, *, votes: bool = False) -> Projection:
    """Return the nodes and edges of a full answer; keys that are not known, and credits without ids, are ignored.

    Raises:
        PayloadError: It has no id.
    """
    key = key_of(entity, raw)
    own = Node(NodeKey(LABELS[entity], key.tmdb_id), full_properties(entity, raw, votes=votes))
    others: dict[NodeKey, Node] = {}
    edges: dict[tuple[Relation, str | NodeKey], Edge] = {}
    for other, edge in _genres(own.key, raw) if entity is not EntityType.PERSON else ():
        others.setdefault(other.key, other)
        edges.setdefault((edge.key.relation, edge.key.end), edge)
    credits = _credits_of_person(own.key, raw) if entity is EntityType.PERSON else _credits_of_title(own.key, raw)
    for other, edge in credits:
        if edges.setdefault((edge.key.relation, edge.key.credit_id), edge) is edge:
            others.setdefault(other.key, other)
    return Projection(own, tuple(others.values()), tuple(edges.values()))


def _genres(title: NodeKey, raw: Raw) -> Iterator[tuple[Node, Edge]]:
    for item in items_of(raw, "genres"):
        if (tmdb_id := id_of(item.get("id"))) is not None:
            genre = Node(NodeKey(Label.GENRE, tmdb_id), {"name": text_of(item.get("name"))})
            yield genre, Edge(EdgeKey(Relation.BELONGS_TO_GENRE, title, genre.key))


def _credits_of_title(title: NodeKey, raw: Raw) -> Iterator[tuple[Node, Edge]]:
    for credit in _credits_in(raw, ("aggregate_credits", "credits")):
        if (person := _other_end(EntityType.PERSON, credit)) and (edge := _edge(person.key, title, credit)):
            yield person, edge
    for item in items_of(raw, "created_by"):
        credit = {**item, "job": "Creator", "department": "Creator"}
        if (person := _other_end(EntityType.PERSON, credit)) and (edge := _edge(person.key, title, credit)):
            yield person, edge


def _credits_of_person(person: NodeKey, raw: Raw) -> Iterator[tuple[Node, Edge]]:
    found: list[tuple[EntityType | None, dict[str, Any]]] = []
    found += [(None, credit) for credit in _credits_in(raw, ("combined_credits",))]
    found += [(EntityType.MOVIE, credit) for credit in _credits_in(raw, ("movie_credits",))]
    found += [(EntityType.TV, credit) for credit in _credits_in(raw, ("tv_credits",))]
    for known, credit in found:
        entity = known or {"movie": EntityType.MOVIE, "tv": EntityType.TV}.get(str(credit.get("media_type")))
        if entity and (title := _other_end(entity, credit)) and (edge := _edge(person, title.key, credit)):
            yield title, edge


def _credits_in(raw: Raw, names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield each single credit: of cast without a job, of crew with one; roles and jobs of a series apart."""
    for name in names:
        for item in items_of(raw.get(name), "cast"):
            for role in items_of(item, "roles") or [item]:
                yield {**item, **_only(role, "credit_id", "character"), "job": None, "department": None}
        for item in items_of(raw.get(name), "crew"):
            for job in items_of(item, "jobs") or [item]:
                credit = {**item, **_only(job, "credit_id", "job"), "character": None}
                yield {**credit, "job": text_of(credit.get("job")) or ""}


def _only(item: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: item[name] for name in names if name in item}


def _other_end(entity: EntityType, credit: Raw) -> Node | None:
    tmdb_id = id_of(credit.get("id"))
    if tmdb_id is None:
        return None
    return Node(NodeKey(LABELS[entity], tmdb_id), stub_properties(entity, columns_of(entity, credit)))


def _edge(person: NodeKey, title: NodeKey, credit: Raw) -> Edge | None:
    credit_id = text_of(credit.get("credit_id"))
    if credit_id is None:
        return None
    if credit.get("job") is None:
        key = EdgeKey(Relation.ACTED_IN, person, title, credit_id)
        return Edge(key, {"character": text_of(credit.get("character"))})
    if credit["job"] == "Director":
        return Edge(EdgeKey(Relation.DIRECTED, person, title, credit_id))
    key = EdgeKey(Relation.CREW_MEMBER, person, title, credit_id)
    return Edge(key, {"job": credit["job"] or None, "department": text_of(credit.get("department"))})


def _name(entity: EntityType, raw: Raw) -> str | None:
    """Return what an entity is called: as the answer says, in other Chinese, or as in the original."""
    name = NAME_OF[entity]
    return text_of(raw.get(name)) or _chinese(name, raw) or text_of(raw.get(f"original_{name}"))


def _chinese(name: str, raw: Raw) -> str | None:
    found = {
        str(item.get("iso_3166_1")): text_of(item["data"].get(name))
        for item in items_of(raw.get("translations"), "translations")
        if item.get("iso_639_1") == "zh" and isinstance(item.get("data"), Mapping)
    }
    return next((found[region] for region in _CHINESE if found.get(region)), None)


def _title_names(entity: EntityType) -> tuple[str, str, str]:
    """Return how a title's name, its original name and its day are called."""
    if entity is EntityType.MOVIE:
        return "title", "original_title", "release_date"
    return "name", "original_name", "first_air_date"


def _plain(value: Value) -> Property:
    return value.isoformat() if isinstance(value, date) else value
