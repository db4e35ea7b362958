"""Finding candidate subjects: search engines and Douban's own suggestions behind one interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Protocol

from douban_pipeline.upstream import values
from douban_pipeline.upstream.errors import SourceUnavailable
from douban_pipeline.upstream.http import Fetched, Fetcher
from douban_pipeline.upstream.payload import as_int, error_of_body, read_json
from douban_pipeline.upstream.subject_urls import SMALLEST_ID, subject_ids

EMPTY_MAX_AGE = timedelta(days=1)
"""An archived answer without any subject is believed no longer than this."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One subject a search named. What is not said is "" or None.

    Attributes:
        douban_id: The subject.
        title: Title of the result, as found.
        url: Address of the result.
        snippet: A search engine's excerpt.
        original_title: Title in the original language, where the source says it.
        year: Year, where the source says it.
        kind: ``movie`` or ``tv``, where the source says it.
        episodes: Number of episodes, where the source says it.
    """

    douban_id: int
    title: str
    url: str
    snippet: str = ""
    original_title: str = ""
    year: int | None = None
    kind: str = ""
    episodes: int | None = None


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """What one search gave. An empty answer is a good one: the source worked and found nothing.

    Attributes:
        ids: Subjects in order of appearance, each once.
        hits: The same, with what the source says of them.
        snapshot_id: The archived raw answer.
        from_cache: Whether no call was made.
        fetched_at: When the source gave it (UTC).
        silent: Engines behind the source that did not answer; the list may lack what they know.
    """

    ids: tuple[int, ...]
    hits: tuple[Hit, ...]
    snapshot_id: int
    from_cache: bool
    fetched_at: datetime
    silent: tuple[str, ...] = ()


class SearchProvider(Protocol):
    """A way to find subjects."""

    @property
    def name(self) -> str:
        """Name of the provider, and of its source at the gate and in the archive."""
        ...

    @property
    def titles_only(self) -> bool:
        """Whether a query may hold nothing but a title (no year, person, ``site:`` or other words)."""
        ...

    @property
    def page_size(self) -> int:
        """Hits of a full answer: where there are as many, there may be more."""
        ...

    def search(self, query: str, *, cache_key: str, max_age: timedelta | None, form: str = "") -> SearchAnswer:
        """Search once.

        Args:
            query: What to search for.
            cache_key: What the search is about: normalised title and year.
            max_age: Oldest archived answer to accept instead of a call; None always calls.
            form: Name of the query's form (``plain``, ``site`` …). Videos that share ``cache_key`` and ``form``
                share an answer, however their titles are spelt. Without it only the same query text does; leave
                it out for queries that hold more than title and year.

        Raises:
            SourceError: Of the kind that fits; see `upstream.errors`.
        """
        ...


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed answer before it is joined with its snapshot."""

    hits: tuple[Hit, ...]
    silent: tuple[str, ...] = ()


class HttpSearch(ABC):
    """A provider that answers one GET request; each kind is a subclass that says how to ask and to read.

    Args:
        fetcher: A fetcher whose source is the provider's name.
        url: Address of the interface; query parameters it has are kept.
    """

    name: ClassVar[str]
    parser_version: ClassVar[str]
    titles_only: ClassVar[bool] = False
    page_size: ClassVar[int] = 10
    hints: ClassVar[Mapping[int, str]] = {}
    """What an HTTP status means at this provider, for people."""

    def __init__(self, fetcher: Fetcher, url: str) -> None:
        self._fetcher = fetcher
        self._url = url

    def params(self, query: str) -> dict[str, str]:
        """Return the query parameters to ask with."""
        return {"q": query}

    @abstractmethod
    def parse(self, body: bytes) -> Parsed:
        """Read one raw answer; raises a `SourceError` when it is none."""

    def search(self, query: str, *, cache_key: str, max_age: timedelta | None, form: str = "") -> SearchAnswer:
        """See `SearchProvider.search`."""
        key = f"search:{form or query}:{cache_key}"
        fetched = self._cached(key, max_age) or self._fetcher.get(
            self._url,
            self.params(query),
            key=key,
            parser_version=self.parser_version,
            parse=self.parse,
            hints=self.hints,
        )
        hits = fetched.value.hits
        return SearchAnswer(
            ids=tuple(hit.douban_id for hit in hits),
            hits=hits,
            snapshot_id=fetched.snapshot_id,
            from_cache=fetched.from_cache,
            fetched_at=fetched.fetched_at,
            silent=fetched.value.silent,
        )

    def _cached(self, key: str, max_age: timedelta | None) -> Fetched[Parsed] | None:
        found = self._fetcher.cached(key, max_age, self.parse)
        if found is None or found.value.hits or max_age is None or max_age <= EMPTY_MAX_AGE:
            return found
        return self._fetcher.cached(key, EMPTY_MAX_AGE, self.parse)


def parse_searxng(body: bytes) -> Parsed:
    """Read one raw answer of SearXNG.

    Raises:
        SourceUnavailable: It is no answer, or no engine behind it answered.
        SourceWall: It is a login or captcha page.
    """
    source = "searxng"
    answer = read_json(source, body)
    results = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(results, list):
        raise SourceUnavailable(source, "an answer without `results`")
    hits = []
    usable = [item for item in results if isinstance(item, dict) and isinstance(item.get("url"), str)]
    if results and not usable:
        raise SourceUnavailable(source, "results without addresses")
    for result in usable:
        for douban_id in subject_ids(result["url"]):
            hits.append(
                Hit(
                    douban_id,
                    title=values.clean(result.get("title")),
                    url=result["url"],
                    snippet=values.clean(result.get("content")),
                )
            )
    silent = _engines(answer.get("unresponsive_engines"))
    if silent and not results:
        raise SourceUnavailable(source, f"no engine answered: {', '.join(silent)}"[:300])
    return Parsed(_once(hits), silent)


def parse_suggestions(body: bytes) -> Parsed:
    """Read one raw answer of Douban's suggestions.

    Raises:
        SourceError: It is no list of suggestions.
    """
    source = "douban_suggest"
    answer = read_json(source, body)
    if isinstance(answer, dict):
        error = error_of_body(source, answer.get("code"), answer.get("msg", answer.get("message")))
        # A search has no subject that could be missing: whatever the body says, the interface is ill.
        raise error if not error.healthy else SourceUnavailable(source, error.reason)
    if not isinstance(answer, list):
        raise SourceUnavailable(source, "an answer that is no list")
    hits = []
    usable = [item for item in answer if isinstance(item, dict) and "id" in item]
    if answer and not usable:
        raise SourceUnavailable(source, "suggestions without ids")
    for item in usable:
        if item.get("type", "movie") not in ("movie", "tv"):
            continue
        url = item["url"] if isinstance(item.get("url"), str) else ""
        douban_id = as_int(item.get("id")) or next(iter(subject_ids(url)), 0)
        if douban_id < SMALLEST_ID:
            continue
        episodes = values.count(item.get("episode"))
        hits.append(
            Hit(
                douban_id,
                title=values.clean(item.get("title")),
                url=url or f"https://movie.douban.com/subject/{douban_id}/",
                original_title=values.clean(item.get("sub_title")),
                year=values.year(item.get("year")),
                # Douban says "movie" of series too, but names episodes only for them.
                kind="tv" if item.get("type") == "tv" or episodes else "",
                episodes=episodes,
            )
        )
    return Parsed(_once(hits))


class SearxngProvider(HttpSearch):
    """A SearXNG instance through its JSON interface; the address is the instance's ``/search``."""

    name = "searxng"
    parser_version = "searxng-1"
    hints: ClassVar[Mapping[int, str]] = {403: "is json among search.formats in the instance's settings.yml?"}

    def params(self, query: str) -> dict[str, str]:
        """Ask for JSON, which an instance must allow in its settings."""
        return {"q": query, "format": "json"}

    def parse(self, body: bytes) -> Parsed:
        """See `parse_searxng`."""
        return parse_searxng(body)


class DoubanSuggestProvider(HttpSearch):
    """Douban's own title suggestions (``movie.douban.com/j/subject_suggest``); they know titles only."""

    name = "douban_suggest"
    parser_version = "douban_suggest-1"
    titles_only = True

    def parse(self, body: bytes) -> Parsed:
        """See `parse_suggestions`."""
        return parse_suggestions(body)


PROVIDERS: dict[str, Callable[[Fetcher, str], SearchProvider]] = {
    SearxngProvider.name: SearxngProvider,
    DoubanSuggestProvider.name: DoubanSuggestProvider,
}
"""Every provider by name. A new one is a class here and a line in this table."""


def search_provider(name: str, url: str, fetcher: Callable[[str], Fetcher]) -> SearchProvider:
    """Return the provider called ``name``.

    Args:
        name: One of `PROVIDERS`.
        url: Its address.
        fetcher: Makes a fetcher for a source's name, which is the provider's.

    Raises:
        ValueError: There is no such provider.
    """
    if name not in PROVIDERS:
        raise ValueError(f"no search provider {name!r}; there are {', '.join(sorted(PROVIDERS))}")
    return PROVIDERS[name](fetcher(name), url)


def _engines(value: Any) -> tuple[str, ...]:
    """Read ``[["bing", "CAPTCHA"], …]`` or ``["bing", …]``."""
    if not isinstance(value, list):
        return ()
    items = [item if isinstance(item, list) else [item] for item in value]
    return tuple(": ".join(values.clean(part) for part in item) for item in items)


def _once(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    first: dict[int, Hit] = {}
    for hit in hits:
        first.setdefault(hit.douban_id, hit)
    return tuple(first.values())
