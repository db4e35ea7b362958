"""The store: API of PostgreSQL's schema ``tmdb`` for the rest of the system. Thread-safe."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Self, TypeVar
from uuid import UUID, uuid4

import msgspec
import stamina
from psycopg import Connection, Error, OperationalError
from psycopg.errors import DeadlockDetected, SerializationFailure, UniqueViolation
from psycopg.types.json import set_json_loads
from sqlalchemy import Engine, event, make_url
from sqlalchemy.exc import TimeoutError as PoolTimeout

from douban_pipeline.core.database import open_engine
from douban_pipeline.tmdb.answers import language_of
from douban_pipeline.tmdb.projection import key_of
from douban_pipeline.tmdb.store import expired_facts, genres, lookups, outbox, requests
from douban_pipeline.tmdb.store.entities import EntityAnswer, EntityWriter, Stored
from douban_pipeline.tmdb.store.expired_facts import FactsPlace
from douban_pipeline.tmdb.store.migrations import TREE
from douban_pipeline.tmdb.store.payloads import answers_of, named_in, without_outdated
from douban_pipeline.tmdb.store.statements import TABLES
from douban_pipeline.tmdb.types import EntityType

_Result = TypeVar("_Result")

POOL_MAX = 10
"""Most connections of a process: PostgreSQL's default of 100 serves ten processes."""
LOOKUPS = 6
"""Those of them that only look up what questions name; a store without such questions opens none."""
LOOKUP_SECONDS = 0.5
"""Time limit of a look-up's statement, and of its wait for a connection: somebody waits for the answer."""
WAIT_SECONDS = 30.0
"""Seconds a caller waits for a connection."""
ATTEMPTS = 5
"""Number of attempts for a transaction that is rolled back in favour of another one."""
SETTING = "DOUBAN_PIPELINE_TMDB_DATABASE_URL"
_decoder = msgspec.json.Decoder()
_GRAPH_LOCK = 0x746D6462
"""Key of the advisory lock held while writing to the graph."""


@dataclass(frozen=True, slots=True)
class ShownEntity:
    """Stored data of an entity for the graph."""

    full: bool
    columns: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Number of rows of a type: full ones, stubs, and those of both that TMDB no longer has."""

    full: int
    stubs: int
    gone: int


class PostgresTmdbStore:
    """Raw answers, requests and the outbox. SQLAlchemy's engine opens and keeps connections; psycopg sends statements.

    Args:
        dsn: ``postgresql://…``; SQLAlchemy's forms with a driver are accepted.
        min_size: Connections that stay open.
        max_size: Most open connections.
        language: The base language: the language of base rows as soon as there is an answer in it.
        create_schema: Create or upgrade the schema at the first use, for development.
        wait_seconds: Seconds a caller waits for a connection.
    """

    def __init__(
        self,
        dsn: str,
        min_size: int = 1,
        max_size: int = POOL_MAX,
        language: str = "zh-CN",
        *,
        create_schema: bool = False,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        self.language = language
        self._create_schema = create_schema
        size = {"pool_size": min_size, "max_overflow": max_size - min_size, "pool_timeout": wait_seconds}
        url = make_url(dsn).set(drivername="postgresql+psycopg")
        self.engine = open_engine(url, setting=SETTING, **size)
        # Without transactions, and with the time limit of a connection: a look-up is one round trip.
        few = {"pool_size": LOOKUPS, "max_overflow": 0, "pool_timeout": LOOKUP_SECONDS}
        self._lookups = open_engine(url, setting=SETTING, seconds=LOOKUP_SECONDS, **few)
        event.listen(self.engine, "connect", _compress)
        event.listen(self._lookups, "connect", _commit_each)
        for engine, seconds in ((self.engine, wait_seconds), (self._lookups, LOOKUP_SECONDS)):
            event.listen(engine, "do_connect", partial(_give_up, min(10, max(1, round(seconds)))))

    # --- connections and transactions ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Close all connections; safe to repeat."""
        self.engine.dispose()
        self._lookups.dispose()

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections."""
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Yield a connection in a transaction, committed at the end of the block."""
        if self._create_schema:
            self._create_schema = False
            self.upgrade()
        with _lent(self.engine) as connection:
            yield connection

    @contextmanager
    def lookup(self) -> Iterator[Connection]:
        """Yield a connection for look-ups, each its own transaction; it waits `LOOKUP_SECONDS` at most, and so does
        each statement."""
        with _lent(self._lookups) as connection:
            yield connection

    def run(self, work: Callable[[Connection], _Result]) -> _Result:
        """Run ``work`` in a transaction and return its result; repeat it if it is rolled back for another one.

        Raises:
            psycopg.Error: It failed for another reason, or too often.
        """
        for attempt in stamina.retry_context(
            on=(DeadlockDetected, SerializationFailure, UniqueViolation), attempts=ATTEMPTS, wait_initial=0.02
        ):
            with attempt, self.transaction() as connection:
                return work(connection)
        raise AssertionError("the last attempt returns or raises")

    @contextmanager
    def graph_lock(self) -> Iterator[None]:
        """Hold the lock for writing to the graph, exclusive over all processes; waits for the present holder."""
        with self.transaction() as connection:
            connection.execute("SET LOCAL lock_timeout = 0")
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_GRAPH_LOCK,))
            yield

    # --- the schema ---------------------------------------------------------------------------------------------------

    def upgrade(self) -> tuple[str | None, str]:
        """Create the schema or bring it up to date; return the version before and after.

        Raises:
            DatabaseError: Permission is missing, or the schema belongs to something else.
        """
        return TREE.upgrade(self.engine)

    def ready(self) -> Self:
        """Return self if the schema is at this release's version.

        Raises:
            DatabaseError: It is missing or at another version; the message says what to run.
        """
        TREE.ensure(self.engine)
        return self

    # --- writing ------------------------------------------------------------------------------------------------------

    async def persist_enrichment(
        self,
        *,
        user_id: str,
        session_id: str,
        query_text: str,
        tmdb_endpoint: str,
        extracted_entities: list[str] | None,
        disambiguation: list[dict[str, Any]] | None,
        payloads: list[dict[str, Any]] | None,
        request_id: str | None = None,
        conversation_id: UUID | None = None,
        user_message_id: UUID | None = None,
        candidates_top3: Any | None = None,
        multi_results_raw: Any | None = None,
        discover_results_raw: Any | None = None,
        role_hint: str | None = None,
        tmdb_language: str | None = None,
        duration_ms: float | None = None,
        logged_id: UUID | None = None,
    ) -> None:
        """Store the result of one user's question in one transaction: log, answers and outbox.

        A payload is ``{"type": "movie", "data": …}``, with ``"language"`` if it is not ``tmdb_language`` and
        ``"fetched_at"`` (ISO) if it was not just fetched: one older than the stored answer is only referenced. A
        payload that is not an answer about an entity is left out with a warning. With ``logged_id`` the question is
        logged under that id; logging it again does nothing.

        Raises:
            psycopg.Error: PostgreSQL refused it; nothing was written.
        """
        request = requests.LoggedRequest(
            user_id=user_id,
            session_id=session_id,
            query_text=query_text,
            tmdb_endpoint=tmdb_endpoint,
            extracted_entities=extracted_entities,
            disambiguation=disambiguation,
            payloads=payloads,
            request_id=request_id,
            conversation_id=conversation_id,
            user_message_id=user_message_id,
            candidates_top3=candidates_top3,
            multi_results_raw=multi_results_raw,
            discover_results_raw=discover_results_raw,
            role_hint=role_hint,
            tmdb_language=tmdb_language,
            duration_ms=duration_ms,
        )
        await asyncio.to_thread(self.persist_questions, {logged_id or uuid4(): request})

    def persist_questions(self, asked: Mapping[UUID, requests.LoggedRequest]) -> None:
        """Store the results of questions in one transaction, each under its id; see `persist_enrichment`.

        Raises:
            psycopg.Error: PostgreSQL refused one of them; nothing was written.
        """
        found = {
            logged_id: list(answers_of(request.payloads or (), language_of(request.tmdb_language) or self.language))
            for logged_id, request in asked.items()
        }

        def work(connection: Connection) -> None:
            logged = requests.logged_of(connection, asked)
            new = []
            for logged_id, request in asked.items():
                if logged_id in logged:
                    continue
                answers = found[logged_id]
                if answers:
                    writer = EntityWriter(connection, self.language, request.request_id)
                    writer.write(without_outdated(connection, answers))
                    # Namesakes are known from then on, so that the store can tell them apart.
                    listed = (request.multi_results_raw, request.discover_results_raw)
                    named_in(writer, request.tmdb_endpoint, listed, answers[0])
                new.append((logged_id, request, [key_of(each.entity, each.raw) for each in answers]))
            requests.log_requests(connection, new)

        self.run(work)

    def persist_payloads(self, answers: Sequence[EntityAnswer]) -> list[Stored]:
        """Store answers without a user's question, in one transaction; return the result of each.

        Raises:
            PayloadError: One is not an answer about an entity; nothing was written.
            psycopg.Error: PostgreSQL refused it; nothing was written.
        """
        return self.write(lambda writer: writer.write(answers))

    def write(self, work: Callable[[EntityWriter], _Result]) -> _Result:
        """Run ``work`` with a writer in one transaction, possibly repeatedly; return its result."""
        return self.run(lambda connection: work(EntityWriter(connection, self.language)))

    # --- deleting -----------------------------------------------------------------------------------------------------

    def delete_user(self, user_id: str) -> int:
        """Delete all questions of a user; return how many there were."""
        return self.run(lambda connection: requests.delete_of_user(connection, user_id))

    def delete_request(self, logged_id: UUID) -> int:
        """Delete one question; return how many there were."""
        return self.run(lambda connection: requests.delete_one(connection, logged_id))

    def delete_conversation(self, conversation_id: UUID) -> int:
        """Delete the questions of a conversation; return how many there were."""
        return self.run(lambda connection: requests.delete_of_conversation(connection, conversation_id))

    def delete_requests(self, before: datetime) -> int:
        """Delete questions from before a given time, in several transactions; return how many there were."""
        return self._in_pieces(lambda connection: requests.delete_before(connection, before))

    def prune_outbox(self, before: datetime) -> int:
        """Delete outbox rows completed before a given time; return how many."""
        return self.run(lambda connection: outbox.prune(connection, before))

    def expire(self, before: datetime) -> dict[FactsPlace, int]:
        """Remove TMDB's facts from before a given time, wherever they are, and queue their entities for the graph.

        Returns of how many rows, by place.
        """
        return {place: self._in_pieces(partial(place.expire, before=before)) for place in expired_facts.PLACES}

    def _in_pieces(self, work: Callable[[Connection], int]) -> int:
        total = 0
        while done := self.run(work):
            total += done
        return total

    # --- reading ------------------------------------------------------------------------------------------------------

    def shown(self, entity: EntityType, ids: Iterable[int]) -> dict[int, ShownEntity]:
        """Return the data for the graph of entities, by id; unknown ones are left out."""
        table = TABLES[entity]
        with self.transaction() as connection:
            rows = connection.execute(table.rows, {"ids": sorted(ids)}).fetchall()
        return {row[0]: ShownEntity(row[1], dict(zip(table.shown, row[2:], strict=True))) for row in rows}

    def raws(self, entity: EntityType, ids: Iterable[int]) -> dict[int, dict[str, Any]]:
        """Return the answers of full entities that are not gone, by id."""
        return {tmdb_id: raw for tmdb_id, (_, raw) in self.dated_raws(entity, ids).items()}

    def dated_raws(self, entity: EntityType, ids: Iterable[int]) -> dict[int, tuple[datetime, dict[str, Any]]]:
        """Return the same answers, each with the time at which TMDB sent it."""
        with self.transaction() as connection:
            rows = connection.execute(TABLES[entity].raws, {"ids": sorted(ids)}).fetchall()
        return {tmdb_id: (fetched_at, raw) for tmdb_id, raw, fetched_at in rows}

    def genre_names(self, ids: Iterable[int]) -> dict[int, str | None]:
        """Return names of genres by id."""
        with self.transaction() as connection:
            return genres.names(connection, ids)

    def full_ids(self, entity: EntityType, most: int = 500) -> Iterator[tuple[datetime, int]]:
        """Yield the ids of full entities with the times of their answers, the oldest first, read ``most`` at a time."""
        last = (datetime.min.replace(tzinfo=UTC), 0)
        while True:
            with self.transaction() as connection:
                parameters = {"at": last[0], "after": last[1], "most": most}
                rows: list[tuple[datetime, int]] = connection.execute(TABLES[entity].page, parameters).fetchall()
            yield from rows
            if len(rows) < most:
                return
            last = rows[-1]

    def people_crediting(self, titles: Mapping[EntityType, Iterable[int]]) -> list[int]:
        """Return full people whose answers name one of these titles, by index."""
        with self.transaction() as connection:
            return lookups.people_crediting(connection, titles)

    def row_counts(self) -> dict[EntityType, RowCounts]:
        """Return how many rows there are of each type."""
        found = {}
        with self.transaction() as connection:
            for entity, table in TABLES.items():
                row = connection.execute(table.counts).fetchone()
                assert row is not None
                found[entity] = RowCounts(*row)
        return found


@contextmanager
def _lent(engine: Engine) -> Iterator[Connection]:
    try:
        lent = engine.raw_connection()
    except PoolTimeout as error:
        raise OperationalError(str(error)) from error
    connection: Connection = lent.driver_connection  # type: ignore[assignment]
    try:
        yield connection
        connection.commit()
    except BaseException:
        with suppress(Error):
            connection.rollback()
        raise
    finally:
        if connection.closed:  # the server went away
            lent.invalidate()
        lent.close()


def _compress(connection: Connection, _record: object) -> None:
    """Compress long answers with LZ4 if the server supports it (14 and later): that halves the time."""
    connection.execute(
        "SELECT set_config(name, 'lz4', false) FROM pg_settings "
        "WHERE name = 'default_toast_compression' AND 'lz4' = ANY(enumvals)"
    )
    connection.commit()
    _read_json_fast(connection)


def _commit_each(connection: Connection, _record: object) -> None:
    connection.autocommit = True
    _read_json_fast(connection)


def _read_json_fast(connection: Connection) -> None:
    """Read answers with msgspec, which takes half the time."""
    set_json_loads(_decoder.decode, connection)


def _give_up(seconds: int, _dialect: object, _record: object, _arguments: object, options: dict[str, Any]) -> None:
    options["connect_timeout"] = seconds
