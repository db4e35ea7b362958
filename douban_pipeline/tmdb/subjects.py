"""TMDB's titles as the matcher's subjects, so that the library's videos are judged by the same gate. Pure.

A series of several seasons becomes one subject per season, as on Douban and in the sites' video names; a subject's
number encodes title and season.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from douban_pipeline.matching import Kind, Subject
from douban_pipeline.tmdb.projection import SHOWN
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline.tmdb.values import count_of, day_of, id_of, items_of, number_of, text_of

_SEASONS = 1000
_ANIMATION, _DOCUMENTARY, _REALITY, _TALK = 16, 99, 10764, 10767
_MOST_PEOPLE = 20


def subjects_of(entity: EntityType, raw: Mapping[str, Any]) -> Iterator[Subject]:
    """Yield the subjects of a film or series: one, or one per season."""
    tmdb_id = id_of(raw.get("id"))
    names = names_of(entity, raw)
    if tmdb_id is None or not names:
        return
    seasons = [item for item in items_of(raw, "seasons") if count_of(item.get("season_number"))]
    if entity is EntityType.TV and len(seasons) > 1:
        for season in seasons:
            number = int(season["season_number"])
            own = [f"{name} 第{number}季" for name in names]
            day = day_of(season.get("air_date"))
            more = (*own[1:], *(names if number == 1 else ()))
            yield _subject(entity, raw, tmdb_id, number, own[0], more, day.year if day else None, season)
        return
    day = day_of(raw.get(SHOWN[entity][1]))
    yield _subject(entity, raw, tmdb_id, 0, names[0], tuple(names[1:]), day.year if day else None, raw)


def key_of_subject(number: int) -> tuple[EntityKey, int]:
    """Return title and season (0: all of it) encoded in a subject's number."""
    both, season = divmod(number, _SEASONS)
    tmdb_id, is_series = divmod(both, 2)
    return EntityKey(EntityType.TV if is_series else EntityType.MOVIE, tmdb_id), season


def names_of(entity: EntityType, raw: Mapping[str, Any]) -> list[str]:
    """Return a title's names: in the base language, the original, then others."""
    name = SHOWN[entity][0]
    found = [text_of(raw.get(name)), text_of(raw.get(f"original_{name}"))]
    for part in ("titles", "results"):
        found += [text_of(item.get("title")) for item in items_of(raw.get("alternative_titles"), part)]
    for item in items_of(raw.get("translations"), "translations"):
        if item.get("iso_639_1") in ("zh", "en") and isinstance(item.get("data"), Mapping):
            found.append(text_of(item["data"].get(name)))
    return list(dict.fromkeys(each for each in found if each))


def _subject(
    entity: EntityType,
    raw: Mapping[str, Any],
    tmdb_id: int,
    season: int,
    title: str,
    others: tuple[str, ...],
    year: int | None,
    counted: Mapping[str, Any],
) -> Subject:
    is_series = entity is EntityType.TV
    countries = [text_of(item.get("name")) for item in items_of(raw, "production_countries")]
    lengths = raw.get("episode_run_time") if is_series else [raw.get("runtime")]
    minutes = next((n for each in lengths if (n := count_of(each))), None) if isinstance(lengths, list) else None
    episodes = count_of(counted.get("episode_count") or counted.get("number_of_episodes")) if is_series else None
    return Subject(
        douban_id=(tmdb_id * 2 + is_series) * _SEASONS + season,
        title=title,
        original_title=others[0] if others else "",
        aliases=others[1:],
        year=year,
        kind=_kind(entity, raw),
        regions=tuple(each for each in countries if each),
        directors=tuple(_people(raw, "crew", "Director")) or tuple(_creators(raw)),
        actors=tuple(_people(raw, "cast"))[:_MOST_PEOPLE],
        genres=tuple(name for item in items_of(raw, "genres") if (name := text_of(item.get("name")))),
        duration_minutes=minutes,
        episodes=episodes,
        rating=number_of(raw.get("vote_average")),
        votes=count_of(raw.get("vote_count")),
        serial=is_series,
    )


def _kind(entity: EntityType, raw: Mapping[str, Any]) -> Kind:
    genres = {item.get("id") for item in items_of(raw, "genres")}
    if genres & {_REALITY, _TALK}:
        return Kind.VARIETY
    if _ANIMATION in genres:
        return Kind.ANIMATION
    if _DOCUMENTARY in genres:
        return Kind.DOCUMENTARY
    return Kind.SERIES if entity is EntityType.TV else Kind.FILM


def _people(raw: Mapping[str, Any], group: str, job: str = "") -> Iterator[str]:
    for item in items_of(raw.get("credits"), group):
        if not job or item.get("job") == job:
            for name in dict.fromkeys((text_of(item.get("name")), text_of(item.get("original_name")))):
                if name:
                    yield name


def _creators(raw: Mapping[str, Any]) -> Iterator[str]:
    for item in items_of(raw, "created_by"):
        if name := text_of(item.get("name")):
            yield name
