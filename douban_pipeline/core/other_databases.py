"""Databases of other systems, read by table: each is opened once in a process, and only if it is there."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from sqlalchemy import Engine, TableClause, inspect

from douban_pipeline.core.database import LOCK_WAIT_SECONDS, open_engine, reading
from douban_pipeline.core.database_urls import parse_url

LONGEST_STATEMENT = LOCK_WAIT_SECONDS + 15.0
"""Seconds after which a statement at another system's database has failed: a wait for a lock ends before, by itself."""


class OtherDatabases:
    """Engines of other systems' databases, opened when first needed and closed together.

    Args:
        own: The system's own engine, with which tables in its database are read.
        seconds: Time limit of a statement; see `core.database.open_engine`.
    """

    def __init__(self, own: Engine, *, seconds: float = LONGEST_STATEMENT) -> None:
        self._own, self._seconds = own, seconds
        self._engines: dict[str, Engine] = {}
        self._opened = ExitStack()

    def engine(self, url: str, *, setting: str) -> Engine:
        """Return the engine for ``url``, the same one for every call.

        Args:
            url: Where the other system's tables are.
            setting: The variable that names the database, for messages.

        Raises:
            DatabaseError: The URL cannot be used.
        """
        if parse_url(url, setting=setting) == self._own.url:
            return self._own
        if url not in self._engines:
            engine = open_engine(url, setting=setting, seconds=self._seconds)
            self._opened.callback(engine.dispose)
            self._engines[url] = engine
        return self._engines[url]

    def engine_with(self, table: TableClause, url: str, *, setting: str) -> Engine | None:
        """Return the engine for ``url`` if ``table`` exists there; None if it does not.

        A file that does not exist is not created.

        Raises:
            DatabaseError: The URL cannot be used.
            SQLAlchemyError: The database does not answer.
        """
        place = parse_url(url, setting=setting)
        absent = place.get_backend_name() == "sqlite" and not Path(place.database or "").is_file()
        if absent and place != self._own.url:
            return None
        engine = self.engine(url, setting=setting)
        with reading(engine) as connection:
            return engine if inspect(connection).has_table(table.name) else None

    def close(self) -> None:
        """Close the connections that were opened here, not those of the system's own engine; safe to repeat."""
        self._opened.close()
        self._engines.clear()
