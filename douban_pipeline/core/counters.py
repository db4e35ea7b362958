"""Counts that all processes of the service share: one row of a table each, forgotten a set time after its first count.

What a limit counts (wrong tokens, questions, comments) and which logins have ended must be the same in every process
that answers, on every host: with counts of their own, four processes would allow four times as much. While the database
does not answer, each process goes on with what it knew last and counts alone, so that an outage closes nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from sqlalchemy import Connection, Engine, Table, bindparam, case, delete, select
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import reading, run_statement, run_transaction

logger = logging.getLogger(__name__)

_Result = TypeVar("_Result")
_THREADS = 4
"""Threads that ask the database; each question is one or two short statements."""
_PAUSE = timedelta(seconds=10)
"""How long a database that failed is not asked again, except by one request."""
_SWEEP = timedelta(minutes=1)
"""How often a process deletes rows that have ended."""
_SWEPT_AT_ONCE = 10_000
_REMEMBERED = 100_000
"""Most counts that a process keeps for an outage."""


class CountersUnavailableError(Exception):
    """The database did not take a count that must reach all processes."""


@dataclass(frozen=True, slots=True)
class Count:
    """A count: its number, 0 if there is none, and when it ends."""

    number: int
    ends: datetime

    def wait(self, now: datetime) -> int:
        """Return the whole seconds until it ends, at least 1."""
        return max(1, int((self.ends - now).total_seconds()) + 1)


class Counters:
    """Named counts. For one event loop; the database is asked in threads of its own.

    Names are kept as hashes, since they may contain a visitor's address.

    Args:
        clock: Source of the current time.
        engine: Database with the table; None keeps the counts in this process.
        table: A table of `core.platform_tables.counter_table`; needed with ``engine``.
    """

    def __init__(self, clock: Clock, engine: Engine | None = None, table: Table | None = None) -> None:
        self.clock = clock
        self._memory: dict[str, Count] = {}
        self._engine, self._table = engine, table
        self._pool = ThreadPoolExecutor(_THREADS, "counters") if engine is not None else None
        self._down_until: datetime | None = None
        self._swept = clock.now()

    async def add(self, seconds: Mapping[str, float], *, must_share: bool = False) -> list[Count]:
        """Add 1 to the count of each name; return the counts, in order.

        Args:
            seconds: Names, and how many seconds after its first count each ends; counting again does not prolong it.
            must_share: Raise an error if the database does not take it, instead of counting in this process.

        Raises:
            CountersUnavailableError: See ``must_share``.
        """
        now = self.clock.now()
        given = {_hashed(name): Count(1, now + timedelta(seconds=lasts)) for name, lasts in seconds.items()}
        shared = await self._ask(lambda: self._add(given, now))
        if shared is None and must_share and self._pool is not None:
            raise CountersUnavailableError
        return self._remember(given, shared or [self._added(name, new, now) for name, new in given.items()], now)

    async def read(self, *names: str) -> list[Count]:
        """Return the counts of these names, in order."""
        now = self.clock.now()
        hashes = [_hashed(name) for name in names]
        shared = await self._ask(lambda: self._read(hashes, now))
        none = Count(0, now)
        return self._remember(hashes, shared or [self._known(name, now) or none for name in hashes], now)

    def close(self) -> None:
        """Stop the threads and close the connections."""
        if self._pool is not None:
            self._pool.shutdown()
        if self._engine is not None:
            self._engine.dispose()

    async def _ask(self, work: Callable[[], _Result]) -> _Result | None:
        """Return the result of ``work`` in a thread; None if the database cannot be asked."""
        now = self.clock.now()
        if self._pool is None or (self._down_until is not None and now < self._down_until):
            return None
        was_down = self._down_until is not None
        if was_down:  # only this request tries; the others do not wait for it
            self._down_until = now + _PAUSE
        try:
            result = await asyncio.get_running_loop().run_in_executor(self._pool, work)
        except SQLAlchemyError as error:
            self._down_until = self.clock.now() + _PAUSE
            if not was_down:
                logger.warning("each process counts alone: the counters cannot be used (%s)", type(error).__name__)
            return None
        self._down_until = None
        return result

    def _add(self, given: Mapping[str, Count], now: datetime) -> list[Count]:
        engine, table = self._database()
        if now - self._swept >= _SWEEP:
            self._swept = now
            self._sweep(now)
        # In order of names, so that two requests never wait for each other.
        rows = [{"name": name, "number": 1, "ends_at": given[name].ends} for name in sorted(given)]

        def work(connection: Connection) -> dict[str, Count]:
            _count(connection, table, rows, now)
            return _counts(connection, table, list(given))

        found = run_transaction(engine, work)
        return [found[name] for name in given]

    def _read(self, names: Sequence[str], now: datetime) -> list[Count]:
        engine, table = self._database()
        with reading(engine) as connection:
            found = _counts(connection, table, names)
        none = Count(0, now)
        return [count if (count := found.get(name, none)).ends > now else none for name in names]

    def _sweep(self, now: datetime) -> None:
        engine, table = self._database()
        with reading(engine) as connection:
            ended = connection.scalars(select(table.c.name).where(table.c.ends_at <= now).limit(_SWEPT_AT_ONCE)).all()
        if ended:
            which = table.c.name.in_(bindparam("names", expanding=True))
            run_statement(engine, delete(table).where(which, table.c.ends_at <= now), {"names": ended})

    def _database(self) -> tuple[Engine, Table]:
        assert self._engine is not None
        assert self._table is not None
        return self._engine, self._table

    def _added(self, name: str, new: Count, now: datetime) -> Count:
        known = self._known(name, now)
        return Count(known.number + 1, known.ends) if known is not None else new

    def _known(self, name: str, now: datetime) -> Count | None:
        known = self._memory.get(name)
        return known if known is not None and known.ends > now else None

    def _remember(self, names: Sequence[str] | Mapping[str, Count], counts: list[Count], now: datetime) -> list[Count]:
        for name, count in zip(names, counts, strict=True):
            if count.number:
                self._memory[name] = count
            else:
                self._memory.pop(name, None)
        if len(self._memory) > _REMEMBERED:
            self._memory = {name: count for name, count in self._memory.items() if count.ends > now}
            for name in sorted(self._memory, key=lambda each: self._memory[each].ends)[: -_REMEMBERED // 2]:
                del self._memory[name]
        return counts


def _hashed(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def _count(connection: Connection, table: Table, rows: Sequence[Mapping[str, object]], now: datetime) -> None:
    """Insert rows, or add their numbers to existing ones; a row that has ended begins anew."""
    ended = table.c.ends_at <= now
    if connection.dialect.name in ("mysql", "mariadb"):
        statement = mysql.insert(table).values(rows)
        new = statement.inserted
        # MySQL assigns from left to right: the number is decided by the old end.
        changes = [
            ("number", case((ended, new.number), else_=table.c.number + new.number)),
            ("ends_at", case((ended, new.ends_at), else_=table.c.ends_at)),
        ]
        connection.execute(statement.on_duplicate_key_update(changes))
        return
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    insert = dialect.insert(table).values(rows)
    connection.execute(
        insert.on_conflict_do_update(
            index_elements=["name"],
            set_={
                "number": case((ended, insert.excluded.number), else_=table.c.number + insert.excluded.number),
                "ends_at": case((ended, insert.excluded.ends_at), else_=table.c.ends_at),
            },
        )
    )


def _counts(connection: Connection, table: Table, names: Sequence[str]) -> dict[str, Count]:
    rows = connection.execute(select(table.c.name, table.c.number, table.c.ends_at).where(table.c.name.in_(names)))
    return {row.name: Count(row.number, row.ends_at) for row in rows}
