"""One request to a source of any kind: through its host's gate and the archive, bounded in time and size."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Any, Protocol

from douban_pipeline.core.http import Fetcher
from douban_pipeline.core.http_answers import HttpExchange, retry_after
from douban_pipeline.core.payload import AnswerRules
from douban_pipeline.core.werss import SOURCE as WERSS
from douban_pipeline.core.werss import WeRss
from douban_pipeline.feeds.clients import lists, syndication
from douban_pipeline.feeds.clients.further_pages import Reach, read_on
from douban_pipeline.feeds.clients.own_gaps import OwnGap, gap_of_headers
from douban_pipeline.feeds.clients.syndication import ParsedFeed
from douban_pipeline.feeds.clients.values import LONGEST_SUMMARY, credible, link_of, plain
from douban_pipeline.feeds.failures import FeedRefused
from douban_pipeline.feeds.types import Entry, FetchedFeed, Gap, GapReason, Source, SourceKind, digest

RULES = AnswerRules(
    wall_statuses=frozenset(), read_statuses=frozenset({304}), wall_words=("captcha verification required",)
)
"""A feed that requires a login says nothing about the host's other feeds: only 429 and 503 close the gate."""
_ACCEPT = "application/rss+xml, application/atom+xml, application/feed+json, application/json;q=0.9, */*;q=0.5"
_REFUSED = frozenset({400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 414, 415, 421, 422, 423, 451})
_LONGEST_NAME = 32
_WEEK = 7 * 86_400


class SourceClient(Protocol):
    """Fetches sources of one kind."""

    def fetch(self, source: Source, now: int, reach: Reach) -> FetchedFeed:
        """Return the source's answer, with the further pages that ``reach`` allows.

        Raises:
            SourceError: The matching subclass; see `core.errors` and `feeds.failures`.
        """
        ...


def gate_name(host: str) -> str:
    """Return the host's name at the gate and in the archive, where names are short."""
    return host if len(host) <= _LONGEST_NAME else f"{host[:21]}~{digest(host)[:10]}"


@dataclass(frozen=True, slots=True)
class EntryReading:
    """How answers are parsed: time zone of times without one, and maximum number of entries."""

    zone: tzinfo
    most: int


class WebClient:
    """Fetches sources with an address of their own: feeds, resource sites, other lists.

    Args:
        fetcher: Fetcher of the source's host.
        reading: How answers are parsed.
        secret_headers: Headers of the source's credentials; only the requested host gets them.
    """

    def __init__(self, fetcher: Fetcher, reading: EntryReading, secret_headers: Mapping[str, str]) -> None:
        self._fetcher = fetcher
        self._reading = reading
        self._secrets = secret_headers

    def fetch(self, source: Source, now: int, reach: Reach) -> FetchedFeed:
        """Send a conditional request with the validators of the last answer; see `SourceClient`.

        The pages of a resource site are read on while all rows are new.
        """
        headers = {"Accept": _ACCEPT}
        if source.etag:
            headers["If-None-Match"] = source.etag
        if source.last_modified:
            headers["If-Modified-Since"] = source.last_modified
        first = self._page(source, now, headers)
        if source.kind is SourceKind.MACCMS:
            # Further pages have no validators, and none of theirs is kept.
            unseen = replace(source, etag="", last_modified="", body_hash="")
            read = partial(self._page, unseen, now, {"Accept": _ACCEPT})
            return read_on(first, source.gap, read, reach, now)
        if first.left_out and reach.all_unread(first.entries, None):
            return replace(first, gap=source.gap or Gap(now, 0, GapReason.ANSWER))
        return replace(first, gap=source.gap if first.unchanged or first.left_out else None)

    def _page(self, source: Source, now: int, headers: Mapping[str, str], number: int = 1) -> FetchedFeed:
        url = lists.videos_url(source.url, number) if source.kind is SourceKind.MACCMS else source.url
        read = partial(self._read, source=source, url=url, now=now)
        version = syndication.PARSER_VERSION if source.kind is SourceKind.RSS else lists.PARSER_VERSION
        key = f"source {source.source_id}" + (f" page {number}" if number > 1 else "")
        sent = {**headers, **self._secrets}
        return self._fetcher.exchange(url, read, key=key, parser_version=version, headers=sent).value

    def _read(self, answer: HttpExchange, *, source: Source, url: str, now: int) -> FetchedFeed:
        host = self._fetcher.source
        if answer.status in _REFUSED:
            wait = retry_after(answer.headers.get("retry-after", ""), datetime.fromtimestamp(now, UTC))
            hint = f": {_remedy(source)}" if answer.status == 401 else ""
            raise FeedRefused(host, f"HTTP {answer.status}{hint}", answer.status, wait)
        known: dict[str, Any] = {
            **_own_gap(answer, None, source, now),
            "moved_to": answer.moved_to,
            "status": answer.status,
        }
        if answer.status == 304:
            known |= {"etag": source.etag, "last_modified": source.last_modified, "body_hash": source.body_hash}
            return FetchedFeed(unchanged=True, **known)
        if not 200 <= answer.status < 300:
            return FetchedFeed(status=answer.status)  # the general status rules apply next
        known["etag"] = _header(answer.headers, "etag", 500)
        known["last_modified"] = _header(answer.headers, "last-modified", 100)
        # Hashed with the parsing options: another mapping of fields finds other entries in the same answer.
        known["body_hash"] = hashlib.sha256(repr(sorted(source.options.items())).encode() + answer.body).hexdigest()
        if known["body_hash"] == source.body_hash:
            return FetchedFeed(unchanged=True, **known)
        found = self._parse(answer, source, answer.moved_to or url, now)
        known |= _own_gap(answer, found.own_gap, source, now)
        known |= {"left_out": found.left_out, "page_count": found.page_count}
        return FetchedFeed(entries=found.entries, title=found.title, **known)

    def _parse(self, answer: HttpExchange, source: Source, url: str, now: int) -> ParsedFeed:
        host, most, zone = self._fetcher.source, self._reading.most, self._reading.zone
        if source.kind is SourceKind.MACCMS:
            return lists.parse_videos(host, answer.body, url, now=now, zone=zone, most=most)
        if source.kind is SourceKind.JSON:
            return lists.parse_list(host, answer.body, url, source.options, now=now, zone=zone, most=most)
        kind = _header(answer.headers, "content-type", 200)
        return syndication.parse_feed(host, answer.body, kind, url, now=now, zone=zone, most=most)


class AccountClient:
    """Fetches a public account's articles from WeRSS.

    Args:
        werss: Client of WeRSS.
        reading: How answers are parsed.
    """

    def __init__(self, werss: WeRss, reading: EntryReading) -> None:
        self._werss = werss
        self._reading = reading

    def fetch(self, source: Source, now: int, reach: Reach) -> FetchedFeed:
        """Fetch the articles of the last week; see `SourceClient`."""
        account = str(source.options.get("mp_id", ""))
        if not account:
            raise FeedRefused(WERSS, "not a source that can be polled: it has no mp_id")
        articles = self._werss.articles(account, now - _WEEK, self._reading.most)
        entries = [
            Entry(
                guid=plain(each.article_id, 2000),
                link=link_of(each.url, ""),
                title=plain(each.title),
                summary=plain(each.description, LONGEST_SUMMARY),
                published_at=credible(each.published_at, now),
                extra={"mp_id": plain(each.account_id or account)},
            )
            for each in articles
        ]
        return FetchedFeed(entries=entries, title=plain(articles[0].account_name, 300) if articles else "")


def _remedy(source: Source) -> str:
    """Return what a person can do about a 401."""
    if source.credential:
        return f"the credentials {source.credential} are refused; renew them where they are set"
    return "it wants a login; set credentials, and name them: feeds add ADDRESS --credential NAME (docs/feeds.md)"


def _own_gap(answer: HttpExchange, inside: OwnGap | None, source: Source, now: int) -> dict[str, Any]:
    """Return what the publisher wants: the longer one of the answer's headers and of the feed.

    Args:
        answer: The answer.
        inside: What the feed says; None if it was not read anew, so that what it said before holds.
        source: The source.
        now: The current time.
    """
    if inside is None:
        inside = OwnGap(source.own_gap, source.own_gap_from) if source.own_gap_from in ("ttl", "sy") else OwnGap()
    longer = max(inside, gap_of_headers(answer.headers, now))
    return {"own_gap": longer.seconds, "own_gap_from": longer.written}


def _header(headers: Any, name: str, most: int) -> str:
    value = str(headers.get(name, ""))
    # A value that is cut, or cannot be sent, would never match again.
    return value if len(value) <= most and value.isascii() and value.isprintable() else ""
