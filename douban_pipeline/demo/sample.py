"""The bundled samples: Douban subjects, a small library that is matched to them, and texts of the other systems.

Two files of JSON lines in ``demo/data`` (the sources of the facts are listed in ``SOURCES.md`` there). Every video
states why it is included and its expected result, so that the demo and the tests can be checked against it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

DATA = Path(__file__).parent / "data"
"""The folder of the samples."""

Fault = Literal["server_error", "wrong_id", "empty"]
"""Faults of the replayed douban.php for a subject: HTTP 500, another subject's answer, an answer without facts."""

Expected = Literal["CONFIRMED", "REVIEW", "NOT_FOUND", "SYNCED", "EXCLUDED", "LOCKED", "IGNORED", "FAILED"]
"""Expected state of a video after one complete pass; see :class:`SampleVideo`."""


class _SubjectFacts(TypedDict):
    id: int
    title: str
    original_title: str
    aka: list[str]
    year: int
    regions: list[str]
    languages: list[str]
    directors: list[str]
    writers: list[str]
    actors: list[str]
    genres: list[str]
    duration_min: int | None
    episodes: int | None
    kind: Literal["movie", "tv"]
    rating: float | None
    votes: int | None
    pubdates: list[str]
    summary: str


class SampleSubject(_SubjectFacts, total=False):
    """One Douban entry, in Douban's terms (``中国大陆``, ``汉语普通话``); `duration_min` is that of one episode."""

    fault: Fault


class SampleState(TypedDict, total=False):
    """A person's decision about a video before the demo starts; stored in our own state row."""

    douban_id_locked: bool
    intro_locked: bool
    ignored: bool


class _VideoCore(TypedDict):
    vod_id: int
    type_id: int
    type_id_1: int
    vod_name: str
    age_days: float
    note: str
    expect: Expected
    expect_id: int | None


class SampleVideo(_VideoCore, total=False):
    """One row of the library: CMS columns **unescaped**, without empty ones, and data for the demo.

    Attributes:
        age_days: Days between `vod_time` and the demo's start.
        note: Why the row is included.
        expect: ``CONFIRMED``, ``REVIEW`` and ``NOT_FOUND`` are verdicts, ``REVIEW`` also if the sync refuses a wrong
            prefilled id; ``SYNCED`` had a correct id from the start; ``FAILED`` has a source with faulty answers;
            ``EXCLUDED``, ``LOCKED`` and ``IGNORED`` must not change.
        expect_id: The true subject: always for ``CONFIRMED``, ``SYNCED`` and ``FAILED``; for ``LOCKED`` the id set by a
            person; for the others only if there is one.
        state: Applied to our own state row before the first run.
    """

    vod_sub: str
    vod_year: str
    vod_area: str
    vod_lang: str
    vod_class: str
    vod_actor: str
    vod_director: str
    vod_writer: str
    vod_remarks: str
    vod_total: int
    vod_duration: str
    vod_pubdate: str
    vod_content: str
    vod_douban_id: int
    vod_douban_score: float
    state: SampleState


def load_subjects() -> list[SampleSubject]:
    """Return all subjects, by id."""
    return [cast(SampleSubject, record) for record in _lines("subjects.jsonl")]


def load_videos() -> list[SampleVideo]:
    """Return all videos, by `vod_id`."""
    return [cast(SampleVideo, record) for record in _lines("videos.jsonl")]


def cms_columns(video: SampleVideo) -> dict[str, Any]:
    """Return the part of ``video`` stored in `mac_vod`, unescaped; `vod_time` is left to the caller."""
    return {key: value for key, value in video.items() if key.startswith(("vod_", "type_"))}


def read_data(name: str) -> Any:
    """Return a file of JSON in ``demo/data``."""
    return json.loads((DATA / name).read_text(encoding="utf-8"))


def _lines(name: str) -> Iterator[dict[str, Any]]:
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        yield json.loads(line)
