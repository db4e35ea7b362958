"""The API of TMDB, version 3: searches, discovery, details, changes, lists of ids.

Every call passes the gate, is bounded in time and size, and is retried if that is useful (no connection, 5xx, 429 with
Retry-After). Details are requested with the credits appended, so that one request returns everything the graph needs.
Nothing is stored here.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlencode

from douban_pipeline.core.errors import SourceUnavailable
from douban_pipeline.core.gate_types import Outlook
from douban_pipeline.core.http import Fetcher
from douban_pipeline.core.http_answers import Call
from douban_pipeline.tmdb.answers import TmdbRequest, language_of
from douban_pipeline.tmdb.clients.errors import RequestRefused, SchemaChanged, read_answer_body
from douban_pipeline.tmdb.store.entities import EntityAnswer
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline.tmdb.values import id_of, items_of

SOURCE = "tmdb"
"""Name at the gate and in the archive."""
EXPORTS_URL = "https://files.tmdb.org/p/exports"
"""Folder of the daily lists of ids."""
EXPORTS = "tmdb_exports"
"""Name of the id lists, which another host serves."""
PARSER_VERSION = "tmdb-1"
MOST_APPENDED = 20
"""Maximum number of appended sub-requests per request (error 27 beyond)."""
MOST_PAGES = 500
LONGEST_CHANGES = timedelta(days=14)
"""Maximum time span of one request for changes."""
APPENDED: Mapping[EntityType, tuple[str, ...]] = {
    EntityType.MOVIE: ("credits", "external_ids", "alternative_titles", "translations"),
    EntityType.PERSON: ("combined_credits", "external_ids"),
    EntityType.TV: ("credits", "aggregate_credits", "external_ids", "alternative_titles", "translations"),
}
"""Parts requested with an entity: the first ones for the graph, the others for people and the matcher."""
_NEEDED = {EntityType.MOVIE: "credits", EntityType.PERSON: "combined_credits", EntityType.TV: "aggregate_credits"}
_EXPORT_NAMES = {EntityType.MOVIE: "movie_ids", EntityType.PERSON: "person_ids", EntityType.TV: "tv_series_ids"}
_GZIP = b"\x1f\x8b"
_KEYS = "DOUBAN_PIPELINE_TMDB_API_KEY"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list.

    Attributes:
        raw: TMDB's answer, with ``page`` and ``total_pages``.
        fetched_at: When TMDB sent it (UTC).
    """

    request: TmdbRequest
    raw: Mapping[str, Any]
    results: Sequence[Mapping[str, Any]]
    fetched_at: datetime

    @property
    def total_pages(self) -> int:
        """The number of pages that can be requested."""
        found = self.raw.get("total_pages")
        return min(found, MOST_PAGES) if isinstance(found, int) and found > 0 else 1


class TmdbClient:
    """Client of TMDB. Safe to share between threads.

    Args:
        fetcher: Fetcher of the source `SOURCE`, with `errors.RULES`.
        exports: Fetcher of the source `EXPORTS`, for id lists; None if they are not used.
        api_key: Key of version 3; empty if ``fetcher`` sends a token as a header.
        language: Language of answers, unless a call names another.
        search_age: Maximum age of an archived search answer that replaces a call; None uses none.
        urgent: Whether people wait for the answers.
        archived: Whether answers of searches and lists are archived; those about entities are kept in the store.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        exports: Fetcher | None,
        *,
        api_url: str,
        exports_url: str = "",
        api_key: str = "",
        language: str = "zh-CN",
        search_age: timedelta | None = None,
        urgent: bool = False,
        archived: bool = True,
    ) -> None:
        self._fetcher = fetcher
        self._exports = exports
        self._url = api_url.rstrip("/")
        self._exports_url = exports_url.rstrip("/")
        self._key = {"api_key": api_key} if api_key else {}
        self.language = language
        self._search_age = search_age
        self._urgent = urgent
        self._archived = archived

    # --- lists --------------------------------------------------------------------------------------------------------

    def search_multi(
        self,
        query: str,
        *,
        language: str | None = None,
        page: int = 1,
        include_adult: bool = False,
        follows: bool = False,
    ) -> Page:
        """Return the films, series and people with a name; ``follows`` as in `details`."""
        more = {"query": query, "include_adult": str(include_adult).lower(), "page": str(page)}
        return self._list("/search/multi", more, language, self._search_age, follows=follows)

    def search(
        self, entity: EntityType, query: str, *, language: str | None = None, page: int = 1, **filters: str
    ) -> Page:
        """Return the entities of one type with a name; ``filters`` are TMDB's, such as ``primary_release_year``."""
        more = {"query": query, "include_adult": "false", "page": str(page), **filters}
        return self._list(f"/search/{entity.value}", more, language, self._search_age)

    def discover_movie(self, *, language: str | None = None, page: int = 1, **filters: str) -> Page:
        """Return films by TMDB's ``filters``; a dot in a filter's name is written as ``__``."""
        return self._discover(EntityType.MOVIE, language, page, filters)

    def discover_tv(self, *, language: str | None = None, page: int = 1, **filters: str) -> Page:
        """Return series by ``filters``; see `discover_movie`."""
        return self._discover(EntityType.TV, language, page, filters)

    def _discover(self, entity: EntityType, language: str | None, page: int, filters: Mapping[str, str]) -> Page:
        more = {name.replace("__", "."): value for name, value in filters.items()}
        more = {"include_adult": "false", "page": str(page), **more}
        return self._list(f"/discover/{entity.value}", more, language, self._search_age)

    def changed_ids(self, entity: EntityType, start: date, end: date) -> Iterator[int]:
        """Yield the ids of entities changed from ``start`` to ``end``, both included, each id once.

        TMDB answers for at most 14 days: longer spans are requested in several windows, page by page.
        """
        seen: set[int] = set()
        while start <= end:
            last = min(end, start + LONGEST_CHANGES)
            for tmdb_id in self._changed(entity, start, last):
                if tmdb_id not in seen:
                    seen.add(tmdb_id)
                    yield tmdb_id
            start = last + timedelta(days=1)

    def _changed(self, entity: EntityType, start: date, end: date) -> Iterator[int]:
        """Yield the ids of one window, with duplicates; a window with too many pages is halved."""
        number, pages = 1, 1
        while number <= pages:
            more = {"start_date": f"{start:%F}", "end_date": f"{end:%F}", "page": str(number)}
            page = self._list(f"/{entity.value}/changes", more, "", None)
            if page.raw.get("total_pages", 1) > MOST_PAGES and start < end:
                middle = start + (end - start) // 2
                yield from self._changed(entity, start, middle)
                yield from self._changed(entity, middle + timedelta(days=1), end)
                return
            pages = page.total_pages
            yield from (tmdb_id for item in page.results if (tmdb_id := id_of(item.get("id"))) is not None)
            number += 1

    # --- single things ------------------------------------------------------------------------------------------------

    def details(
        self,
        key: EntityKey,
        *,
        language: str | None = None,
        append: Sequence[str] | None = None,
        follows: bool = False,
    ) -> EntityAnswer:
        """Return the details of an entity, with its credits.

        Args:
            append: Parts to append instead of `APPENDED`.
            follows: Whether it ends what earlier calls began: where people wait, it goes before calls that begin.

        Raises:
            NotFound: TMDB does not have it (any more).
            SchemaChanged: The answer is about another entity, or without its credits.
            RequestRefused: More than 20 things to append.
            SourceError: The matching subclass; see `core.errors` and `clients.errors`.
        """
        wanted = tuple(APPENDED[key.type] if append is None else append)
        if len(wanted) > MOST_APPENDED:
            raise RequestRefused(SOURCE, f"{len(wanted)} things to append; at most {MOST_APPENDED} (27)")
        spoken = language_of(language) or self.language
        query = {"language": spoken, **({"append_to_response": ",".join(wanted)} if wanted else {})}
        if "images" in wanted:
            query["include_image_language"] = f"{spoken[:2]},null"

        def read(value: Any) -> Mapping[str, Any]:
            if not isinstance(value, Mapping) or id_of(value.get("id")) != key.tmdb_id:
                raise SchemaChanged(SOURCE, f"an answer that is not about {key}")
            needed = _NEEDED[key.type]
            if needed in wanted and not isinstance(value.get(needed), Mapping):
                raise SchemaChanged(SOURCE, f"an answer about {key} without its {needed}")
            return value

        path = f"/{key.type.value}/{key.tmdb_id}"
        raw, fetched_at = self._get(path, query, read, archived=False, follows=follows)
        return EntityAnswer(key.type, raw, spoken, fetched_at)

    def movie(self, tmdb_id: int, *, language: str | None = None, append: Sequence[str] | None = None) -> EntityAnswer:
        """Return a film; see `details`."""
        return self.details(EntityKey(EntityType.MOVIE, tmdb_id), language=language, append=append)

    def person(self, tmdb_id: int, *, language: str | None = None, append: Sequence[str] | None = None) -> EntityAnswer:
        """Return a person; see `details`."""
        return self.details(EntityKey(EntityType.PERSON, tmdb_id), language=language, append=append)

    def tv(self, tmdb_id: int, *, language: str | None = None, append: Sequence[str] | None = None) -> EntityAnswer:
        """Return a series; see `details`."""
        return self.details(EntityKey(EntityType.TV, tmdb_id), language=language, append=append)

    def translations(self, key: EntityKey) -> tuple[Mapping[str, Any], datetime]:
        """Return an entity's names and texts in all languages, and when TMDB sent them."""

        def read(value: Any) -> Mapping[str, Any]:
            if not isinstance(value, Mapping) or not isinstance(value.get("translations"), list):
                raise SchemaChanged(SOURCE, "translations without a list of them")
            return value

        return self._get(f"/{key.type.value}/{key.tmdb_id}/translations", {}, read, archived=False)

    def find(self, external_id: str, *, source: str = "imdb_id", language: str | None = None) -> list[EntityKey]:
        """Return the films, series and people to which another site's id (IMDb, TVDB, Wikidata, …) belongs."""

        def read(value: Any) -> Mapping[str, Any]:
            if not isinstance(value, Mapping) or "movie_results" not in value:
                raise SchemaChanged(SOURCE, "an answer of find without movie_results")
            return value

        query = {"external_source": source, "language": language_of(language) or self.language}
        raw, _ = self._get(f"/find/{_segment(external_id)}", query, read)
        return [
            EntityKey(entity, tmdb_id)
            for entity in EntityType
            for item in items_of(raw, f"{entity.value}_results")
            if (tmdb_id := id_of(item.get("id"))) is not None
        ]

    def configuration(self) -> Mapping[str, Any]:
        """Return address and sizes of pictures; valid for days."""

        def read(value: Any) -> Mapping[str, Any]:
            if not isinstance(value, Mapping) or not isinstance(value.get("images"), Mapping):
                raise SchemaChanged(SOURCE, "a configuration without images")
            return value

        return self._get("/configuration", {}, read, age=timedelta(days=3))[0]

    def exported_ids(self, entity: EntityType, day: date) -> Iterator[bytes]:
        """Yield the lines of a day's id list: one JSON object per line, as expected by `store.exports`.

        Raises:
            SourceError: The matching subclass; see `core.errors`. A day's list exists from 08:00 UTC, for three months;
                lines yielded before a truncated end are valid.
        """
        if self._exports is None:
            raise SourceUnavailable(EXPORTS, "this client has no fetcher for lists")
        name = f"{_EXPORT_NAMES[entity]}_{day:%m_%d_%Y}.json.gz"
        hints = {403: "TMDB keeps these lists for three months, and makes them at 08:00 UTC"}
        answer = self._exports.get(
            f"{self._exports_url}/{name}",
            {},
            Call(key=name, parser_version=PARSER_VERSION, parse=_packed, hints=hints, archived=False),
        )
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(answer.value)) as file:
                yield from file
        except (OSError, EOFError, zlib.error) as error:
            raise SourceUnavailable(EXPORTS, f"a truncated list ({type(error).__name__})") from error

    # --- asking -------------------------------------------------------------------------------------------------------

    def outlook(self) -> Outlook:
        """Return what a call that joined the queue at the gate now could expect."""
        return self._fetcher.outlook()

    def _list(
        self,
        path: str,
        query: Mapping[str, str],
        language: str | None,
        age: timedelta | None,
        *,
        follows: bool = False,
    ) -> Page:
        if not 1 <= int(query["page"]) <= MOST_PAGES:
            raise RequestRefused(SOURCE, f"page {query['page']}; from 1 to {MOST_PAGES}")
        if language != "":
            query = {**query, "language": language_of(language) or self.language}

        def read(value: Any) -> Mapping[str, Any]:
            if not isinstance(value, Mapping) or not isinstance(value.get("results"), list):
                raise SchemaChanged(SOURCE, f"an answer of {path} without a list of results")
            return value

        raw, fetched_at = self._get(path, query, read, age=age, follows=follows)
        return Page(TmdbRequest(path, query), raw, items_of(raw, "results"), fetched_at)

    def _get(
        self,
        path: str,
        query: Mapping[str, str],
        read: Callable[[Any], T],
        *,
        age: timedelta | None = None,
        archived: bool = True,
        follows: bool = False,
    ) -> tuple[T, datetime]:
        key = f"{path}?{urlencode(sorted(query.items()))}"
        parse = partial(_parsed, read=read)
        if archived and self._archived:
            known = self._fetcher.cached(key, age, parse)
            if known is not None:
                return known.value, known.fetched_at
        answer = self._fetcher.get(
            self._url + path,
            {**query, **self._key},
            Call(
                key=key,
                parser_version=PARSER_VERSION,
                parse=parse,
                urgent=self._urgent,
                follows=follows,
                archived=archived and self._archived,
            ),
        )
        return answer.value, answer.fetched_at


def _parsed(body: bytes, *, read: Callable[[Any], T]) -> T:
    return read(read_answer_body(SOURCE, body, _KEYS))


def _segment(value: str) -> str:
    """Return another site's id as one segment of a path.

    Raises:
        RequestRefused: It is not an id.
    """
    plain = value.strip()
    with suppress(UnicodeEncodeError):
        if plain and plain.encode("ascii").replace(b"-", b"").replace(b"_", b"").isalnum():
            return plain
    raise RequestRefused(SOURCE, "an external id of letters and digits is expected")


def _packed(body: bytes) -> bytes:
    if not body.startswith(_GZIP):
        raise SourceUnavailable(EXPORTS, "something other than a packed list")
    return body
