"""The search providers: SearXNG, Douban's own suggestions, and Bocha."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import httpx

from douban_pipeline.core.errors import (
    SourceError,
    SourceThrottled,
    SourceUnavailable,
    SourceUnpaid,
    SourceWall,
)
from douban_pipeline.core.http import FetchedAnswer
from douban_pipeline.core.http_answers import Call
from douban_pipeline.core.payload import as_int
from douban_pipeline.douban.sources import answer_values as values
from douban_pipeline.douban.sources.errors import error_of_body, read_json
from douban_pipeline.douban.sources.search import Hit, HttpSearch, ParsedHits, each_once
from douban_pipeline.douban.sources.subject_urls import SMALLEST_ID, subject_ids

_BOCHA_KEY_HINT = "is BOCHA_API_KEY right?"
_BOCHA_MONEY = re.compile(r"enough money|余额|欠费", re.IGNORECASE)


def parse_searxng(body: bytes) -> ParsedHits:
    """Read one raw answer of SearXNG.

    Raises:
        SourceUnavailable: It is no answer, or no engine behind it answered.
        SourceWall: It is a login or captcha page.
    """
    source = SearxngProvider.name
    answer = read_json(source, body)
    results = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(results, list):
        raise SourceUnavailable(source, "an answer without `results`")
    hits = _web_hits(source, results, title="title", snippet="content")
    silent = _engines(answer.get("unresponsive_engines"))
    if silent and not results:
        raise SourceUnavailable(source, f"no engine answered: {', '.join(silent)}"[:300])
    return ParsedHits(hits, silent)


def parse_suggestions(body: bytes) -> ParsedHits:
    """Read one raw answer of Douban's suggestions.

    Raises:
        SourceError: It is no list of suggestions.
    """
    source = DoubanSuggestProvider.name
    answer = read_json(source, body)
    if isinstance(answer, dict):
        error = error_of_body(source, answer.get("code"), answer.get("msg", answer.get("message")))
        # A search has no subject that could be missing: whatever the body says, the interface is unhealthy.
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
    return ParsedHits(each_once(hits))


def parse_bocha(body: bytes) -> ParsedHits:
    """Read one raw answer of Bocha.

    Only an answer that calls itself a search response may be empty: it then has no ``webPages``, or none in them.

    Raises:
        SourceError: It is no answer; errors come in the body too, whatever the HTTP status.
    """
    source = BochaProvider.name
    answer = read_json(source, body)
    if not isinstance(answer, dict):
        raise SourceUnavailable(source, f"a JSON {type(answer).__name__} in place of an answer")
    if as_int(answer.get("code")) != 200:
        raise _bocha_error(answer)
    data = answer.get("data")
    if not isinstance(data, dict) or data.get("_type") != "SearchResponse":
        raise SourceUnavailable(source, "an answer without a search response")
    pages = data.get("webPages")
    results = pages.get("value") if isinstance(pages, dict) else pages
    if results is None:
        return ParsedHits(())
    if not isinstance(results, list):
        raise SourceUnavailable(source, "web pages that are no list")
    return ParsedHits(_web_hits(source, results, title="name", snippet="snippet"))


class SearxngProvider(HttpSearch):
    """A SearXNG instance through its JSON interface; the address is the instance's ``/search``."""

    name = "searxng"
    parser_version = "searxng-1"

    def ask(
        self, text: str, key: str, *, found: Callable[[ParsedHits], bool], known: bool = False, urgent: bool = False
    ) -> FetchedAnswer[ParsedHits]:
        """Ask for JSON, which an instance must allow in its settings."""
        return self._fetcher.get(
            self._url,
            {"q": text, "format": "json"},
            Call(
                key=key,
                parser_version=self.parser_version,
                parse=self.parse,
                hints={403: "is json among search.formats in the instance's settings.yml?"},
                found=found,
                known=known,
                urgent=urgent,
            ),
        )

    def parse(self, body: bytes) -> ParsedHits:
        """See `parse_searxng`."""
        return parse_searxng(body)


class DoubanSuggestProvider(HttpSearch):
    """Douban's own title suggestions (``movie.douban.com/j/subject_suggest``); they know titles only."""

    name = "douban_suggest"
    parser_version = "douban_suggest-1"
    titles_only = True

    def ask(
        self, text: str, key: str, *, found: Callable[[ParsedHits], bool], known: bool = False, urgent: bool = False
    ) -> FetchedAnswer[ParsedHits]:
        """Ask for a title."""
        return self._fetcher.get(
            self._url,
            {"q": text},
            Call(
                key=key, parser_version=self.parser_version, parse=self.parse, found=found, known=known, urgent=urgent
            ),
        )

    def parse(self, body: bytes) -> ParsedHits:
        """See `parse_suggestions`."""
        return parse_suggestions(body)


class BochaProvider(HttpSearch):
    """Bocha (博查), a paid web search for Chinese sites: its Web Search API, ``POST /v1/web-search``.

    Reference: "Web Search API" on Bocha's open platform, open.bochaai.com. The fetcher sends the key as
    ``Authorization: Bearer KEY``. Every call costs, so one asks for as many pages as are of use.
    """

    name = "bocha"
    parser_version = "bocha-1"
    page_size = 20
    """Pages asked for, of 50 at most; some of them may be of one subject."""
    sites = ("movie.douban.com", "m.douban.com", "www.douban.com")
    """Where subjects have their pages: nothing else is looked at."""

    def ask(
        self, text: str, key: str, *, found: Callable[[ParsedHits], bool], known: bool = False, urgent: bool = False
    ) -> FetchedAnswer[ParsedHits]:
        """Search pages of Douban. The sites are a parameter here, not words of the query."""
        payload = {
            "query": " ".join(word for word in text.split() if not word.startswith("site:")),
            "freshness": "noLimit",
            "summary": False,
            "include": "|".join(self.sites),
            "count": self.page_size,
        }
        return self._fetcher.post(
            self._url,
            payload,
            Call(
                key=key,
                parser_version=self.parser_version,
                parse=self.parse,
                hints={401: _BOCHA_KEY_HINT},
                refuse=_refuse_bocha,
                found=found,
                known=known,
                urgent=urgent,
            ),
        )

    def parse(self, body: bytes) -> ParsedHits:
        """See `parse_bocha`."""
        return parse_bocha(body)


PROVIDERS: dict[str, Callable[..., HttpSearch]] = {
    provider.name: provider for provider in (SearxngProvider, DoubanSuggestProvider, BochaProvider)
}
"""Every provider by name. A new one is a class here and its name in this table."""

_PARSERS: dict[str, Callable[[bytes], ParsedHits]] = {
    SearxngProvider.name: parse_searxng,
    DoubanSuggestProvider.name: parse_suggestions,
    BochaProvider.name: parse_bocha,
}


def named_in(provider: str, body: bytes) -> tuple[Hit, ...]:
    """Return the subjects that a raw answer of a provider names; none if it cannot be read."""
    try:
        return _PARSERS[provider](body).hits
    except (KeyError, SourceError):
        return ()


def _refuse_bocha(status: int, headers: httpx.Headers, body: bytes) -> None:
    """Raise what Bocha's own words say of a 403, which is "forbidden" to everybody else."""
    del headers
    if status != 403:
        return
    try:
        answer = read_json(BochaProvider.name, body)
    except SourceError:
        return  # not Bocha's words: the general rules know what a page with this status is
    if isinstance(answer, dict) and as_int(answer.get("code")) == 403:
        raise _bocha_error(answer)


def _bocha_error(answer: dict[str, Any]) -> SourceError:
    """Return the error that ``{"code": "403", "message": …, "log_id": …}`` means."""
    source = BochaProvider.name
    code = as_int(answer.get("code"))
    message = values.clean(answer.get("message") or answer.get("msg"))[:200]
    said = f"error {answer.get('code')!s:.20}: {message or 'no message'}"
    if code == 401:
        return SourceWall(source, f"error 401; {_BOCHA_KEY_HINT}")
    if code == 403 or _BOCHA_MONEY.search(message):
        return SourceUnpaid(source, f"{said}; it is paid for at open.bochaai.com")
    if code == 429:
        return SourceThrottled(source, said)
    return SourceUnavailable(source, said)


def _web_hits(source: str, results: list[Any], *, title: str, snippet: str) -> tuple[Hit, ...]:
    """Return the subjects that a web search's results lead to; ``title`` and ``snippet`` name its fields."""
    usable = [item for item in results if isinstance(item, dict) and isinstance(item.get("url"), str)]
    if results and not usable:
        raise SourceUnavailable(source, "results without addresses")
    return each_once(
        Hit(
            douban_id,
            title=values.clean(result.get(title)),
            url=result["url"],
            snippet=values.clean(result.get(snippet)),
        )
        for result in usable
        for douban_id in subject_ids(result["url"])
    )


def _engines(value: Any) -> tuple[str, ...]:
    """Read ``[["bing", "CAPTCHA"], …]`` or ``["bing", …]``."""
    if not isinstance(value, list):
        return ()
    items: Iterable[list[Any]] = (item if isinstance(item, list) else [item] for item in value)
    return tuple(": ".join(values.clean(part) for part in item) for item in items)
