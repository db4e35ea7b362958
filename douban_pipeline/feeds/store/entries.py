"""Entries published by sources, each stored once and updated when edited; and videos for the library's intake."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from sqlalchemy import Connection, Row, and_, bindparam, case, func, insert, select, update

from douban_pipeline.core.database import chunks
from douban_pipeline.feeds.store.tables import entry, newcomer, source
from douban_pipeline.feeds.types import Entry, digest

_KNOWN = (
    *(entry.c.entry_id, entry.c.guid_hash, entry.c.link_hash, entry.c.story_hash, entry.c.content_hash),
    *(entry.c.published_at, entry.c.dated, entry.c.updated_at, entry.c.link, entry.c.title),
)


@dataclass(slots=True)
class StoredEntries:
    """Result of storing the entries of one answer."""

    new: list[Entry] = field(default_factory=list)
    edited: list[Entry] = field(default_factory=list)
    oldest_new: int | None = None
    """The earliest credible time of a new entry."""


_BY_GUID = select(*_KNOWN).where(
    entry.c.source_id == bindparam("of"), entry.c.guid_hash.in_(bindparam("hashes", expanding=True))
)
_BY_STORY = select(*_KNOWN).where(
    entry.c.source_id == bindparam("of"), entry.c.story_hash.in_(bindparam("hashes", expanding=True))
)
_BY_TIME = select(*_KNOWN).where(
    entry.c.source_id == bindparam("of"), entry.c.published_at.in_(bindparam("times", expanding=True)), entry.c.dated
)
_SHARED = (
    select(entry.c.link_hash)
    .where(entry.c.source_id == bindparam("of"), entry.c.link_hash.in_(bindparam("hashes", expanding=True)))
    .group_by(entry.c.link_hash)
    .having(func.count() > 1)
)


def read_known(connection: Connection, source_id: str, entries: Iterable[Entry]) -> dict[str, Row[Any]]:
    """Return what is stored of entries with the same guids, by the hashes of those."""
    found: dict[str, Row[Any]] = {}
    for some in chunks(list(dict.fromkeys(each.guid_hash for each in entries))):
        rows = connection.execute(_BY_GUID, {"of": source_id, "hashes": some})
        found.update({row.guid_hash: row for row in rows})
    return found


def store_entries(
    connection: Connection,
    source_id: str,
    entries: Sequence[Entry],
    now: int,
    known_entries: Mapping[str, Row[Any]] | None = None,
) -> StoredEntries:
    """Store the entries of an answer: new ones are added, edited ones updated, without duplicates.

    An entry is identified by its guid. If its guid changed, it is identified by the page that its link leads to, or by
    title, time and link without parameters, provided that these occur once in the answer and once in the table.
    ``known_entries`` is what `read_known` returns, if it was read already.
    """
    given = list({each.guid_hash: each for each in reversed(entries)}.values())[::-1]
    by_guid = read_known(connection, source_id, given) if known_entries is None else known_entries
    alike = _alike(connection, source_id, given, by_guid)
    pages = Counter(key for each in given for key in _pages(each.link, each.title, each.published_at))
    guids = {each.guid_hash for each in given}
    stored, rows, changed = StoredEntries(), [], []
    for each in given:
        known = by_guid.get(each.guid_hash)
        for key in () if known is not None else _pages(each.link, each.title, each.published_at):
            same = alike.get(key, ())
            if pages[key] == 1 and len(same) == 1 and same[0].guid_hash not in guids:
                known = same[0]
                break
        if known is None:
            rows.append(_row(source_id, each, now))
            stored.new.append(each)
        elif known.content_hash != each.content_hash or known.guid_hash != each.guid_hash:
            changed.append(_edit(known, each, now))
            stored.edited.append(each)
    if rows:
        connection.execute(insert(entry), rows)
    for values in changed:
        where = entry.c.entry_id == values.pop("known_id")
        connection.execute(update(entry).where(where).values(**values, edits=entry.c.edits + 1))
    stored.oldest_new = min((each.published_at for each in stored.new if each.published_at is not None), default=None)
    return stored


def with_own_guids(
    connection: Connection, source_id: str, entries: Sequence[Entry], skew: int = 0
) -> tuple[list[Entry], dict[str, Row[Any]]]:
    """Return the entries of an answer, and what is stored of them; those whose guid does not tell them apart get one of
    what does: link, date, title. An entry without a guid has its link for one.

    A guid is taken for such a one if the answer has it for several links or, with one link, for several dates; or if
    link, title and date all differ from those of the entry that is stored with it. A link is no guid if several
    entries are stored with it.

    Args:
        connection: A connection.
        source_id: The source.
        entries: The entries, with the times that the source states.
        skew: Seconds that are added to those when they are stored.
    """
    known = read_known(connection, source_id, entries)
    groups: dict[str, list[Entry]] = {}
    for each in entries:
        if not each.edit_publishes:
            groups.setdefault(each.guid_hash, []).append(each)
    # Most entries are stored as they are, and cannot be another one.
    others = {
        id(each): replace(each, guid=_own_guid(each))
        for some in groups.values()
        for each in some
        if len(some) > 1 or not _is_same(each, known.get(each.guid_hash), skew)
    }
    known |= read_known(connection, source_id, others.values())
    shared: set[str] = set()
    for some in chunks([digest(each.link) for each in others.values() if each.link]):
        shared.update(connection.execute(_SHARED, {"of": source_id, "hashes": some}).scalars())

    def identity(each: Entry) -> Entry:
        other = others.get(id(each))
        if other is None:
            return each
        before, group = known.get(each.guid_hash), groups[each.guid_hash]
        if other.guid_hash in known:
            return other
        crowded = any(_is_other(each, sibling) for sibling in group if sibling.link == each.link)
        no_guid = not each.guid and (digest(each.link) in shared if each.link else each.published_at is not None)
        if crowded or (no_guid and before is not None):
            return each if before is not None and _is_same(each, before, skew) else other
        repeated = any(sibling.link != each.link for sibling in group)
        if before is None:
            return other if repeated else each
        if repeated:
            same = before.link == each.link and (bool(each.link) or before.title == each.title[:500])
            return each if same else other
        changed = before.link != each.link and before.title != each.title[:500]
        return other if changed and each.published_at not in (None, before.published_at - skew) else each

    return [identity(each) for each in entries], known


def _is_same(each: Entry, stored: Row[Any] | None, skew: int) -> bool:
    """Return whether an entry has link, title and date of the stored one."""
    if stored is None or (stored.link, stored.title) != (each.link, each.title[:500]):
        return False
    return each.published_at in (None, stored.published_at - skew)


def _own_guid(each: Entry) -> str:
    if each.guid:
        return f"{each.guid}\x1f{each.link}\x1f{each.published_at or each.title}"
    return f"\x1f{each.link}\x1f{each.title}\x1f{each.published_at or each.summary}"


def _is_other(one: Entry, other: Entry) -> bool:
    """Return whether two entries with one guid and link are two publications."""
    if one.guid:
        return one.published_at != other.published_at
    return (one.title, one.published_at or one.summary) != (other.title, other.published_at or other.summary)


def _pages(link: str, title: str, published_at: int | None) -> list[str]:
    """Return by what an entry is known under another guid: its page; its title, time and page without parameters."""
    if not link:
        return []
    page = f"{canonical_link(link)}#{link.partition('#')[2]}"
    plain = canonical_link(link.partition("?")[0])
    return [page, f"{title[:500]}\x1f{published_at}\x1f{plain}"] if title and published_at else [page]


def all_unread(connection: Connection, source_id: str, entries: Sequence[Entry], before: int | None = None) -> bool:
    """Return whether none of the entries is stored as it is; with ``before``, stored before that moment."""
    for some in chunks(entries):
        hashes = {each.guid_hash: each.content_hash for each in some}
        for row in connection.execute(_BY_GUID, {"of": source_id, "hashes": list(hashes)}):
            earlier = before is None or row.updated_at < before
            if earlier and row.content_hash == hashes[row.guid_hash]:
                return False
    return bool(entries)


def _alike(
    connection: Connection, source_id: str, given: Sequence[Entry], by_guid: Mapping[str, Row[Any]]
) -> dict[str, list[Row[Any]]]:
    """Return the stored entries that those whose guid is not stored may be, by each of their `_pages`."""
    rows: dict[int, Row[Any]] = {}
    unknown = [each for each in given if each.link and each.guid_hash not in by_guid]
    for some in chunks(unknown):
        hashes = [digest(canonical_link(each.link)) for each in some]
        rows |= {row.entry_id: row for row in connection.execute(_BY_STORY, {"of": source_id, "hashes": hashes})}
        times = [each.published_at for each in some if each.published_at]
        if times:
            rows |= {row.entry_id: row for row in connection.execute(_BY_TIME, {"of": source_id, "times": times})}
    found: dict[str, list[Row[Any]]] = {}
    for row in rows.values():
        for key in _pages(row.link, row.title, row.published_at):
            found.setdefault(key, []).append(row)
    return found


def _row(source_id: str, each: Entry, now: int) -> dict[str, Any]:
    return {
        "source_id": source_id,
        **_content(each),
        "published_at": now if each.published_at is None else each.published_at,
        "dated": each.published_at is not None,
        "found_at": now,
        "updated_at": now,
        # Videos of resource sites are for the library's intake, thousands at once: nobody reads them one by one.
        "unread": int(not each.edit_publishes),
    }


def _content(each: Entry) -> dict[str, Any]:
    return {
        "guid_hash": each.guid_hash,
        "link_hash": digest(each.link) if each.link else "",
        "story_hash": digest(canonical_link(each.link)) if each.link else "",
        "guid": each.guid,
        "link": each.link,
        "title": each.title[:500],
        "summary": each.summary,
        "content": each.content or None,
        "extra": dict(each.extra) or None,
        "content_hash": each.content_hash,
    }


def _edit(known: Row[Any], each: Entry, now: int) -> dict[str, Any]:
    edit = {"known_id": known.entry_id, **_content(each), "updated_at": now}
    if each.edit_publishes and each.published_at is not None:
        return {**edit, "published_at": each.published_at, "dated": True}
    # The first publication time is kept: an edit is not a publication, and would shift the learned hours.
    return edit


def shift_times(connection: Connection, source_id: str, seconds: int, since: int) -> None:
    """Add seconds to the times that a source stated for entries found since a moment, never beyond when it was seen.

    A time equal to that of finding was ahead of it, and is known no better.
    """
    seen = case((entry.c.edits > 0, entry.c.updated_at), else_=entry.c.found_at)
    moved = entry.c.published_at + seconds
    where = [entry.c.source_id == source_id, entry.c.dated, entry.c.found_at >= since]
    where += [entry.c.published_at != entry.c.found_at, entry.c.published_at != seen]
    connection.execute(update(entry).where(*where).values(published_at=case((moved > seen, seen), else_=moved)))


def hand_over(connection: Connection, source_id: str, new: Sequence[Entry], edited: Sequence[Entry], now: int) -> int:
    """Report new or changed videos of a resource site to the library's intake; return how many.

    A video reported earlier is reported again once, however often it changes before it is taken.
    """
    changed = {each.guid_hash for each in edited}
    told = 0
    for some in chunks([*new, *edited]):
        hashes = [each.guid_hash for each in some]
        where = (newcomer.c.source_id == source_id, newcomer.c.guid_hash.in_(hashes))
        known = set(connection.execute(select(newcomer.c.guid_hash).where(*where)).scalars())
        rows = []
        for each in some:
            values: Mapping[str, Any] = {
                "name": each.title[:500],
                "facts": dict(each.extra),
                "changed": each.guid_hash in changed,
                "seen_at": now,
            }
            told += 1
            if each.guid_hash in known:
                one = (newcomer.c.source_id == source_id, newcomer.c.guid_hash == each.guid_hash)
                connection.execute(update(newcomer).where(*one).values(**values, taken_at=None))
            else:
                remote = str(each.extra.get("vod_id", each.guid))[:64]
                keys = {"source_id": source_id, "guid_hash": each.guid_hash, "remote_id": remote}
                rows.append({**keys, **values})
        if rows:
            connection.execute(insert(newcomer), rows)
    return told


def publication_seconds(connection: Connection, source_ids: Sequence[str], since: int) -> dict[str, list[int]]:
    """Return the distinct publication times of sources since a moment, in ascending order."""
    found: dict[str, list[int]] = {each: [] for each in source_ids}
    for some in chunks(list(source_ids)):
        query = (
            select(entry.c.source_id, entry.c.published_at)
            .where(entry.c.source_id.in_(some), entry.c.published_at >= since)
            .group_by(entry.c.source_id, entry.c.published_at)
            .order_by(entry.c.source_id, entry.c.published_at)
        )
        for source_id, moment in connection.execute(query):
            found[source_id].append(int(moment))
    return found


def duplicates(connection: Connection, since: int, most: int) -> list[Row[Any]]:
    """Return entries of which one was found since a moment: same title, link and time in one source, other guids.

    Found by indexes, since entries are kept for ever.
    """
    recent = (
        select(entry.c.source_id, entry.c.link_hash)
        .where(entry.c.found_at >= since, entry.c.link_hash != "")
        .distinct()
        .subquery("recent")
    )
    same = and_(entry.c.source_id == recent.c.source_id, entry.c.link_hash == recent.c.link_hash)
    query = (
        select(entry.c.source_id, func.count().label("times"), func.max(entry.c.title).label("title"))
        .join_from(recent, entry, same)
        .group_by(entry.c.source_id, entry.c.link_hash, entry.c.content_hash, entry.c.published_at)
        .having(func.count() > 1)
        .limit(most)
    )
    return list(connection.execute(query))


_WITHOUT_CONTENT = [column for column in entry.c if column.name != "content"]


def newest(connection: Connection, source_id: str, limit: int) -> Sequence[Row[Any]]:
    """Return the newest entries of a source, without their content."""
    query = select(*_WITHOUT_CONTENT).where(entry.c.source_id == source_id)
    return connection.execute(query.order_by(entry.c.published_at.desc(), entry.c.entry_id.desc()).limit(limit)).all()


def newest_of_all(connection: Connection, limit: int) -> Sequence[Row[Any]]:
    """Return the most recently found entries without their content, with the titles of their sources."""
    query = select(*_WITHOUT_CONTENT, source.c.title.label("source_title")).join_from(
        entry, source, entry.c.source_id == source.c.source_id, isouter=True
    )
    return connection.execute(query.order_by(entry.c.found_at.desc(), entry.c.entry_id.desc()).limit(limit)).all()


def counts(connection: Connection, now: int) -> dict[str, int]:
    """Return the number of entries in total, found within a day, and those of them without a time of their own."""
    recent = entry.c.found_at >= now - 86_400

    def number(*where: Any) -> int:
        return int(connection.execute(select(func.count()).select_from(entry).where(*where)).scalar_one())

    waiting = select(func.count()).select_from(newcomer).where(newcomer.c.taken_at.is_(None))
    return {
        "entries": number(),
        "found_in_a_day": number(recent),
        "of_them_without_time": number(recent, entry.c.dated.is_(False)),
        "videos_waiting": int(connection.execute(waiting).scalar_one()),
    }


_NOISE = re.compile(r"^(utm_\w+|fbclid|gclid|mc_cid|mc_eid|spm|scm|igshid|ref_src|from_source)$", re.IGNORECASE)


def canonical_link(link: str) -> str:
    """Return a link in the form that is equal for the addresses of one page: https, without ``www.``, default port,
    fragment, closing slash and the parameters by which senders count their readers; empty for no link."""
    try:
        parts = urlsplit(link)
        port = f":{parts.port}" if parts.port not in (None, 80, 443) else ""
    except ValueError:
        return link
    if not parts.hostname:
        return link
    query = urlencode([pair for pair in parse_qsl(parts.query, keep_blank_values=True) if not _NOISE.match(pair[0])])
    host = parts.hostname.removeprefix("www.")
    return urlunsplit(("https", host + port, parts.path.rstrip("/"), query if query else "", ""))
