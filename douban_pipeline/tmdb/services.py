"""The services of the TMDB system, created from the settings: store, graph and client.

Does not depend on Dagster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import Engine, Table

from douban_pipeline.core.clock import Clock, SystemClock
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.core.platform import SourceLimits, SourcePlatform
from douban_pipeline.tmdb.clients.api import EXPORTS, EXPORTS_URL, SOURCE, TmdbClient
from douban_pipeline.tmdb.clients.errors import EXPORT_RULES, RULES
from douban_pipeline.tmdb.settings import PREFIX, TmdbSettings
from douban_pipeline.tmdb.store.migrations import TREE
from douban_pipeline.tmdb.store.tables import gate, snapshot

if TYPE_CHECKING:
    from douban_pipeline.tmdb.graph.target import GraphTarget
    from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore

LOCATION = "__repository__@tmdb"
"""Repository and code location as named in `workspace.yaml`; a run's own location takes precedence."""
_EXPORT_BYTES = 256 * 1024 * 1024
_EXPORT_SECONDS = 600.0
_KEPT_OPEN = 10
"""Connections to TMDB kept open between calls: there are many calls per second, and TLS takes two round trips."""
SEARCH_CACHE_DAYS = 7
"""Days for which an archived search answer replaces a request."""

REQUEST_TIMEOUT_SECONDS = 10.0
"""Wall-clock limit of one request."""

CONCURRENCY = 10
"""Concurrent requests of runs and commands: enough for the default rate while answers take half a second."""


@contextmanager
def open_graph(settings: TmdbSettings) -> Iterator[GraphTarget]:
    """Yield the graph.

    Raises:
        DatabaseError: No server is configured.
    """
    from douban_pipeline.tmdb.graph.target import GraphTarget

    if not settings.graph_uri:
        raise _missing(terminal_text("no graph database is configured"), "GRAPH_URI")
    password = settings.graph_password.get_secret_value()
    with GraphTarget(settings.graph_uri, settings.graph_user, password, settings.graph_database) as target:
        yield target


def _missing(problem: str, name: str) -> DatabaseError:
    remedy = terminal_text("set {prefix}{name}; to try it without a server, run `douban-pipeline demo --systems tmdb`")
    return DatabaseError(problem, remedy.format(prefix=PREFIX, name=name))


@dataclass(frozen=True)
class TmdbServices(SourcePlatform):
    """The platform plus the store, for one process.

    Pacing and archive of TMDB's answers are in the store's database: one rate for all processes.
    """

    settings: TmdbSettings
    store: PostgresTmdbStore
    location: str = LOCATION
    """Repository and code location of the run, for links into Dagster's UI."""

    @property
    def tree(self) -> MigrationTree:
        """The migrations of the schema."""
        return TREE

    @property
    def archive_table(self) -> Table:
        """The table of archived answers."""
        return snapshot

    @property
    def gate_table(self) -> Table:
        """The table of the gate."""
        return gate

    @property
    def longest_call(self) -> timedelta:
        """The maximum duration of a call: that of an id list."""
        return timedelta(seconds=_EXPORT_SECONDS)

    def source_limits(self) -> Mapping[str, SourceLimits]:
        """Return the limits of the API and of the id lists."""
        settings = self.settings
        return {
            SOURCE: SourceLimits(60 * settings.requests_per_second, CONCURRENCY),
            EXPORTS: SourceLimits(10, 2),
        }

    def now(self) -> datetime:
        """Return the current time."""
        return self.clock.now()

    def days_ago(self, days: float) -> datetime:
        """Return the time ``days`` days ago."""
        return self.now() - timedelta(days=days)

    @property
    def cannot_ask(self) -> str:
        """Why TMDB cannot be used, as text; empty if it can."""
        try:
            api_access(self.settings)
        except ProblemsError as error:
            return "; ".join(error.problems)
        return ""

    @contextmanager
    def client(self) -> Iterator[TmdbClient]:
        """Yield the client for runs and commands.

        Raises:
            ProblemsError: No key is set.
            DatabaseError: The schema is not at this release's version.
        """
        settings, seconds = self.settings, REQUEST_TIMEOUT_SECONDS
        headers, key = api_access(settings)
        self.ready()
        yield TmdbClient(
            self.fetcher(SOURCE, seconds=seconds, rules=RULES, headers=headers, keep_alive=_KEPT_OPEN),
            self.fetcher(EXPORTS, seconds=_EXPORT_SECONDS, max_bytes=_EXPORT_BYTES, rules=EXPORT_RULES),
            api_url=settings.api_url,
            exports_url=EXPORTS_URL,
            api_key=key,
            language=settings.language,
            search_age=timedelta(days=SEARCH_CACHE_DAYS),
        )

    @contextmanager
    def graph(self) -> Iterator[GraphTarget]:
        """Yield the graph with its constraints; see `open_graph`."""
        with open_graph(self.settings) as target:
            target.set_up()
            yield target

    @property
    def library(self) -> Engine:
        """The CMS's database, for reading.

        Raises:
            ProblemsError: None is configured.
            DatabaseError: The URL cannot be used.
        """
        url = self.settings.library_url.get_secret_value()
        if not url:
            raise ProblemsError(["没有设置 DOUBAN_PIPELINE_DATABASE_URL：不知道影片在哪里"])
        return self.others.engine(url, setting="DOUBAN_PIPELINE_DATABASE_URL")


def open_services(settings: TmdbSettings, clock: Clock | None = None, location: str = LOCATION) -> TmdbServices:
    """Return the services for ``settings``.

    Raises:
        DatabaseError: No server is configured.
    """
    from douban_pipeline.tmdb.store.postgres import POOL_MAX, PostgresTmdbStore

    url = settings.database_url.get_secret_value()
    if not url:
        raise _missing(terminal_text("no PostgreSQL is configured"), "DATABASE_URL")
    store = PostgresTmdbStore(url, min_size=POOL_MAX, language=settings.language)
    services = TmdbServices(store.engine, clock or SystemClock(), settings, store, location)
    services._opened.callback(store.close)
    return services


def api_access(settings: TmdbSettings) -> tuple[dict[str, str], str]:
    """Return the headers of requests to TMDB, and the key that goes into their address; empty for a token.

    A read access token is a JSON Web Token, whose parts are joined by dots; a key of version 3 has none.

    Raises:
        ProblemsError: No key is set.
    """
    key = settings.api_key.get_secret_value()
    if not settings.has_key:
        raise ProblemsError([f"TMDB cannot be used without a key: set {PREFIX}API_KEY"])
    return ({"Authorization": f"Bearer {key}"}, "") if "." in key else ({}, key)
