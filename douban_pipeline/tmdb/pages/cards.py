"""A film, series or person as its page shows it, from TMDB's stored answer. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from douban_pipeline.core.ui.tmdb_attribution import LINK
from douban_pipeline.tmdb.pages.relations import Neighbour
from douban_pipeline.tmdb.store.by_name import NamedEntity
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline.tmdb.values import count_of, items_of, number_of, text_of

PICTURES = "https://image.tmdb.org"
"""Host of TMDB's pictures."""
_KINDS = {EntityType.MOVIE: "电影", EntityType.TV: "剧集", EntityType.PERSON: "人物"}
_DEPARTMENTS = {"Acting": "演员", "Directing": "导演", "Writing": "编剧", "Production": "制片", "Camera": "摄影"}
_JOBS = {
    "Director": "导演",
    "Screenplay": "编剧",
    "Writer": "编剧",
    "Novel": "原著",
    "Creator": "主创",
    "Original Music Composer": "作曲",
    "Director of Photography": "摄影",
}


@dataclass(frozen=True, slots=True)
class Tile:
    """A picture with a name that leads to a page.

    Attributes:
        note: A line under it, such as a role or a year.
        picture: Address of the picture; empty for none.
        kind: 电影, 剧集 or 人物.
    """

    address: str
    name: str
    note: str = ""
    picture: str = ""
    kind: str = ""


def kind_of(key: EntityKey) -> str:
    """Return the type of an entity for people."""
    return _KINDS[key.type]


def address_of(key: EntityKey) -> str:
    """Return the address of an entity's page, from `/tmdb/`."""
    return f"{key.type.value}/{key.tmdb_id}"


def link_of(key: EntityKey) -> str:
    """Return the address of an entity's page at TMDB."""
    return f"{LINK}{key.type.value}/{key.tmdb_id}"


def picture_of(path: object, width: int = 185) -> str:
    """Return the address of a picture of TMDB's; empty for none, or what is no path of one."""
    text = text_of(path) or ""
    return f"{PICTURES}/t/p/w{width}{text}" if text.startswith("/") and not text.startswith("//") else ""


def tile_of(found: Neighbour | NamedEntity) -> Tile:
    """Return the tile of an entity in a list."""
    if isinstance(found, NamedEntity):
        more = _DEPARTMENTS.get(found.more, found.more)
        note = " · ".join(part for part in (kind_of(found.key), more, found.original) if part)
    else:
        note = " · ".join(part for part in (found.day[:4], _JOBS.get(found.role, found.role)) if part)
    name = found.name or f"{kind_of(found.key)} {found.key.tmdb_id}"
    return Tile(address_of(found.key), name, note, picture_of(found.picture), kind_of(found.key))


def facts_of(key: EntityKey, raw: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what is known of an entity, as pairs of a word and what it says; nothing that is not."""
    found = _person(raw) if key.type is EntityType.PERSON else _title(raw)
    return [(word, text) for word, text in found if text]


def _title(raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "原名", _other(raw, "title", "name")
    yield "首映", text_of(raw.get("release_date")) or ""
    yield "首播", text_of(raw.get("first_air_date")) or ""
    minutes = count_of(raw.get("runtime"))
    yield "片长", f"{minutes} 分钟" if minutes else ""
    seasons, episodes = count_of(raw.get("number_of_seasons")), count_of(raw.get("number_of_episodes"))
    yield "季数", f"{seasons} 季，{episodes or '?'} 集" if seasons else ""
    yield "类型", _names(items_of(raw, "genres"))
    yield "地区", _names(items_of(raw, "production_countries"))
    vote, votes = number_of(raw.get("vote_average")), count_of(raw.get("vote_count"))
    yield "TMDB 评分", f"{vote:.1f}（{votes:,} 人）" if vote and votes else ""
    yield "又名", _aliases(raw)


def _person(raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    known = text_of(raw.get("known_for_department")) or ""
    yield "身份", _DEPARTMENTS.get(known, known)
    yield "生日", text_of(raw.get("birthday")) or ""
    yield "去世", text_of(raw.get("deathday")) or ""
    yield "出生地", text_of(raw.get("place_of_birth")) or ""
    names = raw.get("also_known_as")
    yield "又名", "、".join(str(name) for name in names[:8]) if isinstance(names, list) else ""


def _other(raw: Mapping[str, Any], *parts: str) -> str:
    for part in parts:
        original = text_of(raw.get(f"original_{part}"))
        if original and original != text_of(raw.get(part)):
            return original
    return ""


def _aliases(raw: Mapping[str, Any]) -> str:
    other = raw.get("alternative_titles")
    items = [*items_of(other, "titles"), *items_of(other, "results")] if isinstance(other, Mapping) else []
    return "、".join(dict.fromkeys(text for item in items if (text := text_of(item.get("title")))))[:200]


def _names(items: Iterable[Mapping[str, Any]]) -> str:
    return "、".join(text for item in items if (text := text_of(item.get("name"))))


def age_of(fetched: datetime, now: datetime) -> str:
    """Return the day on which an answer came (UTC), and how long ago that is."""
    days = (now - fetched).days
    return f"{fetched:%Y-%m-%d}（{f'{days} 天前' if days > 0 else '今天'}）"
