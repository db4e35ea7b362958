"""Fixtures shared by all tests: databases of their own, on every engine that answers, and an instance of Dagster.

Addresses come from the environment:

- ``DOUBAN_TEST_MARIADB_URL`` (default ``mysql+pymysql://root@127.0.0.1:3306/``)
- ``DOUBAN_TEST_POSTGRES_URL`` (default ``postgresql+psycopg2://postgres@127.0.0.1:5432/postgres``)
- ``DOUBAN_TEST_REDIS_URL`` (default ``redis://127.0.0.1:6379/13``), a database that the tests may empty
Where none of these is set and nothing answers there, a server of the run's own is started, from a wheel or the program
that is installed (`harness.rig.own_servers`).

- ``DOUBAN_TEST_MYSQL_URL``: with ``-m mysql``, the tests that need a MariaDB run on this MySQL instead, and on one from
  Debian's packages where it is not set (`harness.rig.mysql_server`)
- ``DOUBAN_TEST_CHROMIUM``: a Chromium, where none is on the path by a name of its own
- ``DOUBAN_TEST_REQUIRE`` names what must be there (``mariadb,postgres,redis,browser,cms,demo``): a test that would be
  skipped for want of one of them fails instead.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sqlite3
import uuid
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import alembic.util
import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import Engine, create_engine, event, make_url
from sqlalchemy.exc import OperationalError

if TYPE_CHECKING:
    import dagster as dg

    from douban_pipeline_tests.harness.rig.own_servers import OwnServers

pytest_plugins = [
    "douban_pipeline_tests.harness.fixtures.failures",
    "douban_pipeline_tests.harness.fixtures.library",
    "douban_pipeline_tests.harness.fixtures.old_servers",
    "douban_pipeline_tests.harness.fixtures.scenario",
    "douban_pipeline_tests.harness.fixtures.scripted_source",
    "douban_pipeline_tests.harness.fixtures.tables_made_once",
    "douban_pipeline_tests.harness.fixtures.told_timeouts",
]
"""Fixtures of all rooms."""

os.environ["LC_ALL"] = "C.UTF-8"
"""The command line speaks as the locale does; tests read English."""

SERVERS = {
    "mariadb": ("DOUBAN_TEST_MARIADB_URL", "mysql+pymysql://root@127.0.0.1:3306/"),
    "postgres": ("DOUBAN_TEST_POSTGRES_URL", "postgresql+psycopg2://postgres@127.0.0.1:5432/postgres"),
    "redis": ("DOUBAN_TEST_REDIS_URL", "redis://127.0.0.1:6379/13"),
}


QUICK = (
    "cms",
    "core",
    "douban/sources",
    "douban/store",
    "douban/test_definitions.py",
    "douban/test_settings.py",
    "douban/writes",
    "matching",
    "test_project.py",
    "test_project_pages.py",
)
"""Folders and modules of the mark `quick`: rules, storage on SQLite, and whether the definitions load."""
NOT_QUICK = (
    "core/test_gate_limits.py",
    "core/test_gate_processes.py",
    "core/test_gate_racing.py",
    "core/test_leases.py",
    "douban/store/test_migrations.py",
    "douban/writes/test_reconcile.py",
    "douban/writes/test_revert_properties.py",
)
"""Modules in these folders that take their time: several processes, or many drawn examples."""

ONE_CASE = ("douban/evidence", "douban/intros", "douban/quality", "douban/reports", "douban/review", "douban/upkeep")
"""Folders whose rules rest on no engine: SQLite has every case of a test, MariaDB the first one, which shows that the
test's statements work there. What is named by ``::`` runs in any case."""

TESTS = Path(__file__).parent

# No test depends on how fast the machine is: drawing texts is slow in a process that makes its tables of letters.
settings.register_profile(
    "tests", parent=settings(), max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tests")  # a property is stated for all that can be drawn; more examples than these find the same


def is_quick(path: Path, marks: Set[str] = frozenset()) -> bool:
    """Return whether a test in the module at ``path`` with ``marks`` is one for the work of the day."""
    module = path.relative_to(TESTS)

    def among(places: tuple[str, ...]) -> bool:
        return any(module.is_relative_to(place) for place in places)

    return among(QUICK) and not among(NOT_QUICK) and not marks & {*SERVERS, "browser", "long"}


@cache
def own_servers() -> OwnServers:
    """Return the servers of this process's own; what starts them is loaded where one is wanted."""
    from douban_pipeline_tests.harness.rig.own_servers import OwnServers

    return OwnServers()


def pytest_configure(config: pytest.Config) -> None:
    """Let Ctrl-C end what tests interrupt: in the background of a shell, processes begin with the signal ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if on_mysql(config):
        url = os.environ.get("DOUBAN_TEST_MYSQL_URL") or own_servers().url("mysql")
        if url is None:
            raise pytest.UsageError("there is no MySQL: set DOUBAN_TEST_MYSQL_URL")
        # Processes of xdist have these too, and so all tests have one server.
        os.environ |= {"DOUBAN_TEST_MYSQL_URL": url, "DOUBAN_TEST_MARIADB_URL": url}


def on_mysql(config: pytest.Config) -> bool:
    """Return whether a MySQL stands in for MariaDB."""
    return config.getoption("markexpr") == "mysql"


def pytest_sessionfinish() -> None:
    """Stop the servers of the run's own."""
    if own_servers.cache_info().currsize:
        own_servers().close()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no other module when only the quick tests are wanted."""
    wanted = config.getoption("markexpr") != "quick" or not collection_path.name.startswith("test_")
    return None if wanted or is_quick(collection_path) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out repeated cases, mark the quick ones, and begin with the long ones; otherwise the order stays."""
    if not any("::" in argument for argument in config.args):
        repeated = repeated_cases(items)
        config.hook.pytest_deselected(items=repeated)
        left_out = set(repeated)
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        if is_quick(item.path, {mark.name for mark in item.iter_markers()}):
            item.add_marker("quick")
        if item.get_closest_marker("mariadb"):
            item.add_marker("mysql")
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def repeated_cases(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the cases that MariaDB need not have again, see `ONE_CASE`."""
    seen: set[str] = set()
    found = []
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec is None or "mariadb" not in callspec.params.values():
            continue
        name = item.nodeid.partition("[")[0]
        if name in seen and any(item.path.relative_to(TESTS).is_relative_to(place) for place in ONE_CASE):
            found.append(item)
        seen.add(name)
    return found


def pytest_collection_finish() -> None:
    """Leave out what is loaded by now when memory is collected, and collect less often: a tenth of the tests' time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


@pytest.fixture(scope="session", autouse=True)
def _revisions_read_once() -> Iterator[None]:
    """Have Alembic import a revision's file once a process, not once a database: Dagster's storages have dozens."""
    load = alembic.util.load_python_file
    once = cache(load)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            alembic.util,
            "load_python_file",
            # `env.py` is a script that is run, not a revision.
            lambda folder, name: (load if name == "env.py" else once)(folder, name),
        )
        yield


def server_url(name: str) -> str:
    """Return the address of server ``name``, or skip (or fail, if it is required) when there is none."""
    variable, default = SERVERS[name]
    url = make_url(os.environ.get(variable, default))
    try:
        socket.create_connection((url.host or "127.0.0.1", url.port or 0), timeout=2).close()
    except OSError as error:
        own = None if variable in os.environ or is_required(name) else own_servers().url(name)
        if own is not None:
            os.environ[variable] = own  # processes that tests start find it, too
            return own
        missing(name, f"{name} does not answer at {url.host}:{url.port} ({error}); set {variable} to use another")
    return url.render_as_string(hide_password=False)


def missing(name: str, message: str) -> NoReturn:
    """Skip the test for want of ``name``, or fail it, if that is required."""
    if is_required(name):
        pytest.fail(message)
    pytest.skip(message)


def is_required(name: str) -> bool:
    """Return whether a test that would be skipped for want of ``name`` is to fail."""
    return name in os.environ.get("DOUBAN_TEST_REQUIRE", "").split(",")


DATABASE_OPTIONS = {"mariadb": "DEFAULT CHARACTER SET utf8", "postgres": "ENCODING 'UTF8' TEMPLATE template0"}


@pytest.fixture(scope="session", autouse=True)
def _sqlite_does_not_wait_for_the_disk() -> Iterator[None]:
    """Leave it to the system when files of this process are written: what tests kill are processes, not machines."""

    def connected(connection: object, _record: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA synchronous = OFF")

    event.listen(Engine, "connect", connected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("douban_pipeline.core.database._SQLITE_SYNCHRONOUS", "OFF")
        yield
    event.remove(Engine, "connect", connected)


@contextmanager
def new_database(server_name: str) -> Iterator[str]:
    """Yield the address of a new, empty database, dropped afterwards."""
    server = create_engine(server_url(server_name), isolation_level="AUTOCOMMIT")
    name = f"douban_test_{uuid.uuid4().hex[:12]}"
    try:
        with server.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name} {DATABASE_OPTIONS[server_name]}")
            if server.dialect.name == "postgresql":  # its commits need not outlive the machine
                connection.exec_driver_sql(f"ALTER DATABASE {name} SET synchronous_commit = off")
    except OperationalError as error:
        pytest.fail(f"{server_name} answers but refuses: {error}")
    try:
        yield server.url.set(database=name).render_as_string(hide_password=False)
    finally:
        forced = " WITH (FORCE)" if server.dialect.name == "postgresql" else ""
        with server.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {name}{forced}")
        server.dispose()


@pytest.fixture
def mariadb_url() -> Iterator[str]:
    """A new, empty utf8 database, dropped afterwards."""
    with new_database("mariadb") as url:
        yield url


@pytest.fixture(scope="session")
def _postgres_database() -> Iterator[str]:
    """One database that one test after another gets: making and dropping one takes longer than most tests."""
    with new_database("postgres") as url:
        yield url


@pytest.fixture
def postgres_url(_postgres_database: str) -> str:
    """An empty database."""
    engine = create_engine(_postgres_database, isolation_level="AUTOCOMMIT")
    others = "datname = current_database() AND pid <> pg_backend_pid()"
    with engine.connect() as connection:
        connection.exec_driver_sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
        connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA public")
    engine.dispose()
    return _postgres_database


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'library.sqlite'}"


LIBRARY_ENGINES = ("sqlite", pytest.param("mariadb", marks=pytest.mark.mariadb))
"""Engines that the CMS's library may lie on."""
CORE_ENGINES = (*LIBRARY_ENGINES, pytest.param("postgres", marks=pytest.mark.postgres))
"""Engines that `core` speaks."""


@pytest.fixture(params=LIBRARY_ENGINES)
def database_url(request: pytest.FixtureRequest) -> str:
    """Each engine in turn that the CMS's library may lie on."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture(params=CORE_ENGINES)
def any_database_url(request: pytest.FixtureRequest) -> str:
    """Each engine in turn that `core` speaks."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """An instance of Dagster in memory; Dagster is loaded where one is wanted."""
    import dagster as dg

    with dg.DagsterInstance.ephemeral() as opened:
        yield opened
