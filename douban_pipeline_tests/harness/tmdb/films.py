"""Generated films with the parts and keys of TMDB's answers, about 10 KB each: what JSON costs depends on both."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

from douban_pipeline.tmdb.store.entities import EntityAnswer
from douban_pipeline.tmdb.types import EntityType

FIRST_GLYPH = 0x4E00
_GLYPHS = 5_000
_JOBS = ("Director", "Writer", "Producer", "Editor", "Original Music Composer", "Sound Designer", "Costume Design")
_GENRES = ((18, "剧情"), (35, "喜剧"), (10749, "爱情"), (28, "动作"), (878, "科幻"), (53, "惊悚"))
_SPOKEN = ("en-US", "fr-FR", "de-DE", "ja-JP", "es-ES")


def title_of(tmdb_id: int) -> str:
    """Return the title of a film: of four glyphs, another one for every id."""
    first, second = divmod(tmdb_id, _GLYPHS)
    return f"无{chr(FIRST_GLYPH + first)}{chr(FIRST_GLYPH + second)}影"


def film(
    tmdb_id: int, version: int = 1, *, people: int = 500, cast: int = 14, crew: int = 10, first_person: int = 1
) -> dict[str, Any]:
    """Return a film; another ``version`` has other votes and another synopsis, which the graph holds."""
    draw = random.Random(tmdb_id)
    title = title_of(tmdb_id)
    picture = f"/{draw.getrandbits(128):032x}.jpg"
    credited = draw.sample(range(first_person, first_person + people), cast + crew)
    genres = draw.sample(_GENRES, 3)
    return {
        "adult": False,
        "backdrop_path": picture,
        "belongs_to_collection": None,
        "budget": draw.randrange(10**8),
        "genres": [{"id": number, "name": name} for number, name in genres],
        "homepage": "",
        "id": tmdb_id,
        "imdb_id": f"tt{tmdb_id:07}",
        "origin_country": ["CN"],
        "original_language": "zh",
        "original_title": title,
        "overview": f"第{version}版：" + "一个人回到家乡，发现一切都变了。" * 6,
        "popularity": round(draw.uniform(0, 60), 3) + version,
        "poster_path": picture,
        "production_companies": [
            {"id": each, "logo_path": picture, "name": f"Company {each}", "origin_country": "CN"} for each in (1, 2)
        ],
        "production_countries": [{"iso_3166_1": "CN", "name": "China"}],
        "release_date": f"{draw.randrange(1950, 2026)}-08-04",
        "revenue": draw.randrange(10**9),
        "runtime": draw.randrange(80, 180),
        "spoken_languages": [{"english_name": "Mandarin", "iso_639_1": "zh", "name": "普通话"}],
        "status": "Released",
        "tagline": "",
        "title": title,
        "video": False,
        "vote_average": round(draw.uniform(1, 10), 3),
        "vote_count": draw.randrange(9_000) + version,
        "credits": {
            "cast": [
                {**_person(person, "Acting", draw), "cast_id": place, "character": f"角色{place}", "order": place}
                | {"credit_id": f"{tmdb_id:012x}{place:012x}"}
                for place, person in enumerate(credited[:cast])
            ],
            "crew": [
                {**_person(person, "Production", draw), "department": "Production", "job": _JOBS[place % len(_JOBS)]}
                | {"credit_id": f"{tmdb_id:012x}{place + 1000:012x}"}
                for place, person in enumerate(credited[cast:])
            ],
        },
        "external_ids": {"imdb_id": f"tt{tmdb_id:07}", "wikidata_id": f"Q{tmdb_id}", "facebook_id": None},
        "alternative_titles": {"titles": [{"iso_3166_1": "US", "title": f"A Film of {tmdb_id}", "type": ""}]},
        "translations": {
            "translations": [
                {
                    "iso_3166_1": each[3:],
                    "iso_639_1": each[:2],
                    "name": each,
                    "english_name": each,
                    "data": {
                        "homepage": "",
                        "overview": "They come home. " * 12,
                        "runtime": 0,
                        "title": f"{each} {tmdb_id}",
                    },
                }
                for each in _SPOKEN
            ]
        },
    }


def _person(tmdb_id: int, department: str, draw: random.Random) -> dict[str, Any]:
    return {
        "adult": False,
        "gender": draw.randrange(3),
        "id": tmdb_id,
        "known_for_department": department,
        "name": f"人物{tmdb_id}",
        "original_name": f"Person {tmdb_id}",
        "popularity": round(draw.uniform(0, 20), 3),
        "profile_path": f"/{draw.getrandbits(128):032x}.jpg",
    }


def answers(first: int, count: int, version: int = 1, **more: int) -> list[EntityAnswer]:
    """Return the answers about ``count`` films from the id ``first`` on; see `film`."""
    now = datetime.now(UTC)
    return [
        EntityAnswer(EntityType.MOVIE, film(each, version, **more), "zh-CN", now)
        for each in range(first, first + count)
    ]
