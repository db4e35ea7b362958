"""Finds the feed behind an address that a person gave: the address itself, or what the page there links to."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from urllib.parse import urljoin

from selectolax.parser import HTMLParser

from douban_pipeline.core.errors import SourceError, SourceThrottled
from douban_pipeline.core.http_answers import HttpExchange
from douban_pipeline.feeds.clients.syndication import parse_feed
from douban_pipeline.feeds.clients.values import link_of, plain
from douban_pipeline.feeds.services import MAX_ENTRIES, FeedsServices
from douban_pipeline.feeds.types import Source, SourceKind, source_id_for

COMMON_PATHS = ("feed", "rss", "feed.xml", "rss.xml", "atom.xml", "index.xml", "feed.json")
"""Where blogs and their generators put feeds, tried below the page and at the root, in this order."""

_TYPES = {"application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml"}
_LONGEST = 2_000_000
_MOST = 20


@dataclass(frozen=True, slots=True)
class FoundFeed:
    """A feed that a page links to: address and title."""

    url: str
    title: str = ""


def is_page(body: bytes) -> bool:
    """Return whether an answer is a web page and no feed."""
    start = body[:4000].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<?xml", b"<rss", b"<feed", b"<rdf", b"{")) and b"<html" not in start:
        return False
    return b"<html" in start or b"<!doctype html" in start or b"<head" in start


def feeds_of_page(body: bytes, url: str) -> tuple[FoundFeed, ...]:
    """Return the feeds that a page links to (WHATWG HTML, link type alternate), the page's own first.

    Comment feeds come last: they are rarely what is meant.
    """
    page = HTMLParser(body[:_LONGEST])
    base_node = page.css_first("base[href]")
    base = urljoin(url, (base_node.attributes.get("href") if base_node is not None else "") or "")
    feeds: dict[str, FoundFeed] = {}
    for node in page.css("link[rel][href]"):
        named = {name.lower(): value or "" for name, value in node.attributes.items()}
        link = link_of(named["href"], base)
        rels = set(named["rel"].lower().split())
        if link and "alternate" in rels and named.get("type", "").split(";")[0].strip().lower() in _TYPES:
            feeds.setdefault(link, FoundFeed(link, plain(named.get("title"), 300)))
    ordered = sorted(feeds.values(), key=lambda each: "comment" in f"{each.url} {each.title}".lower())
    return tuple(ordered[:_MOST])


def common_addresses(url: str) -> list[str]:
    """Return the addresses at which the feed of a page usually is: below the page first, then at the root."""
    below = url.split("?")[0].split("#")[0].rstrip("/") + "/"
    bases = dict.fromkeys((below, urljoin(url, "/")))
    return [urljoin(base, path) for base in bases for path in COMMON_PATHS]


_PARSER_VERSION = "page-1"
_MOST_TRIED = 8
"""Usual addresses tried of one page: a person waits, and the host's gate paces them."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Discovery:
    """What is at an address.

    Attributes:
        feeds: Its feeds, the best first; empty if none was found, or the address did not answer.
        problem: Why nothing was found, for people; empty if something was.
    """

    feeds: tuple[FoundFeed, ...] = ()
    problem: str = ""


def discover(services: FeedsServices, url: str, credential: str = "") -> Discovery:
    """Return the feeds at an address: itself if it is one, else those of its page, else of the usual paths.

    Every request passes its host's gate. What does not answer is no error here: the poll says why.
    """
    try:
        body, kind, at = _fetched(services, url, credential)
    except SourceError as error:
        return Discovery(problem=error.reason)
    if not is_page(body):
        return Discovery((FoundFeed(url),))
    feeds = feeds_of_page(body, at)
    if feeds:
        return Discovery(feeds)
    for address in common_addresses(at)[:_MOST_TRIED]:
        try:
            body, kind, _ = _fetched(services, address, credential)
            if is_page(body):
                continue
            title = parse_feed(
                services.host_of(_probe(address)),
                body,
                kind,
                address,
                now=services.now(),
                zone=services.settings.zone,
                most=MAX_ENTRIES,
            ).title
        except SourceThrottled as error:
            return Discovery(problem=error.reason)
        except SourceError as error:
            logger.debug("no feed at %s: %s", address, error.reason)
            continue
        return Discovery((FoundFeed(address, title),))
    return Discovery(problem="a web page that links to no feed")


def _probe(url: str, credential: str = "") -> Source:
    return Source(source_id_for(SourceKind.RSS, url), SourceKind.RSS, url, credential=credential)


def _fetched(services: FeedsServices, url: str, credential: str) -> tuple[bytes, str, str]:
    """Return body, content type and final address of an answer."""
    source = _probe(url, credential)

    def read(answer: HttpExchange) -> tuple[bytes, str, str]:
        return answer.body, str(answer.headers.get("content-type", "")), answer.moved_to or url

    with services.web_fetcher(source) as fetcher:
        key, headers = f"page {source.source_id}", services.secret_headers(replace(source, url=url))
        return fetcher.exchange(url, read, key=key, parser_version=_PARSER_VERSION, headers=headers).value
