"""Reads the columns of a section's roots into arrays, in batches.

MySQL and MariaDB concatenate a batch into one text: a driver that creates a Python object per value would take five
times as long as the database (1,000,000 roots: 4 to 5 s against 25 s).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    case,
    cast,
    extract,
    func,
    literal_column,
    select,
    text,
)

from douban_pipeline.comments.heat.graph import Column
from douban_pipeline.comments.store.tables import comment, content, impression, score
from douban_pipeline.comments.types import Attribute, CommentStatus
from douban_pipeline.core.database import chunks

BATCH = 20_000
_PACKED = 64_000_000
"""Maximum number of characters of a packed batch: far more than any batch has."""
_UNIX = 62_167_219_200
"""``TO_SECONDS`` of 1970-01-01."""
_C = comment.c
_DAY, _WEEK = timedelta(days=1), timedelta(days=7)
WINDOWED = {
    "impressions",
    "likes_day",
    "impressions_day",
    "likes_week",
    "impressions_week",
}
"""Columns that are summed up from impressions and likes by the hour."""
_COUNTERS = {
    "likes": _C.like_count,
    "dislikes": _C.dislike_count,
    "reports": _C.report_count,
    "replies": _C.child_visible,
    "length": _C.length,
    "level": _C.level,
}
_FLAGS = {
    "owner_liked": Attribute.OWNER_LIKED,
    "owner_replied": Attribute.OWNER_REPLIED,
    "featured": Attribute.FEATURED,
    "promoted": Attribute.PROMOTED,
}


class ColumnsError(RuntimeError):
    """The database returned an incomplete batch; nothing was computed from it."""


@dataclass(frozen=True, slots=True)
class SectionColumns:
    """The roots of a section, in no particular order.

    Attributes:
        read: The requested columns of `heat.factors.READ`.
    """

    ids: Column
    shown: Column
    stored: Column
    scored: Column
    read: dict[str, Column]

    def __len__(self) -> int:
        """Return the number of roots."""
        return len(self.ids)


def read_columns(
    connection: Connection, section_id: int, wanted: Collection[str], now: datetime, *, only: int | None = None
) -> SectionColumns:
    """Return the roots of a section, shown or not, with the columns ``wanted``.

    Args:
        wanted: Names of columns, as `heat.ranking.columns_to_read` returns them.
        only: Id of the root to read; None for all.

    Raises:
        ColumnsError: The database truncated a batch.
    """
    if _packs(connection):
        connection.execute(text("SET SESSION group_concat_max_len = :most"), {"most": _PACKED})
    roots = [_C.section_id == section_id, _C.root_id == 0, *([_C.comment_id == only] if only is not None else [])]
    rows = _batches(connection, roots)
    ids = rows[:, 0]
    stored, scored = _stored(connection, section_id, ids)
    read: dict[str, Column] = {}
    for at, name in enumerate(_COUNTERS, start=1):
        if name in wanted:
            read[name] = rows[:, at].astype(np.int32)
    status, attributes, publisher, seconds = (rows[:, len(_COUNTERS) + each] for each in range(1, 5))
    for name, bit in _FLAGS.items():
        if name in wanted:
            read[name] = attributes & int(bit) != 0
    if "guest" in wanted:
        read["guest"] = publisher == 0
    if "age_hours" in wanted:
        read["age_hours"] = np.maximum(now.timestamp() - seconds, 0.0) / 3600
    if WINDOWED & set(wanted):
        read |= {name: each for name, each in _windows(connection, section_id, ids, now).items() if name in wanted}
    if "content" in wanted:
        read["content"] = _texts(connection, roots, ids)
    return SectionColumns(ids.copy(), status == CommentStatus.NORMAL, stored, scored, read)


def _batches(connection: Connection, roots: Sequence[ColumnElement[bool]]) -> Column:
    of_comment = (_C.comment_id, *_COUNTERS.values(), _C.status, _C.attributes, _C.publisher_id)
    wanted: list[ColumnElement[Any]] = [*of_comment, _seconds(connection, _C.created_at)]
    # The section's index is ordered by status, then id: only per status is a batch found without sorting all rows.
    return np.concatenate(
        [_read(connection, wanted, _C.comment_id, (*roots, _C.status == status)) for status in CommentStatus]
    )


def _seconds(connection: Connection, moment: ColumnElement[Any]) -> ColumnElement[int]:
    """Return the whole seconds since 1970 of a timestamp column, independent of the session's time zone."""
    if _packs(connection):
        return func.to_seconds(moment, type_=BigInteger) - _UNIX
    if connection.dialect.name == "postgresql":
        return cast(func.floor(extract("epoch", moment)), BigInteger)
    return cast(func.strftime("%s", moment), Integer)


def _stored(connection: Connection, section_id: int, ids: Column) -> tuple[Column, Column]:
    scored = case((score.c.score_at.is_(None), 0), else_=1).label("scored")
    query = select(score.c.comment_id, score.c.heat, scored).where(score.c.section_id == section_id)
    rows = _of_ids(connection, query, score.c.comment_id, ids)
    heat, known = np.zeros(len(ids), dtype=np.int64), np.zeros(len(ids), dtype=bool)
    at, found = _places(ids, rows[:, 0])
    heat[at], known[at] = rows[found, 1], rows[found, 2] == 1
    return heat, known


def _windows(connection: Connection, section_id: int, ids: Column, now: datetime) -> dict[str, Column]:
    """Return impressions in total, of the last day and of the last week, and likes of the last day and week."""
    query = _sums(now).where(impression.c.section_id == section_id)
    return _summed(ids, _of_ids(connection, query, impression.c.comment_id, ids), {})


def windows_of(
    connection: Connection, ids: Column, stored: Sequence[int], now: datetime, liked: Mapping[int, int]
) -> dict[str, Column]:
    """Return the columns `WINDOWED` of a few roots, whatever their sections.

    Args:
        stored: Those of them that may have rows.
    """
    rows = [
        tuple(row)
        for part in chunks(stored)
        for row in connection.execute(_sums(now).where(impression.c.comment_id.in_(part)))
    ]
    return _summed(ids, _numbers(rows, 1 + len(_SUMMED)), liked)


_SUMMED = ("impressions", "impressions_day", "likes_day", "impressions_week", "likes_week")


def _sums(now: datetime) -> Select[Any]:
    """Return the query of `_SUMMED` by comment."""
    day, week = (impression.c.hour > now - each for each in (_DAY, _WEEK))
    numbers = (
        func.sum(impression.c.shown),
        func.sum(case((day, impression.c.shown), else_=0)),
        func.sum(case((day, impression.c.liked), else_=0)),
        func.sum(case((week, impression.c.shown), else_=0)),
        func.sum(case((week, impression.c.liked), else_=0)),
    )
    named = (cast(each, BigInteger).label(name) for name, each in zip(_SUMMED, numbers, strict=True))
    return select(impression.c.comment_id, *named).group_by(impression.c.comment_id)


def _summed(ids: Column, rows: Column, liked: Mapping[int, int]) -> dict[str, Column]:
    found = {name: np.zeros(len(ids), dtype=np.int32) for name in _SUMMED}
    at, known = _places(ids, rows[:, 0])
    for position, name in enumerate(_SUMMED, start=1):
        found[name][at] = rows[known, position]
    gained = np.array([liked.get(number, 0) for number in ids.tolist()], dtype=np.int32) if liked else 0
    for name in ("likes_day", "likes_week"):
        # Likes withdrawn in a later hour than they were given may make a window negative.
        found[name] = np.maximum(found[name] + gained, 0)
    return found


def texts_of(connection: Connection, ids: Sequence[int]) -> dict[int, str]:
    """Return the texts of a few comments, by id."""
    query = select(content.c.comment_id, content.c.content)
    return {
        row.comment_id: row.content
        for part in chunks(ids)
        for row in connection.execute(query.where(content.c.comment_id.in_(part)))
    }


def _texts(connection: Connection, roots: Sequence[ColumnElement[bool]], ids: Column) -> Column:
    texts = np.full(len(ids), "", dtype=object)
    query = (
        select(content.c.comment_id, content.c.content)
        .join(comment, _C.comment_id == content.c.comment_id)
        .where(*roots)
    )
    order = np.argsort(ids)
    for rows in connection.execution_options(yield_per=BATCH).execute(query).partitions():
        at, known = _places(ids, np.array([row.comment_id for row in rows], dtype=np.int64), order)
        texts[at] = np.array([row.content for row in rows], dtype=object)[known]
    return texts


def _places(ids: Column, keys: Column, order: Column | None = None) -> tuple[Column, Column]:
    """Return the positions in ``ids`` of those ``keys`` that occur there, and the positions of these keys."""
    if not len(ids) or not len(keys):
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing
    order = np.argsort(ids) if order is None else order
    near = order[np.minimum(np.searchsorted(ids, keys, sorter=order), len(ids) - 1)]
    known = np.flatnonzero(ids[near] == keys)
    return near[known], known


def _of_ids(connection: Connection, query: Select[Any], key: ColumnElement[int], ids: Column) -> Column:
    """Return the rows of an integer query, in batches of ascending ``ids``.

    The database looks ids up where a section is large, and uses the section's index where it is small.
    """
    rising = np.sort(ids)
    batches: list[Column] = []
    for start in range(0, len(rising), BATCH):
        part = rising[start : start + BATCH]
        within = query.where(key.between(int(part[0]), int(part[-1])))
        if _packs(connection):
            rows = within.subquery()
            count, packed = connection.execute(_pack(list(rows.c))).one()
            batches += _unpacked(count, packed, len(rows.c))
        else:
            batches.append(_numbers(connection.execute(within).all(), len(query.selected_columns)))
    return np.concatenate(batches) if batches else np.zeros((0, len(query.selected_columns)), dtype=np.int64)


def _packs(connection: Connection) -> bool:
    return connection.dialect.name in ("mysql", "mariadb")


def _read(
    connection: Connection,
    wanted: Sequence[ColumnElement[Any]],
    key: ColumnElement[int],
    where: Sequence[ColumnElement[bool]],
) -> Column:
    """Return integer columns of all rows, batch by batch along ``key``."""
    packs = _packs(connection)
    batches = list(_packed(connection, wanted, key, where) if packs else _plain(connection, wanted, where))
    return np.concatenate(batches) if batches else np.zeros((0, len(wanted)), dtype=np.int64)


def _packed(
    connection: Connection,
    wanted: Sequence[ColumnElement[Any]],
    key: ColumnElement[int],
    where: Sequence[ColumnElement[bool]],
) -> Iterator[Column]:
    query = _pack(wanted).where(*where)
    ends = select(key).where(*where).order_by(key).limit(1).offset(BATCH - 1)
    last = -1
    while True:
        end = connection.execute(ends.where(key > last)).scalar()
        part = query.where(key > last)
        count, packed = connection.execute(part if end is None else part.where(key <= end)).one()
        yield from _unpacked(count, packed, len(wanted))
        if end is None:
            return
        last = end


def _pack(wanted: Sequence[ColumnElement[Any]]) -> Select[tuple[int, str]]:
    """Return a query for the number of rows and for all their numbers as one text."""
    row = func.concat_ws(literal_column("' '"), *wanted)
    return select(func.count(), func.group_concat(row.op("SEPARATOR")(literal_column("' '"))))


def _unpacked(count: int, packed: str | None, width: int) -> Iterator[Column]:
    if not count:
        return
    numbers = np.fromstring(packed or "", dtype=np.int64, sep=" ")
    if len(numbers) != count * width:
        raise ColumnsError(f"{len(numbers)} values of {count} rows of {width}: the database cut them short")
    yield numbers.reshape(count, width)


def _numbers(rows: Sequence[Any], width: int) -> Column:
    return np.array([tuple(row) for row in rows], dtype=np.int64).reshape(len(rows), width)


def _plain(
    connection: Connection, wanted: Sequence[ColumnElement[Any]], where: Sequence[ColumnElement[bool]]
) -> Iterator[Column]:
    result = connection.execution_options(yield_per=BATCH).execute(select(*wanted).where(*where))
    for rows in result.partitions():
        yield _numbers(rows, len(wanted))
