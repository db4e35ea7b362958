"""Chooses the entity that a question means from search results: scored by parts, ranked, and one chosen. Pure.

Titles and years are compared by the rules of `matching`, as for the library's videos. Names in all languages are used
if the answer contains them. Popularity only breaks ties, by at most two points of a hundred.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from douban_pipeline.matching import Kind, Subject, Video, Weights, compare, normalise
from douban_pipeline.matching.similarity import NEAR_EXACT, similarity
from douban_pipeline.tmdb.enrichment.route import Role
from douban_pipeline.tmdb.projection import SHOWN
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline.tmdb.values import day_of, id_of, items_of, number_of, text_of

TITLE, YEAR, ROLE, POPULARITY = 70.0, 20.0, 8.0, 2.0
"""Maximum points of each part."""
CHOSEN = 60.0
"""Percentage of the attainable points from which the best candidate is chosen without asking the user."""
LEAD = 3.0
"""Minimum lead of the best candidate in points; below it the choice counts as uncertain."""
_FULL_POPULARITY = 1000.0
_WEIGHTS = Weights(title=TITLE, year=YEAR)
_TYPES = {entity.value: entity for entity in EntityType}
_DEPARTMENTS = {Role.DIRECTOR: "Directing", Role.ACTOR: "Acting", Role.WRITER: "Writing"}


@dataclass(frozen=True, slots=True)
class WantedEntity:
    """What a question searches for.

    Attributes:
        role: Whose work is requested.
        is_title: Whether the question marks the name as a title.
        media: Whether it is about films or series, if stated.
    """

    name: str
    year: int | None = None
    role: Role | None = None
    is_title: bool = False
    media: EntityType | None = None


@dataclass(frozen=True, slots=True)
class ScoredCandidate:
    """An entity with its score.

    Attributes:
        score: 0 to 100: the share of the comparable points, plus popularity.
        parts: Points by part: title, year, role, popularity.
        exact: Whether one of its names equals the wanted one.
    """

    key: EntityKey
    name: str
    year: int | None
    score: float
    parts: Mapping[str, float]
    exact: bool
    item: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return it in the form used in the log of questions and the API."""
        return {
            "media_type": self.key.type.value,
            "tmdb_id": self.key.tmdb_id,
            "name": self.name,
            "year": self.year,
            "score": self.score,
            "parts": dict(self.parts),
        }


def rank(wanted: WantedEntity, items: Iterable[Mapping[str, Any]]) -> list[ScoredCandidate]:
    """Return the entities among the items of a search, best first, without those of another kind."""
    found: dict[EntityKey, ScoredCandidate] = {}
    for item in items:
        media = item.get("media_type")
        entity = _TYPES.get(media) if isinstance(media, str) else None
        tmdb_id = id_of(item.get("id"))
        if entity is None or tmdb_id is None or (wanted.is_title and entity is EntityType.PERSON):
            continue
        candidate = score(wanted, EntityKey(entity, tmdb_id), item)
        best = found.get(candidate.key)
        if best is None or candidate.score > best.score:
            found[candidate.key] = candidate
    return sorted(found.values(), key=lambda each: (-each.score, each.key))


def score(wanted: WantedEntity, key: EntityKey, item: Mapping[str, Any]) -> ScoredCandidate:
    """Return an entity's score, from a search item or from details with its names in other languages."""
    names = _names(key.type, item)
    day = day_of(item.get(SHOWN[key.type][1])) if key.type is not EntityType.PERSON else None
    if key.type is EntityType.PERSON:
        like = max((similarity(normalise(wanted.name), normalise(name)) for name in names), default=0.0)
        title, year, possible = TITLE * like, 0.0, TITLE
    else:
        title, year, like = _title_and_year(wanted, key, names, day.year if day else None)
        possible = TITLE + (YEAR if wanted.year is not None and day is not None else 0.0)
    hinted = wanted.role is not None or wanted.media is not None or wanted.is_title
    role = _role(wanted, key.type, item) if hinted else 0.0
    possible += ROLE if hinted else 0.0
    popular = POPULARITY * min(1.0, _log(item) / math.log1p(_FULL_POPULARITY))
    share = (100 - POPULARITY) * (title + year + role) / possible
    parts = {"title": title, "year": year, "role": role, "popularity": popular}
    return ScoredCandidate(
        key,
        names[0] if names else "",
        day.year if day else None,
        round(share + popular, 2),
        {name: round(points, 2) for name, points in parts.items()},
        like >= NEAR_EXACT,
        item,
    )


def choose(ranked: Sequence[ScoredCandidate]) -> ScoredCandidate | None:
    """Return the candidate that is chosen without asking the user; None if none is similar enough."""
    return ranked[0] if ranked and ranked[0].score >= CHOSEN else None


def is_uncertain(ranked: Sequence[ScoredCandidate]) -> bool:
    """Return whether another candidate is nearly as good as the best one."""
    return len(ranked) > 1 and ranked[0].score - ranked[1].score < LEAD


def _title_and_year(
    wanted: WantedEntity, key: EntityKey, names: Sequence[str], year: int | None
) -> tuple[float, float, float]:
    if not names:
        return 0.0, 0.0, 0.0
    kind = Kind.SERIES if key.type is EntityType.TV else Kind.FILM
    subject = Subject(key.tmdb_id, names[0], names[1] if len(names) > 1 else "", tuple(names[2:]), year, kind=kind)
    compared = compare(Video(0, wanted.name, year=wanted.year), subject, _WEIGHTS)
    return compared.item("title").points, compared.item("year").points, compared.title.similarity


def _names(entity: EntityType, item: Mapping[str, Any]) -> list[str]:
    """Return an entity's names: title, original title, then other titles and translations."""
    name = SHOWN[entity][0]
    found = [text_of(item.get(name)), text_of(item.get(f"original_{name}"))]
    for key in ("titles", "results"):
        found += [text_of(each.get("title")) for each in items_of(item.get("alternative_titles"), key)]
    for each in items_of(item.get("translations"), "translations"):
        data = each.get("data")
        if isinstance(data, Mapping):
            found.append(text_of(data.get(name)))
    others = item.get("also_known_as")
    found += [text_of(each) for each in others] if isinstance(others, list) else []
    return list(dict.fromkeys(each for each in found if each))


def _role(wanted: WantedEntity, entity: EntityType, item: Mapping[str, Any]) -> float:
    if entity is EntityType.PERSON:
        if wanted.role is not None and item.get("known_for_department") == _DEPARTMENTS[wanted.role]:
            return ROLE
        return 0.0 if wanted.role is not None else ROLE / 2
    if wanted.media is not None and not wanted.is_title:
        # 李安导演的电影 asks for a person's films: the word "film" does not suggest a title here.
        return ROLE / 2 if wanted.media is entity else 0.0
    if wanted.media is not None:
        return ROLE if wanted.media is entity else 0.0
    return ROLE if wanted.is_title else ROLE / 2


def _log(item: Mapping[str, Any]) -> float:
    return math.log1p(max(number_of(item.get("popularity")) or 0.0, 0.0))
