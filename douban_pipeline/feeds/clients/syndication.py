"""RSS and Atom by feedparser, and JSON Feed, which feedparser cannot parse yet: bytes in, entries out.

A feed is untrusted input of any size. Entity declarations are refused, and only the first entries of a long feed are
passed to the parser, which takes a millisecond per entry. Four parts of feedparser take a time that grows with the
square of their input: splitting authors and collecting categories, which are not used here, are switched off; what
comes before the first element, in which a regular expression searches, is kept short; and so is the base of addresses,
which ``xml:base`` can make longer with each element and which is parsed at each.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import tzinfo
from io import BytesIO
from typing import Any

import feedparser
import feedparser.mixin
from charset_normalizer import from_bytes
from feedparser.urls import make_safe_absolute_uri

from douban_pipeline.feeds.clients.moments import WrittenTime, meaning_of_cst, written_time
from douban_pipeline.feeds.clients.own_gaps import OwnGap, gap_of_feed
from douban_pipeline.feeds.clients.values import LONGEST_SUMMARY, article, based_on, credible, link_of, moment_of, plain
from douban_pipeline.feeds.failures import FeedRefused
from douban_pipeline.feeds.types import Entry

_DECLARED = re.compile(rb"""(<\?xml[^>]{0,200}?encoding\s*=\s*["'])([\w.:-]{1,40})(["'])""", re.IGNORECASE)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_MARKUP = re.compile(rb"<[^<>]*>|[\x00-\x7f]{40,}")
_EAST_ASIAN = ("gb18030", "big5", "cp932", "euc_jp", "cp949")
"""Encodings of several bytes a character, in which text of another one is hardly ever valid."""
_SINGLE = ("cp1251", "cp1252", "koi8_r", "cp1250", "latin_1")
_SAMPLE = 32_000
_FEW_WRONG = 0.02
"""Share of characters beyond ASCII that may be wrong in the encoding of a text: cut off, or of one foreign word."""
_SHORT = 12
"""Bytes beyond ASCII up to which GBK may happen to be valid UTF-8."""


def as_utf8(body: bytes, content_type: str) -> tuple[bytes, str]:
    """Return a feed in UTF-8 with a declaration that is true, and the content type that fits it.

    What is ASCII or begins with a byte order mark is returned as it is.
    """
    if body.isascii() or body.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return body, content_type
    if b"\x00" in body[:200]:  # UTF-16 or UTF-32 without a mark, which every XML reader knows by its first bytes
        return body, content_type
    encoding = true_encoding(body, content_type)
    text = body.decode(encoding, "replace").encode("utf-8", "replace")
    return _DECLARED.sub(rb"\g<1>utf-8\g<3>", text, count=1), "application/xml; charset=utf-8"


def true_encoding(body: bytes, content_type: str) -> str:
    """Return the name of the encoding in which a body beyond ASCII is written."""
    declared = _declared(body, content_type)
    beyond = sum(byte > 127 for byte in body[:_SAMPLE])
    if _fits(body, "utf-8"):
        short = next((each for each in declared if each in _EAST_ASIAN and _fits(body, each)), "")
        return short if short and beyond <= _SHORT else "utf-8"
    for name in declared:
        if name in _EAST_ASIAN and _fits(body, name, wrong=1):
            return name
    sample = b" ".join(_MARKUP.sub(b" ", body[: 4 * _SAMPLE]).split())[:_SAMPLE]
    best = from_bytes(sample, cp_isolation=[*_EAST_ASIAN, *_SINGLE]).best()
    found = best.encoding if best is not None else ""
    if found in _EAST_ASIAN and _fits(body, found):
        return found
    single = next((each for each in declared if each not in (*_EAST_ASIAN, "utf-8")), "")
    if single and found not in _EAST_ASIAN:
        return single
    # Text too short to recognise its encoding: among Chinese sites it is GBK, if it can be.
    return "gb18030" if not found and _fits(body, "gb18030", wrong=1) else found or "utf-8"


def _declared(body: bytes, content_type: str) -> list[str]:
    """Return the usable encodings that the XML declaration and the header name, the declaration's first."""
    inside, outside = _DECLARED.search(body[:1000]), _CHARSET.search(content_type)
    found = []
    for name in (inside[2].decode("ascii") if inside else "", outside[1] if outside else ""):
        try:
            known = codecs.lookup(name).name
        except LookupError:
            continue
        if known in ("gbk", "gb2312", "hz"):
            known = "gb18030"  # the larger set, which browsers use for all three
        found.append({"shift_jis": "cp932", "euc_kr": "cp949"}.get(known, known))
    return [each for each in found if each not in ("idna", "punycode", "base64", "rot13", "hex", "zlib", "bz2", "uu")]


def _fits(body: bytes, encoding: str, wrong: int = 0) -> bool:
    """Return whether a body is text in an encoding, but for what was cut off at its end, and for `_FEW_WRONG` of its
    characters or so many ``wrong`` ones."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    text = decoder.decode(body)
    found = text.count("\ufffd")
    return not found or found <= max(_FEW_WRONG * sum(char > "\x7f" for char in text), wrong)


PARSER_VERSION = "feed-4"
_END = re.compile(rb"</(?:\w+:)?(item|entry)\s*>", re.IGNORECASE)
_ROOT = re.compile(rb"<((?:\w+:)?(?:rss|feed|rdf))\b", re.IGNORECASE)
_FIRST_ELEMENT = re.compile(rb"<\x00{0,3}\w")
_BLANKS = re.compile(rb"\s+")
_LONGEST_PROLOG = 8_000
_LONGEST_BASE = 2000


def _short_base(base: str, relative: str | None = None) -> str:
    found: str = make_safe_absolute_uri(base, relative)
    return found if len(found) <= _LONGEST_BASE else ""  # the former base is kept


feedparser.mixin.make_safe_absolute_uri = _short_base
feedparser.mixin._FeedParserMixin._sync_author_detail = lambda *_: None
feedparser.mixin._FeedParserMixin._add_tag = lambda self, *_: self._get_context().setdefault("tags", [])


@dataclass(frozen=True, slots=True)
class ParsedFeed:
    """A parsed feed: its title, its entries in order, how many more the answer has, and pages (0: it does not say)."""

    title: str
    entries: tuple[Entry, ...]
    left_out: int = 0
    page_count: int = 0
    own_gap: OwnGap = field(default_factory=OwnGap)


def parse_feed(
    source: str, body: bytes, content_type: str, url: str, *, now: float, zone: tzinfo, most: int
) -> ParsedFeed:
    """Parse a feed.

    Args:
        source: Its host, for errors.
        body: The feed.
        content_type: The server's ``Content-Type``, which may name the encoding.
        url: Its address, to which links are relative.
        now: The current time, to which times are compared.
        zone: Zone of times without one.
        most: Maximum number of entries.

    Raises:
        FeedRefused: It is not a feed, or declares entities.
    """
    start = body[:2000].lstrip(b"\xef\xbb\xbf \t\r\n")
    if not start:
        raise FeedRefused(source, "not a feed: an empty answer", 200)
    if start.startswith(b"{"):
        return _json_feed(source, body, url, now=now, zone=zone, most=most)
    if b"<!ENTITY" in body or b"<!entity" in body:
        raise FeedRefused(source, "not a feed: it declares entities", 200)
    body, content_type = as_utf8(body, content_type)
    body, left_out = _first_entries(_with_short_prolog(source, body), most)
    try:
        found = feedparser.parse(
            BytesIO(body),  # feedparser would open a file whose name a string or bytes are
            response_headers={"content-type": content_type or "application/xml", "content-location": url},
            sanitize_html=False,
            resolve_relative_uris=False,
        )
    except (ValueError, LookupError, AssertionError, RecursionError, AttributeError, TypeError) as error:
        # feedparser sometimes raises errors of its dependencies on badly broken input.
        raise FeedRefused(source, f"not a feed: it cannot be read ({type(error).__name__})", 200) from error
    if not found.get("version") and not found.entries:
        what = "an HTML page" if re.search(rb"<html|<!doctype html", body[:4000], re.IGNORECASE) else "broken XML"
        raise FeedRefused(source, f"not a feed: {what}", 200)
    if found.bozo and not found.entries and not _is_encoding(found.get("bozo_exception")):
        raise FeedRefused(source, "not a feed: broken XML without an entry", 200)
    times = [_written(each) for each in found.entries]
    said = [each for some in times for each in some]
    titles = [plain(each.get("title")) for each in found.entries]
    cst = meaning_of_cst(said, plain(found.feed.get("language"), 20), titles, now)
    entries = [
        _entry(each, [time.moment(zone, cst) for time in some], url, now)
        for each, some in zip(found.entries, times, strict=True)
    ]
    kept = [each for each in entries if each.guid or each.link or each.title]
    more = left_out + max(len(kept) - most, 0)
    return ParsedFeed(
        plain(found.feed.get("title"), 300),
        tuple(kept[:most]),
        more,
        own_gap=gap_of_feed(found.feed),
    )


def _is_encoding(error: object) -> bool:
    return isinstance(error, feedparser.exceptions.CharacterEncodingOverride | feedparser.exceptions.NonXMLContentType)


def _with_short_prolog(source: str, body: bytes) -> bytes:
    """Return a feed with single blanks before its first element; a prolog that is still long is refused."""
    first = _FIRST_ELEMENT.search(body)
    if first is None or first.start() <= _LONGEST_PROLOG // 10:
        return body
    prolog = _BLANKS.sub(b"\n", body[: first.start()])
    if len(prolog) > _LONGEST_PROLOG:
        raise FeedRefused(source, f"not a feed: {len(prolog)} bytes before its first element", 200)
    return prolog + body[first.start() :]


def _first_entries(body: bytes, most: int) -> tuple[bytes, int]:
    """Return a feed cut after its first ``most`` entries, and how many were cut off."""
    ends = [match.end() for match in _END.finditer(body)]
    if len(ends) <= most:
        return body, 0
    root = _ROOT.search(body)
    name = root[1] if root else b"rss"
    closing = b"</channel></" + name + b">" if name.lower().endswith(b"rss") else b"</" + name + b">"
    return body[: ends[most - 1]] + closing, len(ends) - most


def _written(found: dict[str, Any]) -> list[WrittenTime]:
    """Return an entry's times that are understood, in order of preference."""
    # Used as a plain dictionary: feedparser's own `get` substitutes one time for another, with a warning.
    times = (written_time(dict.get(found, name)) for name in ("published", "updated", "created"))
    return [each for each in times if each is not None]


def _entry(found: dict[str, Any], times: list[int | None], base: str, now: float) -> Entry:
    moments = [moment for each in times if (moment := credible(each, now)) is not None]
    link = next((link for each in _addresses(found) if (link := link_of(each, base))), "")
    contents = [each for each in found.get("content") or () if isinstance(each, dict)]
    summary = plain(found.get("summary") or next((each.get("value") for each in contents), ""), LONGEST_SUMMARY)
    details = [*contents, found.get("summary_detail") or {}]
    # What xml:base gives; without one, addresses are relative to the entry's page.
    texts = [
        (each.get("value") if each.get("base") in (None, "", base) else based_on(each.get("value"), each["base"]), each)
        for each in details
    ]
    return Entry(
        guid=plain(found.get("id"), 2000),
        link=link,
        title=plain(found.get("title")),
        summary=summary,
        published_at=moments[0] if moments else None,
        content=article(((text, each.get("type") != "text/plain") for text, each in texts), summary),
    )


def _addresses(found: dict[str, Any]) -> Iterator[object]:
    """Yield an entry's page, then the sound or picture that it is without one."""
    yield found.get("link")
    for name in ("enclosures", "media_content", "media_thumbnail"):
        for each in found.get(name) or ():
            yield each.get("href") or each.get("url")


def _json_feed(source: str, body: bytes, url: str, *, now: float, zone: tzinfo, most: int) -> ParsedFeed:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise FeedRefused(source, "not a feed: JSON that cannot be read", 200) from error
    version = found.get("version") if isinstance(found, dict) else None
    items = found.get("items") if isinstance(found, dict) else None
    if not isinstance(version, str) or "jsonfeed.org" not in version or not isinstance(items, list):
        raise FeedRefused(source, "not a feed: JSON, but no JSON Feed", 200)
    entries = []
    for item in items[:most]:
        if not isinstance(item, dict):
            continue
        published = moment_of(item.get("date_published") or item.get("date_modified"), zone)
        summary = item.get("summary") or item.get("content_text") or item.get("content_html")
        written = ((item.get("content_html"), True), (item.get("content_text"), False))
        one = Entry(
            guid=plain(item.get("id"), 2000),
            link=next((link for each in _json_addresses(item) if (link := link_of(each, url))), ""),
            title=plain(item.get("title") or summary, 500),
            summary=plain(summary, LONGEST_SUMMARY),
            published_at=credible(published, now),
            content=article(written, plain(summary, LONGEST_SUMMARY)),
        )
        if one.guid or one.link or one.title:
            entries.append(one)
    return ParsedFeed(plain(found.get("title"), 300), tuple(entries), max(len(items) - most, 0))


def _json_addresses(item: dict[str, Any]) -> Iterator[object]:
    attachments = item.get("attachments")
    first = attachments[0] if isinstance(attachments, list) and attachments else None
    yield from (item.get("url"), item.get("external_url"), first.get("url") if isinstance(first, dict) else None)
    yield from (item.get("image"), item.get("banner_image"))
