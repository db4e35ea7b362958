"""Maps TMDB's answers to columns, nodes and edges. Pure.

The graph holds what its queries need: titles, names, days, synopses, credits, genres. Votes, popularity, pictures,
billing order and episode counts change daily and stay in the store; their changes do not change the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from douban_pipeline.tmdb.types import (
    LABELS,
    NO_PROPERTIES,
    Edge,
    EdgeKey,
    EntityKey,
    EntityType,
    Node,
    NodeKey,
    NodeLabel,
    PayloadError,
    Projection,
    Property,
    Relation,
)
from douban_pipeline.tmdb.values import count_of, day_of, id_of, items_of, number_of, text_of

Value = str | int | float | date | None
Raw = Mapping[str, Any]

_TITLES = {"movie": EntityType.MOVIE, "tv": EntityType.TV}
_PERSONS_CREDITS = {"combined_credits": None, "movie_credits": EntityType.MOVIE, "tv_credits": EntityType.TV}
"""Where a person's credits are, and of which type, if the credits do not state it."""
# An answer has hundreds of credits, and each look-up of an enum's member or a named tuple's constructor takes its time.
_A_PERSON, _PERSON = EntityType.PERSON, NodeLabel.PERSON
_ACTED_IN, _DIRECTED, _CREW_MEMBER = Relation.ACTED_IN, Relation.DIRECTED, Relation.CREW_MEMBER
_tuple = tuple.__new__
_CHINESE = ("CN", "SG", "TW", "HK")
"""Regions, in this order, whose Chinese titles are used if an answer has none of its own."""
SHOWN = {
    EntityType.MOVIE: ("title", "release_date"),
    EntityType.PERSON: ("name", "known_for_department"),
    EntityType.TV: ("name", "first_air_date"),
}
"""The columns that the graph shows of a stub; the first one is its name."""


def key_of(entity: EntityType, raw: Raw) -> EntityKey:
    """Return the entity that an answer is about.

    Raises:
        PayloadError: It has no valid TMDB id.
    """
    tmdb_id = id_of(raw.get("id"))
    if tmdb_id is None:
        raise PayloadError(f"no id of a {entity.value}: {str(raw.get('id'))[:40]!r}")
    return EntityKey(entity, tmdb_id)


def is_full(entity: EntityType, raw: Raw) -> bool:
    """Return whether an entity's part of the graph can be built from an answer: whether it contains the credits.

    A series may have ``aggregate_credits`` instead of ``credits``, and a person ``movie_credits`` with ``tv_credits``
    instead of ``combined_credits``: they contain the same data and more.
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
            "name": name_of(entity, raw),
            "original_name": text_of(raw.get("original_name")),
            "known_for_department": text_of(raw.get("known_for_department")),
            "popularity": popularity,
        }
    name, original, day = _title_names(entity)
    return {
        name: name_of(entity, raw),
        original: text_of(raw.get(original)),
        "original_language": text_of(raw.get("original_language")),
        day: day_of(raw.get(day)),
        "popularity": popularity,
        "vote_average": number_of(raw.get("vote_average")),
        "vote_count": count_of(raw.get("vote_count")),
    }


def stub_properties(entity: EntityType, columns: Mapping[str, Value]) -> dict[str, Property]:
    """Return the graph properties of a stub, from its columns."""
    return {name: _plain(columns[name]) for name in SHOWN[entity]}


def credited_properties(entity: EntityType, credit: Raw) -> dict[str, Property]:
    """Return the graph properties of a stub, from a credit that names it."""
    name, more = SHOWN[entity]
    said = credit.get(more)
    return {
        name: text_of(credit.get(name)) or _other_name(entity, credit),
        more: text_of(said) if entity is _A_PERSON else _plain(day_of(said)),
    }


def full_properties(entity: EntityType, raw: Raw, *, votes: bool = False) -> dict[str, Property]:
    """Return the graph properties of a full entity; ``votes`` adds the average vote, for transient graphs."""
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
    """Return the nodes and edges of a full answer; unknown keys and credits without ids are ignored.

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
    for end, named, item, edge in credits:
        (relation, _, _, credit_id), _ = edge
        place = (relation, credit_id)
        if place not in edges:
            edges[place] = edge
            if end not in others:
                others[end] = _tuple(Node, (end, credited_properties(named, item)))
    return Projection(own, tuple(others.values()), tuple(edges.values()))


def _genres(title: NodeKey, raw: Raw) -> Iterator[tuple[Node, Edge]]:
    for item in items_of(raw, "genres"):
        if (tmdb_id := id_of(item.get("id"))) is not None:
            genre = Node(NodeKey(NodeLabel.GENRE, tmdb_id), {"name": text_of(item.get("name"))})
            yield genre, Edge(EdgeKey(Relation.BELONGS_TO_GENRE, title, genre.key))


_Credit = tuple[NodeKey, EntityType, Raw, Edge]
"""The node at the other end of an edge, its properties, and the edge."""


def _credits_of_title(title: NodeKey, raw: Raw) -> Iterator[_Credit]:
    for item, part, is_crew in _credits_in(raw, ("aggregate_credits", "credits")):
        if (tmdb_id := id_of(item.get("id"))) is not None:
            end = _tuple(NodeKey, (_PERSON, tmdb_id))
            if (edge := _edge(end, title, item, part, is_crew)) is not None:
                yield end, _A_PERSON, item, edge
    for item in items_of(raw, "created_by"):
        person, creator = _key(EntityType.PERSON, item), {**item, "job": "Creator", "department": "Creator"}
        if person is not None and (edge := _edge(person, title, creator, creator, True)) is not None:
            yield person, EntityType.PERSON, item, edge


def _credits_of_person(person: NodeKey, raw: Raw) -> Iterator[_Credit]:
    for name, known in _PERSONS_CREDITS.items():
        for item, part, is_crew in _credits_in(raw, (name,)):
            entity = known or _TITLES.get(str(item.get("media_type")))
            title = _key(entity, item) if entity else None
            if entity and title and (edge := _edge(person, title, item, part, is_crew)) is not None:
                yield title, entity, item, edge


def _credits_in(raw: Raw, names: tuple[str, ...]) -> Iterator[tuple[dict[str, Any], dict[str, Any], bool]]:
    """Yield each single credit: the credited person or title, the role or job, and whether it is a crew credit.

    In a series' aggregate credits an item has several roles or jobs; otherwise item and role are the same object.
    """
    for name in names:
        for group, parts, is_crew in (("cast", "roles", False), ("crew", "jobs", True)):
            for item in items_of(raw.get(name), group):
                if parts not in item:
                    yield item, item, is_crew
                    continue
                for part in items_of(item, parts) or (item,):
                    yield item, part, is_crew


def _key(entity: EntityType, item: Raw) -> NodeKey | None:
    tmdb_id = id_of(item.get("id"))
    return None if tmdb_id is None else NodeKey(LABELS[entity], tmdb_id)


def _edge(person: NodeKey, title: NodeKey, item: Raw, part: Raw, is_crew: bool) -> Edge | None:
    credit_id = text_of(part.get("credit_id"))
    if credit_id is None:
        return None
    properties: Mapping[str, Property]
    if not is_crew:
        relation, properties = _ACTED_IN, {"character": text_of(part.get("character"))}
    elif (job := text_of(part.get("job"))) == "Director":
        relation, properties = _DIRECTED, NO_PROPERTIES
    else:
        relation, properties = _CREW_MEMBER, {"job": job, "department": text_of(item.get("department"))}
    return _tuple(Edge, (_tuple(EdgeKey, (relation, person, title, credit_id)), properties))


def name_of(entity: EntityType, raw: Raw) -> str | None:
    """Return an entity's name: from the answer, else another Chinese one, else the original."""
    return text_of(raw.get(SHOWN[entity][0])) or _other_name(entity, raw)


def _other_name(entity: EntityType, raw: Raw) -> str | None:
    name = SHOWN[entity][0]
    return _chinese(name, raw) or text_of(raw.get(f"original_{name}"))


def _chinese(name: str, raw: Raw) -> str | None:
    if "translations" not in raw:
        return None
    found = {
        str(item.get("iso_3166_1")): text_of(item["data"].get(name))
        for item in items_of(raw.get("translations"), "translations")
        if item.get("iso_639_1") == "zh" and isinstance(item.get("data"), Mapping)
    }
    return next((found[region] for region in _CHINESE if found.get(region)), None)


def _title_names(entity: EntityType) -> tuple[str, str, str]:
    if entity is EntityType.MOVIE:
        return "title", "original_title", "release_date"
    return "name", "original_name", "first_air_date"


def _plain(value: Value) -> Property:
    return value.isoformat() if isinstance(value, date) else value
