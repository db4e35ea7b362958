"""Finds the feeds of a web page: what it links as alternates, else the paths where sites keep them."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urljoin

from selectolax.parser import HTMLParser

from douban_pipeline.feeds.clients.values import link_of, plain

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
