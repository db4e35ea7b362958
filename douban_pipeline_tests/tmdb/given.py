"""Answers of TMDB as tests need them: made up, and recorded ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from douban_pipeline.tmdb.store.entities import EntityAnswer
from douban_pipeline.tmdb.types import EntityType

RECORDED = Path(__file__).parent / "data" / "recorded.jsonl"
NOW = datetime(2026, 11, 22, 8, tzinfo=UTC)
KEY = "a-key"
"""What the stand-in of the API may ask for."""


def recorded() -> list[dict[str, Any]]:
    """The recordings, an exchange each."""
    return [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]


def person(tmdb_id: int, **more: Any) -> dict[str, Any]:
    named = {"id": tmdb_id, "name": f"Person {tmdb_id}", "known_for_department": "Acting", "popularity": 1.5}
    return {**named, **more}


def cast(tmdb_id: int, credit: str, character: str = "She", **more: Any) -> dict[str, Any]:
    return person(tmdb_id, credit_id=credit, character=character, **{"order": 0, **more})


def crew(tmdb_id: int, credit: str, job: str = "Director", **more: Any) -> dict[str, Any]:
    return person(tmdb_id, credit_id=credit, job=job, department="Directing", **more)


def movie(tmdb_id: int = 1, *credits: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A full movie; what has a job is crew."""
    return {
        "id": tmdb_id,
        "title": f"Movie {tmdb_id}",
        "original_title": f"Original {tmdb_id}",
        "original_language": "zh",
        "overview": "…",
        "release_date": "1993-08-04",
        "popularity": 7.5,
        "vote_average": 7.0,
        "vote_count": 12,
        "genres": [{"id": 18, "name": "剧情"}],
        "credits": {
            "cast": [credit for credit in credits if "job" not in credit],
            "crew": [credit for credit in credits if "job" in credit],
        },
        **more,
    }


def show(tmdb_id: int = 1, *credits: dict[str, Any], **more: Any) -> dict[str, Any]:
    raw = movie(tmdb_id, *credits)
    raw |= {"name": f"Show {tmdb_id}", "original_name": "", "first_air_date": ""}
    return {**raw, **more}


def actor(tmdb_id: int = 1, *credits: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A full person; a credit is made by `title`."""
    return person(
        tmdb_id,
        biography="…",
        combined_credits={
            "cast": [credit for credit in credits if "job" not in credit],
            "crew": [credit for credit in credits if "job" in credit],
        },
        **more,
    )


def title(tmdb_id: int, credit: str, media_type: str = "movie", **more: Any) -> dict[str, Any]:
    named = {"title": f"Movie {tmdb_id}"} if media_type == "movie" else {"name": f"Show {tmdb_id}"}
    return {"id": tmdb_id, "media_type": media_type, "credit_id": credit, **named, **more}


def answer(entity: str, raw: dict[str, Any], language: str = "zh-CN") -> EntityAnswer:
    return EntityAnswer(EntityType(entity), raw, language, NOW)
