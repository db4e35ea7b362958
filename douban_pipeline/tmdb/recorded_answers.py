"""Loads recorded answers into the store as if TMDB had just sent them.

A file holds one exchange per line: JSON with ``path``, ``query``, ``status``, ``body``, optionally ``method``,
``recorded``. It may be compressed with gzip, xz or bzip2. The newer answer wins, whatever the order of files and
lines: one was given when it was ``recorded``, else when its file was last changed; of one moment the later line is
newer.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from psycopg import DataError

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.files import FILE_PROBLEMS, unpacked, what_is_wrong
from douban_pipeline.tmdb.answers import AnswerReading, Meaning, TmdbRequest, read_answer, request_of, without_appended
from douban_pipeline.tmdb.projection import is_full
from douban_pipeline.tmdb.store import genres
from douban_pipeline.tmdb.store.entities import EntityAnswer, EntityWriter, Stored, StoreResult, prepare
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.types import EntityKey, EntityType, PayloadError
from douban_pipeline.tmdb.values import moment_of

BATCH = 50
"""Number of lines per transaction."""
UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One recorded request with its answer, and its position."""

    place: str
    request: TmdbRequest
    status: int
    body: Any
    fetched_at: datetime
    reading: AnswerReading


@dataclass(frozen=True, slots=True)
class Loaded:
    """Result of one line.

    Attributes:
        meaning: Meaning of the answer, or `UNREADABLE`.
        entity: The entity it is about; None if none or several.
        change: What changed, for an entity.
        full: Whether it is the entity's base row, from which the graph is built.
    """

    place: str
    request: str
    meaning: str
    language: str = ""
    entity: EntityKey | None = None
    change: StoreResult | None = None
    full: bool = False
    note: str = ""

    @property
    def outcome(self) -> str:
        """What changed, or the meaning where nothing could."""
        if self.change is None:
            return self.meaning
        beside = "" if self.full or self.change is StoreResult.GONE else " (beside the base row)"
        return f"{self.change.value}{beside}"

    def __str__(self) -> str:
        """Return it in a line."""
        place = f"{self.place}: " if self.meaning == UNREADABLE else ""
        note = f"  ({place}{self.note})" if self.note else ""
        return f"{self.entity or self.request or self.place}: {self.change or self.meaning}{note}"


def load(store: PostgresTmdbStore, paths: Sequence[Path], clock: Clock) -> Iterator[Loaded]:
    """Load the files, and yield the result of each line; yielded lines are committed.

    Raises:
        ProblemsError: A file cannot be opened, or ends in the middle.
        psycopg.Error: PostgreSQL does not answer.
    """
    batch: list[Exchange] = []
    for path in paths:
        written = _changed_at(path)
        for number, line in read_lines(path):
            if not line.strip():
                continue
            place = f"{path.name}:{number}"
            exchange = _read(place, line, written + timedelta(microseconds=number), clock.now())
            if isinstance(exchange, Loaded):
                yield from _store(store, batch)
                batch = []
                yield exchange
                continue
            batch.append(exchange)
            if len(batch) == BATCH:
                yield from _store(store, batch)
                batch = []
    yield from _store(store, batch)


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file, compressed or not, with their numbers.

    Raises:
        ProblemsError: It cannot be opened, or ends in the middle.
    """
    try:
        with unpacked(path) as file:
            yield from enumerate(file, 1)
    except FILE_PROBLEMS as error:
        raise ProblemsError([f"{path} cannot be read to its end: {what_is_wrong(error)}"]) from error


def _changed_at(path: Path) -> datetime:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError as error:
        raise ProblemsError([f"{path} cannot be read: {error.strerror}"]) from error


def _read(place: str, line: bytes, written: datetime, now: datetime) -> Exchange | Loaded:
    try:
        item = json.loads(line)
        if not isinstance(item, dict) or not isinstance(item.get("path"), str):
            raise ValueError("no request: it has no path")
        body = item.get("body")
        if isinstance(body, str) and body[:1] in "{[":
            body = json.loads(body)
        status = int(item.get("status", 200))
        request = request_of(item["path"], item.get("query"))
    except (ValueError, TypeError, RecursionError) as error:
        return Loaded(place, "", UNREADABLE, note=f"{error}"[:200])
    moment = min(now, moment_of(item.get("recorded")) or written)
    return Exchange(place, request, status, body, moment, read_answer(request, status, body))


def _store(store: PostgresTmdbStore, batch: Sequence[Exchange]) -> list[Loaded]:
    """Store exchanges in one transaction; if one of them cannot be stored, use one transaction each."""
    if not batch:
        return []
    try:
        return store.write(lambda writer: _write(writer, batch))
    except (PayloadError, DataError) as error:
        if len(batch) == 1:
            return [Loaded(batch[0].place, batch[0].request.path, UNREADABLE, note=" ".join(str(error).split())[:200])]
        return [loaded for exchange in batch for loaded in _store(store, [exchange])]


def _write(writer: EntityWriter, batch: Sequence[Exchange]) -> list[Loaded]:
    found: list[Loaded] = []
    waiting: list[tuple[Exchange, EntityAnswer]] = []
    # Equal moments keep the order of their lines.
    for exchange in sorted(batch, key=lambda each: each.fetched_at):
        reading = exchange.reading
        if reading.meaning is Meaning.ENTITY and reading.entity is not None:
            raw = exchange.body
            if not is_full(reading.entity, raw):
                raw = without_appended(exchange.request, raw)
            answer = EntityAnswer(reading.entity, raw, exchange.request.language, exchange.fetched_at)
            prepare(answer)
            waiting.append((exchange, answer))
            continue
        found += _write_entities(writer, waiting)
        waiting = []
        found.append(_write_other(writer, exchange))
    return found + _write_entities(writer, waiting)


def _write_entities(writer: EntityWriter, waiting: Sequence[tuple[Exchange, EntityAnswer]]) -> list[Loaded]:
    found = []
    for (exchange, _), each in zip(waiting, writer.write([answer for _, answer in waiting]), strict=True):
        older = each.change is StoreResult.OLDER
        note = each.change.value if older else _beside(each, exchange.request)
        found.append(
            _loaded(exchange, entity=each.key, change=None if older else each.change, full=each.full, note=note)
        )
    return found


def _beside(stored: Stored, request: TmdbRequest) -> str:
    return "" if stored.full else f"beside the base row, in {request.language}: without credits, or in another language"


def _write_other(writer: EntityWriter, exchange: Exchange) -> Loaded:
    reading, language = exchange.reading, exchange.request.language
    if reading.meaning is Meaning.GONE:
        if reading.key is None:
            return _loaded(exchange, note="TMDB does not know this id of another site")
        if writer.knows_newer(reading.key, None, exchange.fetched_at):
            return _loaded(exchange, entity=reading.key, note=StoreResult.OLDER.value)
        if writer.gone(reading.key, exchange.fetched_at):
            return _loaded(exchange, entity=reading.key, change=StoreResult.GONE, note=reading.why)
        return _loaded(exchange, entity=reading.key, note=f"{reading.why}, and it is not known here")
    if reading.meaning is Meaning.MENTIONS:
        named: dict[EntityType, list[Mapping[str, Any]]] = {}
        for mention in reading.mentions:
            named.setdefault(mention.type, []).append(mention.item)
        at = exchange.fetched_at
        new = sum(writer.mention(entity, items, language, at) for entity, items in sorted(named.items()))
        return _loaded(exchange, note=f"names {sum(map(len, named.values()))} entities, {new} of them new, as stubs")
    if reading.meaning is Meaning.TRANSLATIONS and reading.key is not None:
        changes = Counter(
            each.change.value for each in writer.translations(reading.key, exchange.body, exchange.fetched_at)
        )
        said = ", ".join(f"{count} {change}" for change, count in sorted(changes.items()))
        return _loaded(exchange, entity=reading.key, note=f"translations: {said or 'none'}")
    if reading.meaning is Meaning.GENRES:
        new = genres.add(writer.connection, exchange.body, language, writer.base, exchange.fetched_at)
        return _loaded(exchange, note=f"{new} new names of genres")
    return _loaded(exchange, note=reading.why)


def _loaded(exchange: Exchange, **more: Any) -> Loaded:
    language = exchange.request.language if exchange.reading.meaning is Meaning.ENTITY else ""
    return Loaded(exchange.place, exchange.request.path, exchange.reading.meaning.value, language, **more)
