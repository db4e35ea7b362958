"""Builds answers of the sources about a corpus's subjects, in their online formats, for the production parsers."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from douban_pipeline.douban.sources.douban_php import SubjectRecord


def subject_body(record: SubjectRecord) -> bytes:
    """Return an answer of douban.php for a subject: JSONP, every value a string, lists joined by separators."""
    data = {
        "vod_name": record.title,
        "vod_original_title": record.original_title,
        "vod_sub": " / ".join(record.aliases),
        "vod_year": _text(record.year),
        "vod_pubdate": ",".join(record.release_dates),
        "vod_area": ",".join(record.regions),
        "vod_lang": ",".join(record.languages),
        "vod_class": ",".join(record.genres),
        "vod_director": ",".join(record.directors),
        "vod_actor": ",".join(record.actors),
        "vod_duration": f"{record.duration_minutes}分钟" if record.duration_minutes else "",
        "vod_total": _text(record.episodes),
        "vod_douban_score": _text(record.rating),
        "vod_douban_id": str(record.douban_id),
        "vod_reurl": subject_url(record.douban_id),
    }
    answer = json.dumps({"code": "1", "msg": "ok", "data": data}, ensure_ascii=False)
    return f"callback({answer});".encode()


def suggestions_body(subjects: Iterable[tuple[SubjectRecord, str]]) -> bytes:
    """Return an answer of Douban's suggestions: subjects with their kinds, titles, years and episodes."""
    found: list[dict[str, Any]] = [
        {
            "id": str(record.douban_id),
            "title": record.title,
            "sub_title": record.original_title,
            # Douban's type is "movie" for everything except some series.
            "type": "tv" if kind == "tv" else "movie",
            "url": f"{subject_url(record.douban_id)}?suggest=x",
            "year": _text(record.year),
            "episode": _text(record.episodes) if kind == "tv" or (record.episodes or 0) > 1 else "",
        }
        for record, kind in subjects
    ]
    return json.dumps(found, ensure_ascii=False).encode()


def searxng_body(subjects: Iterable[tuple[SubjectRecord, str]]) -> bytes:
    """Return an answer of SearXNG: pages of the subjects with their titles only."""
    results = [
        {"url": subject_url(record.douban_id), "title": f"{record.title} (豆瓣)", "content": ""}
        for record, _ in subjects
    ]
    return json.dumps({"query": "", "results": results, "unresponsive_engines": []}, ensure_ascii=False).encode()


def subject_url(douban_id: int) -> str:
    """Return the address of a subject's page."""
    return f"https://movie.douban.com/subject/{douban_id}/"


def _text(value: float | None) -> str:
    return "" if value is None else str(value)
