"""The CMS's ``douban.php`` interface: one subject by its id, asked as ``URL?id=SUBJECT``.

Many scripts speak it, official and private; all agree on ``vod_*`` fields, few on anything else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from douban_pipeline.core.errors import SourceUnavailable
from douban_pipeline.core.http_answers import Call
from douban_pipeline.core.payload import as_int
from douban_pipeline.douban.sources import answer_values as values
from douban_pipeline.douban.sources.errors import SubjectMismatch, SubjectMissing, error_of_body, read_json
from douban_pipeline.douban.sources.subject_urls import SMALLEST_ID, subject_ids

if TYPE_CHECKING:
    from douban_pipeline.core.http import FetchedAnswer, Fetcher

SOURCE = "douban"
PARSER_VERSION = "douban-3"
"""Raise it whenever `parse_subject` comes to read an answer differently; `reparse_archive` goes by it."""

_KEY = "subject:"
_GOOD_CODES = (None, 0, 1, 200)


@dataclass(frozen=True, slots=True)
class SubjectRecord:
    """One Douban entry as the source gave it: plain text, lists split, placeholders dropped.

    Missing is None, "" or (). ``release_dates`` are raw (``2018-05-11(中国大陆)``); ``rating`` is on Douban's scale of
    10, ``votes`` how many people gave one. ``url`` is the page that the answer names as its source; ``state`` and
    ``author`` are what it has for the CMS's columns. ``id_confirmed`` is False when the answer did not say which
    subject it is about.
    """

    douban_id: int
    title: str
    original_title: str = ""
    aliases: tuple[str, ...] = ()
    year: int | None = None
    release_dates: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    genres: tuple[str, ...] = ()
    directors: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    duration_minutes: int | None = None
    episodes: int | None = None
    rating: float | None = None
    votes: int | None = None
    summary: str = ""
    picture: str = ""
    tags: tuple[str, ...] = ()
    state: str = ""
    author: str = ""
    url: str = ""
    id_confirmed: bool = False


@dataclass(frozen=True, slots=True)
class SubjectAnswer:
    """A subject, and where it is kept.

    Attributes:
        record: The parsed subject.
        snapshot_id: The archived answer it was parsed from.
        from_cache: Whether no call was made.
        fetched_at: When the source gave the answer (UTC).
    """

    record: SubjectRecord
    snapshot_id: int
    from_cache: bool
    fetched_at: datetime


class DoubanClient:
    """Subjects by id.

    Args:
        fetcher: A fetcher of source ``douban``.
        url: Address of the interface; query parameters it has are kept.
    """

    def __init__(self, fetcher: Fetcher, url: str) -> None:
        self._fetcher = fetcher
        self._url = url

    def subject(self, douban_id: int, *, max_age: timedelta | None, urgent: bool = False) -> SubjectAnswer:
        """Return one subject.

        Args:
            douban_id: Its id; below 10000 there is none, and nobody is asked.
            max_age: Oldest archived answer to accept instead of a call; None always calls.
            urgent: Whether a person waits for it: a call goes before all that automation queued at the gate.

        Raises:
            SubjectMissing: The source says that there is no such subject, or the id is below 10000.
            SubjectMismatch: The answer is about another subject.
            SourceError: Any other kind in `core.errors`.
        """
        if douban_id < SMALLEST_ID:
            # Sites have such ids in their rows.
            raise SubjectMissing(SOURCE, f"{douban_id} is no Douban id: they start at {SMALLEST_ID}")
        parse = partial(parse_subject, asked_id=douban_id)
        return self.archived(douban_id, max_age=max_age) or _answer(
            self._fetcher.get(
                self._url,
                {"id": str(douban_id)},
                Call(key=subject_key(douban_id), parser_version=PARSER_VERSION, parse=parse, urgent=urgent),
            )
        )

    def archived(self, douban_id: int, *, max_age: timedelta | None) -> SubjectAnswer | None:
        """Return one subject as the archive has it, without a call; None where it has none that is young enough.

        Raises:
            SubjectMissing: The source said not long ago that there is no such subject.
        """
        fetched = self._fetcher.cached(subject_key(douban_id), max_age, partial(parse_subject, asked_id=douban_id))
        return _answer(fetched) if fetched is not None else None


def subject_key(douban_id: int) -> str:
    """Return the archive's key of answers about a subject."""
    return f"{_KEY}{douban_id}"


def id_of_key(key: str) -> int | None:
    """Return the subject that an archived answer is about, None for a key that is not of `subject_key`."""
    number = key.removeprefix(_KEY)
    return int(number) if number != key and number.isdecimal() else None


def _answer(fetched: FetchedAnswer[SubjectRecord]) -> SubjectAnswer:
    return SubjectAnswer(fetched.value, fetched.snapshot_id, fetched.from_cache, fetched.fetched_at)


def parse_subject(body: bytes, asked_id: int, *, compared_only: bool = False) -> SubjectRecord:
    """Read one raw answer, as it came or from the archive.

    Args:
        body: JSON or JSONP, with the envelope ``{code, msg, data}`` or without.
        asked_id: The id that was asked for.
        compared_only: Whether to leave empty what the matcher compares with nothing: synopsis, writers, picture, tags,
            state, author, address. That is a third of the work.

    Raises:
        SourceWall: A login or captcha page, or an error body that says so.
        SourceThrottled: An error body that asks to slow down.
        SubjectMissing: An error body that says that the subject does not exist.
        SubjectMismatch: The answer names another subject.
        SourceUnavailable: Anything else that is no subject.
    """
    data = _data(read_json(SOURCE, body))
    confirmed = _confirm_id(data, asked_id)
    title = values.text(data.get("vod_name"))  # films called 未知 or 无 exist
    if not title:
        raise SourceUnavailable(SOURCE, "an answer without a title")
    original_title = values.clean(data.get("vod_original_title")) or _english_title(data.get("vod_behind"))
    aliases = values.titles(data.get("vod_sub"))
    # Never `vod_score`: widespread scripts fill it with random numbers.
    rating = values.rating(data.get("vod_douban_score"))
    return SubjectRecord(
        douban_id=asked_id,
        title=title,
        original_title="" if original_title == title else original_title,
        aliases=tuple(alias for alias in aliases if alias not in (title, original_title)),
        year=values.year(data.get("vod_year")),
        release_dates=values.names(data.get("vod_pubdate")),
        regions=values.names(data.get("vod_area")),
        languages=values.names(data.get("vod_lang")),
        genres=values.names(data.get("vod_class")),
        directors=values.people(data.get("vod_director")),
        actors=values.people(data.get("vod_actor")),
        duration_minutes=values.minutes(data.get("vod_duration")),
        episodes=values.count(data.get("vod_total")),
        rating=rating,
        votes=_votes(data) if rating is not None else None,
        id_confirmed=confirmed,
        **({} if compared_only else _not_compared(data)),
    )


def _not_compared(data: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that are written or shown, but not compared."""
    return {
        "writers": values.people(data.get("vod_writer")),
        "summary": values.clean(data.get("vod_content"), keep_lines=True),
        "picture": _address(data.get("vod_pic")),
        "tags": values.names(data.get("vod_tag")),
        "state": values.clean(data.get("vod_state")),
        "author": values.clean(data.get("vod_author")),
        "url": _address(data.get("vod_reurl")),
    }


def _data(answer: Any) -> dict[str, Any]:
    """Take the subject's fields out of their envelope, or raise the error that is in it."""
    if not isinstance(answer, dict):
        raise SourceUnavailable(SOURCE, f"a JSON {type(answer).__name__} in place of a subject")
    data = answer.get("data")
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    if not isinstance(data, dict) and values.text(answer.get("vod_name")):
        data = answer  # the form without an envelope
    code = answer.get("code", answer.get("status"))
    number = as_int(code)
    if number in _GOOD_CODES and (code is None or number is not None) and isinstance(data, dict) and data:
        return data
    raise error_of_body(SOURCE, code, answer.get("msg", answer.get("message", answer.get("error"))))


def _confirm_id(data: dict[str, Any], asked_id: int) -> bool:
    """Return whether the answer names the subject that was asked for; raise if it names another."""
    named = {
        number
        for field in ("vod_douban_id", "douban_id")
        if (number := as_int(data.get(field))) is not None and number > 0
    }
    url = data.get("vod_reurl")
    if isinstance(url, str):
        named.update(subject_ids(url))
    if named - {asked_id}:
        raise SubjectMismatch(SOURCE, f"asked for {asked_id}, answered {sorted(named - {asked_id})[0]}")
    return bool(named)


def _votes(data: dict[str, Any]) -> int | None:
    """Return how many people rated: what the CMS's form reads, else what answers in Douban's own shape say.

    Scripts make numbers up, most of them where Douban has no rating: those are not asked for. A made-up one beside a
    rating cannot be told, so that nothing may rest on it.
    """
    rating = data.get("rating")
    own = [rating.get(name) for name in ("count", "numRaters")] if isinstance(rating, dict) else []
    found = [values.votes(value) for value in (data.get("vod_score_num"), *own, data.get("ratings_count"))]
    return next((number for number in found if number is not None), None)


def _english_title(value: object) -> str:
    """Read ``vod_behind``, where one widespread script puts the English title and others a note."""
    text = values.clean(value)
    return text if re.fullmatch(r"(?=.*[A-Za-z])(?!.*://)[ -~]{1,80}", text) else ""


def _address(value: object) -> str:
    text = values.clean(value)
    return text if re.fullmatch(r"(?:https?:)?//[^\s\"'<>\\]+", text) else ""
