"""Alembic migrations of a system's own tables, on MariaDB, MySQL, PostgreSQL and SQLite: one tree per system.

Every process checks the version of its tables, few change them: Alembic is loaded by those alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, MetaData, Table, column, func, inspect, select, text
from sqlalchemy import table as sql_table
from sqlalchemy.schema import CreateSchema, DropTable

from douban_pipeline import __version__
from douban_pipeline.core.database import LOCK_WAIT_SECONDS, reading
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.system import newest_version

if TYPE_CHECKING:
    from alembic.config import Config

_OF_CANDIDATES = re.compile(r"00\d\d")
"""Versions of tables that release candidates of 1.0.0 made; later ones begin at 1001."""


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """The effect of an upgrade: the version before (``None``: no tables) and after, and its statements as SQL."""

    before: str | None
    after: str
    sql: str


@dataclass(frozen=True)
class MigrationTree:
    """The migrations of one system's tables.

    Attributes:
        folder: Where Alembic's ``env.py`` and ``versions`` are; ``env.py`` calls `run_migrations`.
        version_table: Name of the table in which Alembic stores the version.
        metadata: The tables of this release.
        misplaced: What to do if tables with its names hold rows but no version is stored.
        schema: The PostgreSQL schema that holds the tables and the version; None means the connection's own.
        system: The system's name, as on the command line.
        option: The option that chooses the system on the command line.
        next_job: The job to launch once the tables are created.
        makes_file: Whether a new SQLite file gets the tables without a command.
        left_behind: Returns what to do about tables of ours under other names, given the names of all tables; empty if
            there are none. It is asked before tables are made.
    """

    folder: Path
    version_table: str
    metadata: MetaData
    misplaced: str
    schema: str | None = None
    system: str = ""
    option: str = ""
    next_job: str = ""
    makes_file: bool = True
    left_behind: Callable[[Collection[str]], str] = lambda names: ""

    def config(self) -> Config:
        """Return Alembic's configuration."""
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(self.folder))
        config.attributes["tree"] = self
        return config

    def upgrade(self, engine: Engine) -> tuple[str | None, str]:
        """Create the tables or bring them up to date; safe to repeat.

        Returns:
            The version before (``None`` when there were no tables) and after.

        Raises:
            DatabaseError: Tables with our names hold rows but no version is stored, the version belongs to a newer
                release, or another process is upgrading.
        """
        from alembic import command

        config = self.config()
        with engine.connect() as connection, self.alone(connection):
            self._ensure_schema(connection)
            before = self._understood(connection)
            if before is None:
                self._refuse_left_behind(connection)
                for table in self._interrupted_start(connection):
                    table.drop(connection)
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            connection.commit()  # before the next process may begin: it would see tables without a version
        return before, self.head

    def plan(self, engine: Engine) -> MigrationPlan:
        """Return what `upgrade` would do, without changing anything.

        Raises:
            DatabaseError: The upgrade would be refused.
        """
        from alembic import command

        config = self.config()
        config.output_buffer = statements = StringIO()
        with reading(engine) as connection:
            before = self._understood(connection)
            if before is None:
                self._refuse_left_behind(connection)
            if self._lacks_schema(connection):
                statements.write(f"{CreateSchema(str(self.schema)).compile(dialect=connection.dialect)};\n\n")
            config.attributes["dialect"] = connection.dialect.name
            for table in self._interrupted_start(connection) if before is None else ():
                statements.write(f"{DropTable(table).compile(dialect=connection.dialect)};\n\n".lstrip())
        if before != self.head:
            command.upgrade(config, f"{before or 'base'}:head", sql=True)
        return MigrationPlan(before, self.head, statements.getvalue().strip())

    @contextmanager
    def alone(self, connection: Connection) -> Iterator[None]:
        """Let one process at a time change the tables; on SQLite the write transaction ensures that.

        Raises:
            DatabaseError: Another process is changing them.
        """
        if connection.dialect.name == "sqlite":
            yield
            return
        name = f"{connection.engine.url.database}.{self.version_table}"[:64]
        if connection.dialect.name == "postgresql":
            # Released at the end of the transaction; the session's lock timeout bounds the wait.
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtext(:name))"), {"name": name})
            yield
            return
        parameters = {"name": name, "seconds": LOCK_WAIT_SECONDS}
        if connection.execute(text("SELECT GET_LOCK(:name, :seconds)"), parameters).scalar() != 1:
            raise DatabaseError(
                terminal_text("another process is upgrading our tables: wait for it to end and try again")
            )
        try:
            yield
        finally:
            connection.execute(text("SELECT RELEASE_LOCK(:name)"), parameters)

    def current(self, engine: Engine) -> str | None:
        """Return the version of the tables in the database, ``None`` if there are none."""
        with reading(engine) as connection:
            return self._current(connection)

    def ensure(self, engine: Engine, *, makes_file: bool = True) -> None:
        """Check that the tables are of this release; see the attribute ``makes_file``, which the argument may deny.

        Raises:
            DatabaseError: They are missing or of another version; the message says what to run.
        """
        # Looking into a file that is not there would make it.
        nowhere = not makes_file and engine.dialect.name == "sqlite" and not Path(engine.url.database or "").is_file()
        found = None if nowhere else self.current(engine)
        if found == self.head:
            return
        if not nowhere:
            self.understood(engine)  # another release's are refused otherwise
        if found is None and not nowhere:
            with reading(engine) as connection:
                self._refuse_left_behind(connection)
        if found is None and self.makes_file and makes_file and engine.dialect.name == "sqlite":
            self.upgrade(engine)
            return
        url = engine.url.render_as_string(hide_password=True)
        if found is None:
            what = terminal_text("the tables of {system} in {url} do not exist yet").format(system=self.system, url=url)
        else:
            what = terminal_text(
                "the tables of {system} in {url} are at version {found}, this release needs {head}"
            ).format(system=self.system, url=url, found=found, head=self.head)
        command = f"`douban-pipeline {'setup' if found is None else 'upgrade'}{self.option}`"
        job = self.next_job if found is None else ""
        then = terminal_text(", then launch the job {job}").format(job=job) if job else ""
        raise DatabaseError(terminal_text("{what}: run {command}{then}").format(what=what, command=command, then=then))

    @cached_property
    def head(self) -> str:
        """The newest version of this release."""
        return newest_version(self.folder / "versions")

    @cached_property
    def versions(self) -> tuple[str, ...]:
        """Every version of this release, oldest first."""
        from alembic.script import ScriptDirectory

        scripts = ScriptDirectory.from_config(self.config())
        return tuple(script.revision for script in scripts.walk_revisions())[::-1]

    def understood(self, engine: Engine) -> str | None:
        """Return the version of the tables in the database, ``None`` if there are none.

        Raises:
            DatabaseError: It is unknown to this release: a newer one made it, or a candidate of the first.
        """
        with reading(engine) as connection:
            return self._understood(connection)

    def _understood(self, connection: Connection) -> str | None:
        version = self._current(connection)
        if version is None or version in self.versions:
            return version
        if _OF_CANDIDATES.fullmatch(version):
            raise DatabaseError(
                terminal_text(
                    "our tables are at version {version}, made by a release candidate: export its decisions there "
                    "(docs/review.md), remove the tables, run `douban-pipeline setup{option}` and import them"
                ).format(version=version, option=self.option)
            )
        raise DatabaseError(
            terminal_text(
                "our tables are at version {version}, made by a newer release; the newest version of this release, "
                "{own}, is {head}. Install the newer one again; only a backup from before leads back"
            ).format(version=version, own=__version__, head=self.head)
        )

    def _interrupted_start(self, connection: Connection) -> list[Table]:
        """Return the empty tables left by a first upgrade that was killed; MySQL cannot roll back DDL."""
        present = set(inspect(connection).get_table_names(self.schema))
        leftovers = [table for table in reversed(self.metadata.sorted_tables) if table.name in present]
        for table in leftovers:
            if connection.execute(select(func.count()).select_from(table)).scalar_one():
                raise DatabaseError(
                    terminal_text("{table} holds rows, but {version_table} holds no version: {misplaced}").format(
                        table=table.name, version_table=self.version_table, misplaced=self.misplaced
                    )
                )
        return leftovers

    def _refuse_left_behind(self, connection: Connection) -> None:
        problem = self.left_behind(inspect(connection).get_table_names(self.schema))
        if problem:
            raise DatabaseError(problem)

    def _ensure_schema(self, connection: Connection) -> None:
        """Create the schema that holds the tables, if one is configured and it does not exist."""
        if self._lacks_schema(connection):
            connection.execute(CreateSchema(str(self.schema)))

    def _lacks_schema(self, connection: Connection) -> bool:
        # IF NOT EXISTS is not used: it needs the right to create schemas even if the schema exists.
        return self.schema is not None and not inspect(connection).has_schema(self.schema)

    def _current(self, connection: Connection) -> str | None:
        if not inspect(connection).has_table(self.version_table, self.schema):
            return None
        version = sql_table(self.version_table, schema=self.schema)
        return connection.execute(select(column("version_num")).select_from(version)).scalar()


def create_tables() -> None:
    """Make every table of a tree with its indexes: its first migration, until a release fixes what that is."""
    from alembic import context, op

    tree: MigrationTree = context.config.attributes["tree"]
    for table in tree.metadata.sorted_tables:
        op.get_context().impl.create_table(table)


def run_migrations() -> None:
    """Run the migrations of a tree, or print them as SQL; called by its ``env.py``."""
    from alembic import context

    attributes = context.config.attributes
    tree: MigrationTree = attributes["tree"]
    target: dict[str, Any]
    if context.is_offline_mode():
        target = {"dialect_name": attributes["dialect"], "literal_binds": True}
        target["dialect_opts"] = {"paramstyle": "named"}  # any other style would double each %
    else:
        target = {"connection": attributes["connection"]}
    context.configure(
        **target,
        target_metadata=tree.metadata,
        version_table=tree.version_table,
        version_table_schema=tree.schema,
    )
    with context.begin_transaction():
        context.run_migrations()
