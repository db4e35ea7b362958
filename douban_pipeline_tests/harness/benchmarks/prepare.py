"""The libraries that are measured on: a database each, filled, with our tables, and the videos taken in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import URL, Connection, Engine, create_engine, inspect, text

from douban_pipeline.demo.cms_schema import default_types
from douban_pipeline.demo.library import create_library
from douban_pipeline.douban.chain.due.intake import Intake
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import PREFIX
from douban_pipeline.douban.store import migrations
from douban_pipeline_tests.harness.benchmarks.measuring import Say
from douban_pipeline_tests.harness.generated.filling import fill
from douban_pipeline_tests.harness.rig.databases import MARIADB, create_database, drop_database, server_url
from douban_pipeline_tests.harness.rig.processes import RigError

NOTES = "douban_bench_note"
"""A table beside the others that notes how far a library is."""

TAKEN_IN, IN_USE = "taken_in", "in_use"


def database_name(size: int, seed: int) -> str:
    """Return the name of the database that holds the library of ``size`` videos."""
    return f"douban_bench_{size}_{seed}"


def environment_for(url: URL, home: Path) -> dict[str, str]:
    """Return the pipeline's settings under which a measure works on the library at ``url``; it writes."""
    settings = {
        "HOME": str(home),
        "DATABASE_URL": url.render_as_string(hide_password=False),
        "TABLE_PREFIX": "mac_",
        "DRY_RUN": "false",
    }
    return {PREFIX + name: value for name, value in settings.items()}


class Place:
    """The database of one library, as the process sees it that has the measures done."""

    def __init__(self, size: int, seed: int) -> None:
        self.size, self.name = size, database_name(size, seed)
        self.server = server_url(MARIADB)
        self.url = self.server.set(database=self.name)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other benchmarks off this library.

        Raises:
            RigError: One is at work on it.
        """
        create_database(self.server, self.name, variable=MARIADB[0])
        engine = create_engine(self.server, isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as connection:
                # Held for hours, in which this connection says nothing.
                connection.execute(text("SET SESSION wait_timeout = 604800"))
                if connection.execute(text("SELECT GET_LOCK(:name, 0)"), {"name": self.name}).scalar() != 1:
                    raise RigError(f"another benchmark is at work on {self.name}: wait for it, or give another --seed")
                yield
        finally:
            engine.dispose()

    def create(self) -> None:
        """Create the database if it is not there; one in whose middle a measure was stopped is made anew."""
        create_database(self.server, self.name, variable=MARIADB[0])
        if self.noted(IN_USE):
            self.renew()

    def renew(self) -> None:
        """Make the database anew, empty."""
        self.drop()
        create_database(self.server, self.name, variable=MARIADB[0])

    def drop(self) -> None:
        """Drop the database."""
        drop_database(self.server, self.name)

    def noted(self, name: str) -> bool:
        """Return whether `TAKEN_IN` or `IN_USE` holds."""
        with self._connected() as connection:
            return inspect(connection).has_table(NOTES) and bool(
                connection.execute(text(f"SELECT 1 FROM {NOTES} WHERE name = :name"), {"name": name}).scalar()
            )

    def note(self, name: str, holds: bool) -> None:
        """Note that something holds, or no longer does."""
        change = f"REPLACE INTO {NOTES} VALUES (:name)" if holds else f"DELETE FROM {NOTES} WHERE name = :name"
        with self._connected() as connection:
            connection.execute(text(f"CREATE TABLE IF NOT EXISTS {NOTES} (name VARCHAR(32) PRIMARY KEY)"))
            connection.execute(text(change), {"name": name})
            connection.commit()

    def contents(self) -> dict[str, int | None]:
        """Return a checksum of every table; the same before and after if nothing was changed."""
        with self._connected() as connection:
            names = [name for name in inspect(connection).get_table_names() if name != NOTES]
            return {name: connection.execute(text(f"CHECKSUM TABLE `{name}`")).one()[1] for name in names}

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        engine = create_engine(self.url, poolclass=sa.NullPool)
        with engine.connect() as connection:
            yield connection


def fill_library(services: Services, size: int, seed: int, say: Say) -> None:
    """Fill the CMS's tables and create ours; what is there already is left alone."""
    prefix = services.settings.table_prefix
    if size:
        fill(services.engine, size, seed=seed, now=services.clock.now(), prefix=prefix, progress=say)
    else:
        create_library(services.engine, [], default_types(), prefix)
    say("creating our tables")
    migrations.tree_of(prefix).upgrade(services.engine)
    services.gate.status()  # makes the sources' rows, which no measure then adds


def take_in(services: Services, say: Say) -> None:
    """Take all videos in, their first visits spread."""
    intake = Intake(services.engine, services.tables, services.cms, services.clock)
    intake.initialise(progress=lambda done: say(f"{done:,} videos taken in"))
    analyse(services.engine)


def analyse(engine: Engine) -> None:
    """Have the server look at its tables, so that its plans do not depend on when it last did so by itself."""
    with engine.connect() as connection:
        for name in inspect(connection).get_table_names():
            connection.execute(text(f"ANALYZE TABLE `{name}`")).all()
