"""JSON lists: a resource site's ``provide/vod``, and any other list with a path and a mapping of fields."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from douban_pipeline.core.payload import as_int, read_json
from douban_pipeline.feeds.clients.syndication import ParsedFeed
from douban_pipeline.feeds.clients.values import LONGEST_SUMMARY, at_path, credible, link_of, moment_of, plain
from douban_pipeline.feeds.failures import FeedRefused
from douban_pipeline.feeds.types import Entry

PARSER_VERSION = "list-1"
JSON_FIELDS = ("id", "title", "link", "time", "summary")
"""What a source of the kind json may map to fields of its rows; the additional ``path`` is the path of the rows."""
_FACTS = ("vod_id", "type_id", "type_name", "vod_time", "vod_remarks", "vod_en", "vod_play_from")


def videos_url(url: str, page: int = 1) -> str:
    """Return the address of a page of the newest videos: ``ac=list`` unless the address has an ``ac`` of its own.

    An address that has a ``pg`` of its own begins there.
    """
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    query.setdefault("ac", "list")
    query["pg"] = str((as_int(query.get("pg")) or 1) + page - 1)
    return urlunsplit(parts._replace(query=urlencode(query)))


def parse_videos(source: str, body: bytes, url: str, *, now: float, zone: tzinfo, most: int) -> ParsedFeed:
    """Return the videos of a resource site's list; a changed video, such as a new episode, counts as a publication.

    Raises:
        SourceError: It is not such a list.
    """
    found = read_json(source, body)
    rows = found.get("list") if isinstance(found, dict) else None
    if not isinstance(rows, list) or as_int(found.get("code")) not in (1, 200, None):
        raise FeedRefused(source, "not a list of videos: no code 1 with a list", 200)
    entries = []
    for row in rows[:most]:
        vod_id = as_int(row.get("vod_id")) if isinstance(row, dict) else None
        if vod_id is None:
            continue
        facts = {name: plain(row.get(name), 200) for name in _FACTS if row.get(name) is not None}
        changed_at = moment_of(row.get("vod_time"), zone)
        entries.append(
            Entry(
                guid=str(vod_id),
                link="",
                title=plain(row.get("vod_name")),
                summary=plain(row.get("vod_remarks"), 200),
                published_at=credible(changed_at, now),
                extra=facts,
                edit_publishes=True,
            )
        )
    if rows and not entries:
        raise FeedRefused(source, "not a list of videos: rows without vod_id", 200)
    pages = as_int(found.get("pagecount")) or 0
    return ParsedFeed("", tuple(entries), max(len(rows) - most, 0), max(pages, 0))


def parse_list(
    source: str, body: bytes, url: str, options: Mapping[str, Any], *, now: float, zone: tzinfo, most: int
) -> ParsedFeed:
    """Return the rows of any JSON list as entries.

    Args:
        source: Its host, for errors.
        body: The answer.
        url: Its address, to which links are relative.
        options: ``path`` of the list, and the path in a row of each of `JSON_FIELDS`.
        now: The current time.
        zone: Time zone of times without one.
        most: Maximum number of rows.

    Raises:
        SourceError: There is no list at the path, or none of its rows has an id, a link or a title.
    """
    rows = at_path(read_json(source, body), str(options.get("path", "")))
    if not isinstance(rows, list):
        raise FeedRefused(source, f"not a list at {str(options.get('path', ''))[:80] or 'the top'}", 200)

    def value(row: object, name: str) -> Any:
        return at_path(row, str(options.get(name) or name))

    entries = []
    for row in rows[:most]:
        one = Entry(
            guid=plain(value(row, "id"), 2000),
            link=link_of(value(row, "link"), url),
            title=plain(value(row, "title")),
            summary=plain(value(row, "summary"), LONGEST_SUMMARY),
            published_at=credible(moment_of(value(row, "time"), zone), now),
        )
        if one.guid or one.link or one.title:
            entries.append(one)
    if rows and not entries:
        raise FeedRefused(source, "not a usable list: no row has the mapped id, link or title", 200)
    return ParsedFeed("", tuple(entries), max(len(rows) - most, 0))
