"""Who belongs to whom: the neighbours of an entity, those who acted together, and ways between two people.

Read from stored answers: of a title its cast and crew, of a person their titles. Pure, but for what it asks of `Raws`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline.tmdb.values import id_of, items_of, number_of, text_of

Raws = Callable[[EntityType, Iterable[int]], Mapping[int, Mapping[str, Any]]]
"""Returns the answers of full entities by id, as `PostgresTmdbStore.raws`."""

SHOWN = 24
"""Neighbours of an entity in a drawing: more cannot be read."""
_BILLED = 60
"""People of a title, and titles of a person, that a search for a way goes through."""
_ON_THE_WAY = 150
"""Titles, and people, of one step of that search."""
_CREW = ("Director", "Screenplay", "Writer", "Novel", "Original Music Composer", "Director of Photography")


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A person of a title, or a title of a person.

    Attributes:
        role: What the person does there, such as a character or ``Director``.
        day: Day of the title.
        weight: What comes first: a popularity, or a place in a cast.
    """

    key: EntityKey
    name: str
    role: str = ""
    picture: str = ""
    day: str = ""
    weight: float = 0.0


def people_of(raw: Mapping[str, Any]) -> list[Neighbour]:
    """Return the people of a title, the cast in its order, then who leads the crew; each once."""
    credits = raw.get("aggregate_credits") or raw.get("credits")
    parts = credits if isinstance(credits, Mapping) else {}
    found: dict[EntityKey, Neighbour] = {}
    cast = sorted(items_of(parts, "cast"), key=lambda item: number_of(item.get("order")) or 0.0)
    crew = [item for item in items_of(parts, "crew") if _job(item) in _CREW]
    makers = [{**item, "job": "Creator"} for item in items_of(raw, "created_by")]
    crew.sort(key=lambda item: _CREW.index(_job(item)))
    for item in (*makers, *crew[:4], *cast, *crew[4:]):
        if (number := id_of(item.get("id"))) is None:
            continue
        key = EntityKey(EntityType.PERSON, number)
        role = _job(item) or text_of(item.get("character")) or _first(item.get("roles"), "character")
        name, picture = text_of(item.get("name")) or "", text_of(item.get("profile_path")) or ""
        found.setdefault(key, Neighbour(key, name, role, picture, weight=-len(found)))
    return list(found.values())


def titles_of(raw: Mapping[str, Any]) -> list[Neighbour]:
    """Return the titles of a person, the best known first; each once, with the first role."""
    found: dict[EntityKey, Neighbour] = {}
    for part, kind in (("combined_credits", None), ("movie_credits", "movie"), ("tv_credits", "tv")):
        credits = raw.get(part)
        if not isinstance(credits, Mapping):
            continue
        for item in (*items_of(credits, "cast"), *items_of(credits, "crew")):
            kind_of_it = kind or item.get("media_type")
            number = id_of(item.get("id"))
            if number is None or kind_of_it not in ("movie", "tv"):
                continue
            key = EntityKey(EntityType(str(kind_of_it)), number)
            name = text_of(item.get("title")) or text_of(item.get("name")) or ""
            role = text_of(item.get("character")) or _job(item)
            day = text_of(item.get("release_date")) or text_of(item.get("first_air_date")) or ""
            known = number_of(item.get("vote_count")) or number_of(item.get("popularity")) or 0.0
            picture = text_of(item.get("poster_path")) or ""
            found.setdefault(key, Neighbour(key, name, role, picture, day, known))
    return sorted(found.values(), key=lambda each: (-each.weight, each.day))


def neighbours_of(key: EntityKey, raw: Mapping[str, Any]) -> list[Neighbour]:
    """Return the people of a title, or the titles of a person."""
    return titles_of(raw) if key.type is EntityType.PERSON else people_of(raw)


def _job(item: Mapping[str, Any]) -> str:
    return text_of(item.get("job")) or _first(item.get("jobs"), "job")


def _first(value: object, name: str) -> str:
    items = [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
    return (text_of(items[0].get(name)) or "") if items else ""


@dataclass(frozen=True, slots=True)
class CoActor:
    """Somebody who acted in titles with a person: who, and in which of the stored ones."""

    person: Neighbour
    titles: Sequence[Neighbour]


def co_actors(person: int, raw: Mapping[str, Any], raws: Raws, most: int) -> list[CoActor]:
    """Return with whom a person acted in the titles of which casts are stored, most often first."""
    titles = titles_of(raw)[:_ON_THE_WAY]
    met: Counter[EntityKey] = Counter()
    people: dict[EntityKey, Neighbour] = {}
    shared: dict[EntityKey, list[Neighbour]] = {}
    for title, people_there in _casts(titles, raws):
        for each in people_there:
            if each.key.tmdb_id != person:
                met[each.key] += 1
                people.setdefault(each.key, each)
                shared.setdefault(each.key, []).append(title)
    often = sorted(met.items(), key=lambda item: (-item[1], -people[item[0]].weight))
    return [CoActor(people[key], shared[key]) for key, _ in often[:most]]


def _casts(titles: Sequence[Neighbour], raws: Raws) -> Iterator[tuple[Neighbour, list[Neighbour]]]:
    by_type: dict[EntityType, list[Neighbour]] = {}
    for title in titles:
        by_type.setdefault(title.key.type, []).append(title)
    for entity, some in by_type.items():
        found = raws(entity, [each.key.tmdb_id for each in some])
        for title in some:
            if (raw := found.get(title.key.tmdb_id)) is not None:
                yield title, people_of(raw)[:_BILLED]


@dataclass(slots=True)
class _Side:
    """What one end of a way has reached: each entity with where it was reached from, and the newest people."""

    came_from: dict[EntityKey, EntityKey | None]
    names: dict[EntityKey, Neighbour]
    newest: list[EntityKey] = field(default_factory=list)


def way_between(one: Neighbour, other: Neighbour, raws: Raws, most_titles: int = 4) -> list[Neighbour]:
    """Return people and titles by turns from one person to another, the shortest that is found; empty for none."""
    sides = [_Side({end.key: None}, {end.key: end}, [end.key]) for end in (one, other)]
    for turn in range(most_titles):
        side, opposite = sides[turn % 2], sides[(turn + 1) % 2]
        if (met := _widen(side, opposite, raws)) is not None:
            return _joined(met, *sides)
    return []


def _widen(side: _Side, opposite: _Side, raws: Raws) -> EntityKey | None:
    """Go from the newest people over their titles to the people there; return where both sides meet."""
    found = raws(EntityType.PERSON, [key.tmdb_id for key in side.newest])
    titles: list[Neighbour] = []
    for key in side.newest:
        for title in titles_of(found.get(key.tmdb_id, {}))[:_BILLED]:
            if _reach(side, title, key):
                titles.append(title)
            if title.key in opposite.came_from:
                return title.key
    titles.sort(key=lambda each: -each.weight)
    side.newest = []
    for title, people in _casts(titles[:_ON_THE_WAY], raws):
        for person in people:
            if not _reach(side, person, title.key):
                continue
            if person.key in opposite.came_from:
                return person.key
            side.newest.append(person.key)
    side.newest = side.newest[:_ON_THE_WAY]
    return None


def _reach(side: _Side, reached: Neighbour, start: EntityKey) -> bool:
    if reached.key in side.came_from:
        return False
    side.came_from[reached.key], side.names[reached.key] = start, reached
    return True


def _joined(met: EntityKey, one: _Side, other: _Side) -> list[Neighbour]:
    def back(side: _Side) -> list[Neighbour]:
        way, key = [], side.came_from[met]
        while key is not None:
            way.append(side.names[key])
            key = side.came_from[key]
        return way

    return [*back(one)[::-1], one.names[met], *back(other)]
