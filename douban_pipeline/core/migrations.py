"""Alembic migrations of a system's own tables, on MariaDB, MySQL, PostgreSQL and SQLite: one tree per system.

Every process checks the version of its tables, few change them: Alembic is loaded by those alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, MetaData, String, Table, Text, column, func, inspect, select, text, update
from sqlalchemy import table as sql_table
from sqlalchemy.schema import CreateSchema, DropTable

from douban_pipeline import __version__
from douban_pipeline.core.database import LOCK_WAIT_SECONDS, reading
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.system import newest_version

if TYPE_CHECKING:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

_RELEASE, _TABLES = "release_name", "table_names"
"""Columns of a version table: the release that upgraded the tables last, and the names of its tables."""
_NOTES = {_RELEASE: "VARCHAR(32)", _TABLES: "TEXT"}
"""The types of these columns, which releases before the first that noted them did not make."""


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
        owns: Whether a table of the given name belongs to the system.
        misplaced: What to do if tables with its names hold rows but no version is stored.
        attributes: Values that migrations read from Alembic's config.
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
    owns: Callable[[str], bool]
    misplaced: str
    attributes: tuple[tuple[str, Any], ...] = ()
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
        config.attributes.update({"tree": self, **dict(self.attributes)})
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
        with engine.begin() as connection, self.alone(connection):
            self.ensure_schema(connection)
            before = self._understood(connection)
            if before is None:
                self._refuse_left_behind(connection)
                for table in self._interrupted_start(connection):
                    table.drop(connection)
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            for statement in self._release_statements(connection):
                connection.exec_driver_sql(statement)
        return before, self.head

    def plan(self, engine: Engine) -> MigrationPlan:
        """Return what `upgrade` would do, without changing anything.

        Raises:
            DatabaseError: The upgrade would be refused.
        """
        from alembic import command

        from douban_pipeline.core.migration_steps import Shape

        config = self.config()
        config.output_buffer = statements = StringIO()
        with reading(engine) as connection:
            before = self._understood(connection)
            leftovers = self._interrupted_start(connection) if before is None else []
            if before is None:
                self._refuse_left_behind(connection)
            if self._lacks_schema(connection):
                statements.write(f"{CreateSchema(str(self.schema)).compile(dialect=connection.dialect)};\n\n")
            config.attributes["dialect"] = connection.dialect.name
            gone = frozenset(table.name for table in leftovers)
            config.attributes["shape"] = Shape.read(connection, self.owns, without=gone, schema=self.schema)
            for table in leftovers:
                statements.write(f"{DropTable(table).compile(dialect=connection.dialect)};\n\n".lstrip())
            release = self._release_statements(connection)
        command.upgrade(config, f"{before or 'base'}:head", sql=True)
        statements.writelines(f"{statement};\n\n" for statement in release)
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
                terminal_text("another process is upgrading or restoring our tables: wait for it to end and try again")
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
            DatabaseError: They are missing or of another version; the message says what to run, or which release wrote
                them if it is a newer one.
        """
        # Looking into a file that is not there would make it.
        nowhere = not makes_file and engine.dialect.name == "sqlite" and not Path(engine.url.database or "").is_file()
        found = None if nowhere else self.current(engine)
        if found == self.head:
            return
        if not nowhere:
            self.understood(engine)  # of a newer release, they are refused otherwise
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

    @property
    def _scripts(self) -> ScriptDirectory:
        from alembic.script import ScriptDirectory

        return ScriptDirectory.from_config(self.config())

    @cached_property
    def versions(self) -> tuple[str, ...]:
        """Every version of this release, oldest first."""
        return tuple(script.revision for script in self._scripts.walk_revisions())[::-1]

    def release_of(self, version: str) -> str:
        """Return the release that brought a version."""
        return str(self._scripts.get_revision(version).module.release)

    def understood(self, engine: Engine) -> str | None:
        """Return the version of the tables in the database, ``None`` if there are none.

        Raises:
            DatabaseError: It is unknown to this release, so it belongs to a newer one.
        """
        with reading(engine) as connection:
            return self._understood(connection)

    def _understood(self, connection: Connection) -> str | None:
        version = self._current(connection)
        if version is None or version in self.versions:
            return version
        release = self.noted_release(connection)
        raise DatabaseError(
            terminal_text(
                "our tables are at version {version}, made by {release}; the newest version of this release, {own}, is "
                "{head}. Install {release} again; only a backup from before leads back"
            ).format(
                version=version,
                release=release or terminal_text("a newer release"),
                own=__version__,
                head=self.head,
            )
        )

    def _noted(self, connection: Connection) -> dict[str, str]:
        """Return what the release that upgraded the tables last noted beside the version; nothing by one of before."""
        seen = inspect(connection)
        if not seen.has_table(self.version_table, self.schema):
            return {}
        names = [each["name"] for each in seen.get_columns(self.version_table, self.schema) if each["name"] in _NOTES]
        version = sql_table(self.version_table, schema=self.schema)
        row = connection.execute(select(*map(column, names)).select_from(version)).first() if names else None
        return {} if row is None else {name: value or "" for name, value in row._mapping.items()}

    def noted_release(self, connection: Connection) -> str:
        """Return the release that upgraded the tables last; empty if that was one that did not note it."""
        return self._noted(connection).get(_RELEASE, "")

    def table_names(self, connection: Connection) -> set[str]:
        """Return the names of the tables of this release, and of those of the release that upgraded them last."""
        return {*(table.name for table in self.metadata.sorted_tables), *self._noted_tables(connection)}

    def version_if_complete(self, connection: Connection) -> str | None:
        """Return the version of the tables if `table_names` names all of them.

        Raises:
            DatabaseError: They are of a newer release that noted none of its tables, and may have more of them.
        """
        return self._current(connection) if self._noted_tables(connection) else self._understood(connection)

    def _noted_tables(self, connection: Connection) -> list[str]:
        return [name for name in self._noted(connection).get(_TABLES, "").split(",") if name]

    def _release_statements(self, connection: Connection) -> list[str]:
        """Return what notes this release and its tables beside the version, for older code that meets newer tables."""
        noted = self._noted(connection)
        values = {
            _RELEASE: __version__,
            _TABLES: ",".join(sorted(table.name for table in self.metadata.sorted_tables)),
        }
        if noted == values:
            return []
        dialect = connection.dialect
        version = sql_table(self.version_table, column(_RELEASE, String), column(_TABLES, Text), schema=self.schema)
        name = dialect.identifier_preparer.format_table(version)
        added = [f"ALTER TABLE {name} ADD COLUMN {new} {kind}" for new, kind in _NOTES.items() if new not in noted]
        changed = update(version).values(values)
        return [*added, str(changed.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))]

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

    def ensure_schema(self, connection: Connection) -> None:
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


def run_migrations() -> None:
    """Run the migrations of a tree, or print them as SQL; called by its ``env.py``."""
    from alembic import context

    from douban_pipeline.core.migration_steps import Shape

    attributes = context.config.attributes
    tree: MigrationTree = attributes["tree"]
    target: dict[str, Any]
    if context.is_offline_mode():  # the shape was read earlier
        target = {"dialect_name": attributes["dialect"], "literal_binds": True}
        target["dialect_opts"] = {"paramstyle": "named"}  # any other style would double each %
    else:
        attributes["shape"] = Shape.read(attributes["connection"], tree.owns, schema=tree.schema)
        target = {"connection": attributes["connection"]}
    context.configure(
        **target,
        target_metadata=tree.metadata,
        version_table=tree.version_table,
        version_table_schema=tree.schema,
        include_name=lambda name, kind, parents: kind != "table" or tree.owns(name or ""),
        compare_type=True,
    )
    with context.begin_transaction():
        context.run_migrations()
