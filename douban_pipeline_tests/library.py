"""A small real library for tests: the CMS's own tables, ours beside them, and what works on both."""

from __future__ import annotations

import multiprocessing
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from multiprocessing.context import ForkServerContext
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from douban_pipeline.cms.maccms import Cms, inspect_cms
from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import open_engine, reading, transactions
from douban_pipeline.core.owner import owner_name
from douban_pipeline.demo.cms_schema import Form, default_types
from douban_pipeline.demo.library import create_library
from douban_pipeline.douban.chain.due.intake import Intake
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.store.migrations import upgrade
from douban_pipeline.douban.store.tables import OwnTables, own_tables
from douban_pipeline.douban.store.tasks import NewTask, TaskQueue, shard_of
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline_tests.clocks import START, FakeClock
from douban_pipeline_tests.conftest import server_url

DEAD_PID = 4_194_305
"""Linux gives out process ids up to 2**22, so nobody can live under this one."""


class GivenSettings(Settings):
    """Settings as they are handed in: neither the environment nor ``.env`` has a say in a test."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take arguments only."""
        return (init_settings,)


def unix(moment: datetime) -> int:
    """Return ``moment`` as the CMS stores it."""
    return int(moment.timestamp())


def days_ago(days: float, now: datetime = START) -> int:
    """Return a `vod_time` that lies ``days`` back."""
    return unix(now - timedelta(days=days))


def video(vod_id: int, **columns: Any) -> dict[str, Any]:
    """Return a row of `mac_vod` as a collector brings it in, ``columns`` changed."""
    return {
        "vod_id": vod_id,
        "type_id": 6,
        "type_id_1": 1,
        "vod_name": f"影片{vod_id}",
        "vod_year": "2024",
        "vod_status": 1,
        "vod_time": days_ago(10),
        "vod_time_add": days_ago(10),
        "vod_score": 6.4,
        "vod_play_from": "dbm3u8",
        "vod_play_url": f"HD$https://example.org/{vod_id}.m3u8",
        "vod_content": "<p>原有简介</p>",
        **columns,
    }


def dead_owner(run_id: str = "dead") -> str:
    """Return the name of an owner on this machine that cannot be alive."""
    here, _, _ = owner_name(run_id).rpartition(":")
    return f"{here}:{DEAD_PID}"


@dataclass
class Library:
    """A library under test, with shortcuts for looking at it."""

    url: str
    prefix: str = "mac_"
    clock: Clock = field(default_factory=FakeClock)
    options: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def engine(self) -> sa.Engine:
        """The database, opened as the pipeline opens it."""
        return open_engine(self.url)

    @cached_property
    def tables(self) -> OwnTables:
        """Our tables."""
        return own_tables(self.prefix)

    @cached_property
    def cms(self) -> Cms:
        """The CMS's tables as they are."""
        return inspect_cms(self.engine, self.prefix)

    @property
    def mysql(self) -> bool:
        """Whether this is a real server."""
        return self.engine.dialect.name in ("mysql", "mariadb")

    @cached_property
    def settings(self) -> Settings:
        """Settings that point at this library and do write."""
        given = {"database_url": self.url, "table_prefix": self.prefix, "dry_run": False}
        return GivenSettings(**{**given, **self.options})

    @cached_property
    def services(self) -> Services:
        """The ground floor over this library."""
        return Services(self.settings, self.engine, self.tables, self.clock)

    @property
    def intake(self) -> Intake:
        """Intake of this library."""
        return Intake(self.engine, self.tables, self.cms, self.clock)

    def queue(self, run_id: str = "run", *, owner: str | None = None, minutes: float = 15) -> TaskQueue:
        """Return the task queue as a run sees it."""
        return TaskQueue(
            self.engine,
            self.tables,
            self.clock,
            owner=owner or owner_name(run_id),
            lease=timedelta(minutes=minutes),
        )

    def change_log(self, run_id: str = "run", **options: Any) -> ChangeLog:
        """Return the change log as a run writes it; ``options`` go to `ChangeLog`, ``kind`` is its class."""
        kind = options.pop("kind", ChangeLog)
        given = {"owner": owner_name(run_id), "run_id": run_id, "rule_version": "test"}
        return kind(self.engine, self.tables, self.cms, self.clock, **{**given, **options})

    def query(self, statement: sa.Executable | str, **values: Any) -> list[dict[str, Any]]:
        """Return the rows of a query."""
        executable = sa.text(statement) if isinstance(statement, str) else statement
        with reading(self.engine) as connection:
            return [dict(row) for row in connection.execute(executable, values).mappings()]

    def execute(self, statement: sa.Executable | str, **values: Any) -> None:
        """Do what somebody else might do to the database."""
        executable = sa.text(statement) if isinstance(statement, str) else statement
        with self.engine.begin() as connection:
            connection.execute(executable, values)

    def insert(self, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows of the same columns."""
        with self.engine.begin() as connection:
            connection.execute(sa.insert(table), rows)

    def row(self, vod_id: int) -> dict[str, Any]:
        """Return the CMS row of a video, in the columns the pipeline knows."""
        [row] = self.query(sa.select(self.cms.vod).where(self.cms.vod.c.vod_id == vod_id))
        return row

    def state(self, vod_id: int) -> dict[str, Any]:
        """Return our state row of a video."""
        [row] = self.query(sa.select(self.tables.video).where(self.tables.video.c.vod_id == vod_id))
        return row

    def states(self) -> dict[int, dict[str, Any]]:
        """Return all state rows by id."""
        return {row["vod_id"]: row for row in self.query(sa.select(self.tables.video))}

    def log(self) -> list[dict[str, Any]]:
        """Return the change log, the oldest first."""
        return self.query(sa.select(self.tables.log).order_by(self.tables.log.c.change_id))

    def tasks(self) -> list[dict[str, Any]]:
        """Return the task queue, the oldest first."""
        return self.query(sa.select(self.tables.task).order_by(self.tables.task.c.task_id))

    def set_cms(self, vod_id: int, **values: Any) -> None:
        """Change a CMS row behind the pipeline's back."""
        self.execute(sa.update(self.cms.vod).where(self.cms.vod.c.vod_id == vod_id).values(**values))

    def set_state(self, vod_id: int, **values: Any) -> None:
        """Change a state row."""
        self.execute(sa.update(self.tables.video).where(self.tables.video.c.vod_id == vod_id).values(**values))

    def add(self, *videos: Mapping[str, Any]) -> None:
        """Insert further CMS rows, as a collector does."""
        create_library(self.engine, [*self._present(), *videos], default_types(), self.prefix)

    def add_states(self, *states: Mapping[str, Any]) -> None:
        """Insert state rows without any CMS row behind them; what is left out gets a plain value."""
        plain = {"type_id": 6, "vod_time": days_ago(10), "vod_douban_id": 0, "douban_review_status": "NOT_FOUND"}
        plain |= {"douban_next_sync_at": START - timedelta(hours=1), "douban_ignore_until": None}
        rows = [plain | {"shard": shard_of(state["vod_id"])} | state for state in states]
        self.insert(self.tables.video, rows)

    def enqueue(self, queue: TaskQueue, tasks: Iterable[NewTask]) -> int:
        """Queue tasks in a transaction of their own."""
        new, wanted = 0, list(tasks)
        for transaction in transactions(self.engine):
            with transaction as connection:
                new = queue.enqueue(connection, wanted, run_id="run")
        return new

    def all_bytes(self) -> list[tuple[Any, ...]]:
        """Return every column of every CMS row so that a single changed byte shows."""
        table = f"{self.prefix}vod"
        columns = [column["name"] for column in sa.inspect(self.engine).get_columns(table)]
        form = "HEX({0})" if self.mysql else "{0}, TYPEOF({0})"
        wanted = ", ".join(form.format(column) for column in columns)
        with reading(self.engine) as connection:
            return [tuple(row) for row in connection.execute(sa.text(f"SELECT {wanted} FROM {table} ORDER BY vod_id"))]

    def renewed(self, videos: Iterable[Mapping[str, Any]] = (), *, taken_in: bool = True, **options: Any) -> Library:
        """Empty the database and fill it anew; tables are not created again, which is what takes time."""
        fresh = Library(self.url, self.prefix, FakeClock(), options)
        fresh.engine, fresh.cms = self.engine.execution_options(), self.cms  # the same, with listeners of its own
        fresh.tables = self.tables
        with fresh.engine.begin() as connection:
            for table in (*self.tables.metadata.sorted_tables, self.cms.vod):
                connection.execute(sa.delete(table))
        return fresh.filled(videos, taken_in)

    def filled(self, videos: Iterable[Mapping[str, Any]], taken_in: bool) -> Library:
        """Insert CMS rows, and make our state table know them."""
        if not videos:
            return self
        create_library(self.engine, videos, default_types(), self.prefix)
        if taken_in:
            self.intake.initialise(spread=False)
        return self

    def __enter__(self) -> Library:
        """Use the library in a ``with`` statement."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections."""
        self.engine.dispose()

    def _present(self) -> list[dict[str, Any]]:
        return self.query(sa.select(self.cms.vod.c.vod_id))


def build_library(
    url: str,
    videos: Iterable[Mapping[str, Any]] = (),
    *,
    prefix: str = "mac_",
    form: Form = "head",
    clock: Clock | None = None,
    taken_in: bool = True,
    **options: Any,
) -> Library:
    """Create a CMS library of ``videos`` and our tables at ``url``.

    Args:
        url: An empty database.
        videos: Rows as `video` makes them, text unescaped.
        prefix: Table prefix.
        form: Schema form, see `cms_schema`.
        clock: Time; a `FakeClock` by default.
        taken_in: Whether our state table already knows the videos, all of them due now.
        options: Settings other than the defaults.
    """
    library = Library(url, prefix, clock or FakeClock(), options)
    create_library(library.engine, [], default_types(), prefix, form)
    upgrade(library.engine, prefix)
    return library.filled(videos, taken_in)


@contextmanager
def fresh_mariadb() -> Iterator[str]:
    """Give the URL of a new, empty utf8 database for as long as it is needed; skip when no server answers."""
    server = sa.create_engine(server_url("mariadb"), isolation_level="AUTOCOMMIT")
    name = f"douban_test_{uuid.uuid4().hex[:12]}"
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name} DEFAULT CHARACTER SET utf8")
    try:
        yield server.url.set(database=name).render_as_string(hide_password=False)
    finally:
        with server.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {name}")
        server.dispose()


def processes() -> ForkServerContext:
    """Return what starts processes of their own quickly: forks of a server that has imported all of this."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


@pytest.fixture(scope="session", params=["sqlite", pytest.param("mariadb", marks=pytest.mark.mariadb)])
def shared_library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """An empty library on each engine in turn, made once; tests take `Library.renewed` of it."""
    with ExitStack() as stack:
        if request.param == "mariadb":
            url = stack.enter_context(fresh_mariadb())
        else:
            url = f"sqlite:///{tmp_path_factory.mktemp('library') / 'library.sqlite'}"
        yield stack.enter_context(build_library(url))
