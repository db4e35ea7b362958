"""Imports the CMS's own comments (`mac_comment`) as events, each once; the CMS's table is only read.

The source key of a comment, `source_of` its number in the CMS, is the request key of its event and is stored with the
comment: importing again changes nothing. A mark says where to continue, as comments without text have no event; where
there is none yet, the greatest key does. The CMS does not record who liked, disliked or reported; these counts become
votes and reports of anonymous voters, and from `IMPORTED_VOTES` of each on a number beside them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from html import unescape as unescape_html
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    MetaData,
    RowMapping,
    String,
    Table,
    func,
    select,
)

from douban_pipeline.cms.values import unescape
from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.comments.store.events import EventInput, append
from douban_pipeline.comments.store.marks import Mark, read_mark, store_mark
from douban_pipeline.comments.store.sections import ensure_section
from douban_pipeline.comments.store.tables import comment, event
from douban_pipeline.comments.types import IMPORTED, Actor, CommentStatus, EventKind, Rank, SectionType
from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.settings_base import BASE_PREFIX

BATCH = 500
_DIGITS = 12
_ENTITY = re.compile(r"&(?:[a-zA-Z][a-zA-Z0-9]{1,31}|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
_MARK = "imported"
_NUMBERS = ("comment_id", "comment_mid", "comment_rid", "comment_pid", "user_id", "comment_status", "comment_ip")
_COUNTS = ("comment_time", "comment_up", "comment_down", "comment_report")
_TEXTS = ("comment_name", "comment_content")


@dataclass(frozen=True, slots=True)
class ImportReport:
    """Result of an import.

    Attributes:
        skipped: Comments without text; comments of types without sections are not read.
        orphans: Replies whose parent does not exist; they are imported as roots.
    """

    taken: int = 0
    skipped: int = 0
    orphans: int = 0
    last: int = 0
    left: int = 0


def as_typed(stored: str) -> str:
    """Return the text of a comment of the CMS as its visitor typed it.

    The CMS's form writes every sign that HTML has a name for by that name, quotation marks and dots of Chinese among
    them, and then escapes the text as all others.
    """
    return _ENTITY.sub(lambda found: unescape_html(found[0]), unescape(stored)).strip()


def source_of(number: int) -> str:
    """Return the source key of a comment of the CMS, padded to a fixed length so that keys sort by number."""
    return f"{IMPORTED}{number:0{_DIGITS}d}"


def take_in(services: CommentsServices, most: int) -> ImportReport | None:
    """Import the next comments of the CMS; return None where no CMS is configured or it has no table of comments.

    Args:
        most: Maximum number of comments of the CMS to read.
    """
    settings = services.settings
    url = settings.library_url.get_secret_value()
    if not url:
        return None
    table = _table(settings.table_prefix)
    library = services.others.engine_with(table, url, setting=f"{BASE_PREFIX}DATABASE_URL")
    return None if library is None else _take_in(services, library, table, most)


def _table(prefix: str) -> Table:
    numbers = [Column(name, BigInteger) for name in (*_NUMBERS, *_COUNTS)]
    return Table(f"{prefix}comment", MetaData(), *numbers, *(Column(name, String(255)) for name in _TEXTS))


def _take_in(services: CommentsServices, library: Engine, table: Table, most: int) -> ImportReport:
    with reading(services.engine) as connection:
        last = last_taken(connection)
    of_sections = table.c.comment_mid.in_(SectionType)
    taken = skipped = orphans = 0
    while most > 0:
        with reading(library) as connection:
            query = select(table).where(table.c.comment_id > last, of_sections)
            query = query.order_by(table.c.comment_id)
            rows = list(connection.execute(query.limit(min(BATCH, most))).mappings())
        if not rows:
            break
        # Before the transaction: ids need a lease, which has a transaction of its own.
        numbers = [services.numbers.next() for _ in rows]
        work = partial(_store, rows=rows, numbers=numbers, now=services.clock.now())
        done = run_transaction(services.engine, work)
        taken, skipped, orphans = taken + done[0], skipped + done[1], orphans + done[2]
        last, most = rows[-1]["comment_id"], most - len(rows)
    remaining = select(func.count()).select_from(table).where(table.c.comment_id > last, of_sections)
    with reading(library) as connection:
        left = connection.execute(remaining).scalar_one()
    return ImportReport(taken, skipped, orphans, last, left)


def last_taken(connection: Connection) -> int:
    """Return the greatest number of the CMS that was read; 0 before the first."""
    known = read_mark(connection, _MARK)
    if known is not None:
        return known.number
    found = []
    for column in (event.c.request_key, comment.c.source_key):
        within = column.between(source_of(0), source_of(10**_DIGITS - 1))
        found.append(connection.execute(select(func.max(column)).where(within)).scalar())
    return max(int(each.removeprefix(IMPORTED)[:_DIGITS]) if each else 0 for each in found)


def _store(
    connection: Connection, rows: Sequence[RowMapping], numbers: Sequence[int], now: datetime
) -> tuple[int, int, int]:
    """Write the events of comments; return the numbers of imported, skipped and orphaned comments."""
    # A comment that another run has imported since keeps the id it got there.
    known = _ids(connection, {row[name] for row in rows for name in ("comment_id", "comment_pid") if row[name]})
    sections: dict[tuple[int, int], int] = {}
    given: list[EventInput] = []
    skipped = orphans = 0
    for row, number in zip(rows, numbers, strict=True):
        text = as_typed(row["comment_content"] or "")
        if not text:
            skipped += 1
            continue
        place = (row["comment_mid"], row["comment_rid"])
        if place not in sections:
            sections[place] = ensure_section(connection, *place, now)
        parent = known.get(row["comment_pid"], 0)
        orphans += bool(row["comment_pid"]) and not parent
        known.setdefault(row["comment_id"], number)
        given += _events(row, text, sections[place], number, parent)
    append(connection, given, now)
    store_mark(connection, Mark(_MARK, rows[-1]["comment_id"], now))
    return len(rows) - skipped, skipped, orphans


def _events(row: RowMapping, text: str, section_id: int, number: int, parent: int) -> list[EventInput]:
    """Return the event that publishes a comment and, if the CMS hides it, the event that puts it under review."""
    source = source_of(row["comment_id"])
    user = row["user_id"]
    name = unescape(row["comment_name"] or "")
    author = Actor(f"u:{user}" if user else "g:mac", user, name, rank=Rank.OPERATOR)
    imported = {
        "at": row["comment_time"],
        "likes": row["comment_up"],
        "dislikes": row["comment_down"],
        "reports": row["comment_report"],
    }
    payload: dict[str, Any] = {"content": text, "parent_id": parent, "source_key": source, "imported": imported}
    payload |= {"name": name} if name else {}
    if 0 < row["comment_ip"] < 2**32:
        payload["ip"] = str(ipaddress.IPv4Address(row["comment_ip"]))
    published = EventInput(section_id, EventKind.PUBLISH, author, source, number, payload)
    if row["comment_status"] == 1:
        return [published]
    automation = Actor("auto", rank=Rank.AUTOMATION)
    hidden = {"status": int(CommentStatus.REVIEW), "reason": "在 CMS 中未显示"}
    return [published, EventInput(section_id, EventKind.SET_STATUS, automation, f"{source}:hidden", number, hidden)]


def _ids(connection: Connection, numbers: set[int]) -> dict[int, int]:
    """Return our ids of comments of the CMS, whether or not their events were applied yet."""
    keys = {source_of(number): number for number in numbers}
    waiting = select(event.c.request_key, event.c.comment_id).where(event.c.request_key.in_(keys))
    stored = select(comment.c.source_key, comment.c.comment_id).where(comment.c.source_key.in_(keys))
    return {keys[key]: number for query in (waiting, stored) for key, number in connection.execute(query)}
