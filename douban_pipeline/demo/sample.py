"""The bundled sample: Douban subjects, and a small library that wants to be matched to them.

Two files of JSON lines in ``demo/data`` (where the facts come from is listed in ``SOURCES.md`` beside them). Every
video says why it is there and what should become of it, so that the demo and the tests can be checked against it.
"""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from typing import Any, Literal, TypedDict, cast, get_args

from douban_pipeline.demo.cms_schema import VOD_COLUMNS

Fault = Literal["server_error", "wrong_id", "empty"]
"""How the replayed douban.php misbehaves for a subject: HTTP 500, another subject's answer, an answer without facts."""

Expected = Literal["CONFIRMED", "REVIEW", "NOT_FOUND", "SYNCED", "EXCLUDED", "LOCKED", "IGNORED", "FAILED"]
"""Where a video should be after one whole pass; see :class:`SampleVideo`."""

SHARDS = 64
INVENTED_IDS = range(90_000_001, 90_010_000)
"""Ids of subjects whose real id was not known for certain."""

CONSTANT_WRONG_ID = 36427183
"""The id that some public converters write into every record; its subject in the sample is a stand-in."""

_NEEDS_SUBJECT = frozenset({"CONFIRMED", "SYNCED", "FAILED"})
_SUBJECT_LISTS = ("aka", "regions", "languages", "directors", "writers", "actors", "genres", "pubdates")
_SUBJECT_TEXTS = ("title", "original_title", "summary")


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
    """One Douban entry, in Douban's own words (``中国大陆``, ``汉语普通话``); `duration_min` is that of one episode."""

    fault: Fault


class SampleState(TypedDict, total=False):
    """What a person decided about a video before the demo starts; goes to our own state row."""

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
    """One row of the library: CMS columns **unescaped**, empty ones left out, and what the demo needs to know.

    Attributes:
        age_days: Days before the demo's start at which `vod_time` lies.
        note: Why the row is there.
        expect: ``CONFIRMED``, ``REVIEW`` and ``NOT_FOUND`` are verdicts, ``REVIEW`` also where the sync refuses a
            wrong prefilled id; ``SYNCED`` had a right id from the start; ``FAILED`` has a source that answers badly;
            ``EXCLUDED``, ``LOCKED`` and ``IGNORED`` must stay as they are.
        expect_id: The true subject: always for ``CONFIRMED``, ``SYNCED`` and ``FAILED``, for ``LOCKED`` the id a
            person fixed, for the others only where there is one.
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
    """Return the part of ``video`` that is kept in `mac_vod`, still unescaped; `vod_time` is left to the caller."""
    return {key: value for key, value in video.items() if key.startswith(("vod_", "type_"))}


def validate(subjects: Sequence[SampleSubject], videos: Sequence[SampleVideo]) -> list[str]:
    """Return everything that is wrong with the sample, one sentence each; empty when it is sound.

    Checked: keys and their types, unique ids, expectations that can be met, prefilled ids, text that a utf8mb3 column
    can hold, and columns that are not cut (maccms 10 cuts after escaping).
    """
    by_id = {subject["id"]: subject for subject in subjects}
    return [
        *_repeated("subject", (subject["id"] for subject in subjects)),
        *_repeated("video", (video["vod_id"] for video in videos)),
        *(problem for subject in subjects for problem in _subject_problems(subject)),
        *(problem for video in videos for problem in _video_problems(video, by_id)),
    ]


def _lines(name: str) -> Iterator[dict[str, Any]]:
    text = resources.files("douban_pipeline.demo").joinpath("data", name).read_text(encoding="utf-8")
    for line in text.splitlines():
        yield json.loads(line)


def _repeated(what: str, ids: Iterable[int]) -> Iterator[str]:
    return (f"{what} {number}: the id is there {times} times" for number, times in Counter(ids).items() if times > 1)


def _subject_problems(subject: SampleSubject) -> Iterator[str]:
    name = f"subject {subject.get('id')}"
    yield from _key_problems(name, subject, SampleSubject)
    if SampleSubject.__required_keys__ - subject.keys():
        return
    for key in _SUBJECT_LISTS:
        items: Any = subject[key]  # type: ignore[literal-required]
        if not isinstance(items, list) or not all(isinstance(item, str) and item.strip() for item in items):
            yield f"{name}: {key} must be a list of non-empty texts"
        elif len(set(items)) < len(items):
            yield f"{name}: {key} repeats an item"
    if not subject["title"]:
        yield f"{name}: no title"
    if subject["kind"] not in ("movie", "tv"):
        yield f"{name}: kind must be movie or tv"
    if not 1900 <= subject["year"] <= 2030:
        yield f"{name}: year {subject['year']} is none"
    if not 10_000 <= subject["id"] < 100_000_000:
        yield f"{name}: Douban has no such ids"
    fault = subject.get("fault")
    if fault is not None and fault not in get_args(Fault):
        yield f"{name}: fault {fault} is none of {', '.join(get_args(Fault))}"
    for key in (*_SUBJECT_TEXTS, *_SUBJECT_LISTS):
        value: Any = subject[key]  # type: ignore[literal-required]
        yield from _text_problems(f"{name}: {key}", value if isinstance(value, str) else "".join(map(str, value)))


def _video_problems(video: SampleVideo, subjects: Mapping[int, SampleSubject]) -> Iterator[str]:
    name = f"video {video.get('vod_id')}"
    yield from _key_problems(name, video, SampleVideo)
    if SampleVideo.__required_keys__ - video.keys():
        return
    if video["vod_id"] <= 0 or not video["vod_name"].strip():
        yield f"{name}: needs an id above 0 and a name"
    if not video["note"]:
        yield f"{name}: does not say why it is there"
    if video["age_days"] < 0:
        yield f"{name}: age_days must not be negative"
    yield from _column_problems(name, video)
    yield from _expectation_problems(name, video, subjects)


def _column_problems(name: str, video: SampleVideo) -> Iterator[str]:
    widths = {column.name: column.width for column in VOD_COLUMNS}
    for key, value in cms_columns(video).items():
        if key not in widths:
            yield f"{name}: the CMS has no column {key}"
        elif isinstance(value, str):
            yield from _text_problems(f"{name}: {key}", value)
            width = widths[key]
            if width and len(html.escape(value, quote=True)) > width:
                yield f"{name}: {key} is wider than {width} characters once escaped"


def _expectation_problems(name: str, video: SampleVideo, subjects: Mapping[int, SampleSubject]) -> Iterator[str]:
    expect, expected, prefilled = video["expect"], video["expect_id"], video.get("vod_douban_id", 0)
    state = video.get("state", {})
    if expect not in get_args(Expected):
        yield f"{name}: expect {expect} is none of {', '.join(get_args(Expected))}"
    if expected is None and expect in _NEEDS_SUBJECT:
        yield f"{name}: {expect} needs an expect_id"
    if expected is not None and expected not in subjects:
        yield f"{name}: expect_id {expected} is no subject"
    if prefilled and prefilled not in subjects:
        yield f"{name}: vod_douban_id {prefilled} is no subject"
    if expect in ("SYNCED", "LOCKED") and prefilled != (expected or 0):
        yield f"{name}: {expect} needs its expect_id in vod_douban_id"
    if expect in ("CONFIRMED", "NOT_FOUND") and prefilled:
        yield f"{name}: {expect} must be found by matching, so its vod_douban_id must be empty"
    faulty = expected is not None and "fault" in subjects.get(expected, {})
    if faulty != (expect == "FAILED"):
        yield f"{name}: FAILED and a fault of the subject belong together"
    if state.get("douban_id_locked", False) != (expect == "LOCKED"):
        yield f"{name}: LOCKED and a locked id belong together"
    if state.get("ignored", False) != (expect == "IGNORED"):
        yield f"{name}: IGNORED and the ignored state belong together"


def _key_problems(name: str, record: Mapping[str, Any], form: Any) -> Iterator[str]:
    if missing := sorted(form.__required_keys__ - record.keys()):
        yield f"{name}: lacks {', '.join(missing)}"
    if unknown := sorted(record.keys() - form.__annotations__.keys()):
        yield f"{name}: has unknown {', '.join(unknown)}"


def _text_problems(name: str, text: str) -> Iterator[str]:
    if any(ord(character) > 0xFFFF for character in text):
        yield f"{name}: holds a character that utf8mb3 cannot"
