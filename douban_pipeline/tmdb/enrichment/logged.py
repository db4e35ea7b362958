"""What of a question's results is logged, and where they came from. Pure."""

from __future__ import annotations

from typing import Any

from douban_pipeline.tmdb.enrichment.asking import Found
from douban_pipeline.tmdb.types import EntityKey, EntityType


def disambiguation(found: Found) -> list[dict[str, Any]]:
    """Return choice and candidates of each name, for the log."""
    chosen = {each.key: each for each in found.selected}
    return [
        {
            "selected": next((dated(each.to_json(), found) for each in ranked if each.key in chosen), None),
            "candidates": [dated(each.to_json(), found) for each in ranked],
        }
        for ranked in found.ranked
    ]


def dated(candidate: dict[str, Any], found: Found) -> dict[str, Any]:
    """Return a candidate for the log, whose facts are as old as the question: without those that the store gave."""
    if EntityKey(EntityType(candidate["media_type"]), candidate["tmdb_id"]) not in found.stored:
        return candidate
    return {name: value for name, value in candidate.items() if name not in ("name", "year")}


def source_of(found: Found) -> str:
    """Return ``store`` if all of an answer was stored, ``tmdb`` if TMDB was asked, and nothing without details."""
    if not found.payloads:
        return ""
    asked = found.multi or found.discovered is not None or not all(each["known"] for each in found.payloads)
    return "tmdb" if asked else "store"
