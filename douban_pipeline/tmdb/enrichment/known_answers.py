"""What the store knows of a question: the entities with a name, chosen by the rules for TMDB's searches, and answers.

Nobody waits for a database that does not answer: a look-up has little time, and after a failure none is made for a
while.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from psycopg import Connection
from psycopg import Error as PostgresError

from douban_pipeline.core.clock import Clock
from douban_pipeline.tmdb.enrichment.choice import ScoredCandidate, WantedEntity, choose, is_uncertain, rank
from douban_pipeline.tmdb.store import credited, lookups
from douban_pipeline.tmdb.store.entities import EntityAnswer, EntityWriter
from douban_pipeline.tmdb.store.postgres import LOOKUP_SECONDS, LOOKUPS, PostgresTmdbStore
from douban_pipeline.tmdb.types import EntityKey, EntityType

_logger = logging.getLogger(__name__)
_Result = TypeVar("_Result")

PAUSES = (1.0, 30.0)
"""Seconds without look-ups after a failure: at first, and at most."""


@dataclass(frozen=True, slots=True)
class KnownAnswer(EntityAnswer):
    """An answer that the store holds: it need not be written again."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the store knows of a name.

    Attributes:
        ranked: The entities with that name, best first, full ones and stubs.
        uncertain: Whether another one is nearly as good.
    """

    ranked: Sequence[ScoredCandidate]
    chosen: ScoredCandidate
    uncertain: bool
    answer: KnownAnswer


class StoredTitles:
    """Looks up names and answers in the store.

    Args:
        fresh: How old an answer may be.
        threads: Look-ups at once; each takes a connection of the store's for look-ups.
    """

    def __init__(self, store: PostgresTmdbStore, clock: Clock, fresh: timedelta, threads: int = LOOKUPS) -> None:
        self._store = store
        self._clock = clock
        self._fresh = fresh
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="tmdb-known")
        self._began: dict[int, float] = {}
        self._pause = 0.0
        self._down_until = 0.0

    async def named(self, wanted: Sequence[WantedEntity], language: str) -> dict[str, Known]:
        """Return what is known of those names whose meaning is clear and whose answer is fresh, by name."""
        found = await self._look(lambda: self._named(wanted, language))
        return found or {}

    async def named_by_titles(self, wanted: Sequence[WantedEntity], language: str) -> dict[str, Known]:
        """Return what is known of those names for want of TMDB: also of people whom only stored titles name, and of
        the longest stored name in one that is not stored itself, as far as the question was misread."""
        found = await self._look(lambda: self._named(wanted, language, by_titles=True))
        return found or {}

    async def like(self, known: Known, most: int) -> list[ScoredCandidate]:
        """Return stored titles that share people and genres with a known one."""

        def look() -> list[ScoredCandidate]:
            with self._store.lookup() as connection:
                items = credited.like(connection, known.chosen.key, known.answer.raw, most)
            ranked = {
                each.key: each for each in rank(WantedEntity("", None, None, False, known.chosen.key.type), items)
            }
            keys = [EntityKey(known.chosen.key.type, int(item["id"])) for item in items]
            return [ranked[key] for key in keys if key in ranked]

        return await self._look(look) or []

    async def film(self, key: EntityKey, language: str) -> KnownAnswer | None:
        """Return the fresh answer about an entity, as `answer`, without holding up the event loop."""
        return await self._look(lambda: self._answer(key, language))

    def answer(self, key: EntityKey, language: str) -> KnownAnswer | None:
        """Return the fresh answer about an entity in a language; None if there is none, or the store is down."""
        if self.is_down:
            return None
        return self._guarded(lambda: self._answer(key, language))

    @property
    def is_down(self) -> bool:
        """Whether the store did not answer recently, or one look-up is trying whether it does again."""
        return time.monotonic() < self._down_until or (self._pause > 0 and bool(self._began))

    def keep(self, answer: EntityAnswer) -> None:
        """Store an answer that TMDB gave again, unless a newer one is stored; does nothing while the store is down."""

        def write(writer: EntityWriter) -> None:
            key = EntityKey(answer.entity, int(answer.raw["id"]))
            if not writer.knows_newer(key, answer.language, answer.fetched_at):
                writer.write([answer])

        if not self.is_down:
            self._guarded(lambda: self._store.write(write))

    def lose(self, key: EntityKey) -> None:
        """Record that TMDB no longer has an entity; does nothing while the store is down."""
        if not self.is_down:
            self._guarded(lambda: self._store.write(lambda writer: writer.gone(key)))

    def close(self) -> None:
        """Look nothing up any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _look(self, work: Callable[[], _Result | None]) -> _Result | None:
        if self.is_down:
            return None
        looking = asyncio.get_running_loop().run_in_executor(self._threads, partial(self._guarded, work))
        while not (await asyncio.wait({looking}, timeout=LOOKUP_SECONDS))[0]:
            # What waits for a thread says nothing about the store.
            if self.is_down or any(time.monotonic() - began > LOOKUP_SECONDS for began in [*self._began.values()]):
                looking.cancel()
                self._failed(TimeoutError())
                return None
        return looking.result()

    def _guarded(self, work: Callable[[], _Result | None]) -> _Result | None:
        if self.is_down:
            return None
        own = threading.get_ident()
        self._began[own] = time.monotonic()
        try:
            found = work()
        except (PostgresError, OSError) as error:
            self._failed(error)
            return None
        finally:
            del self._began[own]
        self._pause = 0.0
        return found

    def _failed(self, error: Exception) -> None:
        if time.monotonic() < self._down_until:
            return  # another look-up that began before
        first, most = PAUSES
        self._pause = min(2 * self._pause or first, most)
        self._down_until = time.monotonic() + self._pause
        _logger.warning(
            "TMDB is asked for what may be known: the store does not answer (%s); tried again in %g s",
            type(error).__name__,
            self._pause,
        )

    def _named(self, wanted: Sequence[WantedEntity], language: str, *, by_titles: bool = False) -> dict[str, Known]:
        found = {}
        with self._store.lookup() as connection:
            for each in wanted:
                if (known := self._known(connection, each, language, by_titles)) is not None:
                    found[each.name] = known
        return found

    def _known(self, connection: Connection, wanted: WantedEntity, language: str, by_titles: bool) -> Known | None:
        ranked = rank(wanted, lookups.named(connection, wanted.name, language))
        chosen = choose(ranked)
        if by_titles and (chosen is None or not chosen.exact) and not wanted.is_title:
            within = lookups.longest_within(connection, wanted.name, language)
            if within is not None and within.lower() != wanted.name.strip().lower():
                return self._known(connection, replace(wanted, name=within), language, by_titles)
        if chosen is None or not chosen.exact or (wanted.year is not None and chosen.year != wanted.year):
            return None
        since = self._clock.now() - self._fresh
        answer = _read(connection, chosen.key, language, since)
        if answer is None and by_titles and chosen.key.type is EntityType.PERSON:
            together = credited.person_of_titles(connection, chosen.key.tmdb_id)
            if together is not None and together[1] >= since:
                answer = KnownAnswer(EntityType.PERSON, together[0], language, together[1])
        return None if answer is None else Known(ranked, chosen, is_uncertain(ranked), answer)

    def _answer(self, key: EntityKey, language: str) -> KnownAnswer | None:
        with self._store.lookup() as connection:
            return _read(connection, key, language, self._clock.now() - self._fresh)


def _read(connection: Connection, key: EntityKey, language: str, since: datetime) -> KnownAnswer | None:
    row = lookups.fresh(connection, key, language, since)
    return None if row is None else KnownAnswer(key.type, row[0], language, row[1])
