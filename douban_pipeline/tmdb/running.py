"""The services of a TMDB run in Dagster: store, client, graph. Does not depend on Dagster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Self

from sqlalchemy import Engine

from douban_pipeline.core.clock import Clock, SystemClock
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.other_databases import OtherDatabases
from douban_pipeline.tmdb.clients.api import TmdbClient
from douban_pipeline.tmdb.graph.target import GraphTarget
from douban_pipeline.tmdb.services import TmdbPlatform, api_headers, open_client, open_graph, open_store
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore

LOCATION = "__repository__@tmdb"
"""Repository and code location as named in `workspace.yaml`; a run's own location takes precedence."""


@dataclass(frozen=True)
class TmdbServices(TmdbPlatform):
    """The platform plus the store, for one process; see `open_services`."""

    store: PostgresTmdbStore
    location: str = LOCATION
    """Repository and code location of the run, for links into Dagster's UI."""

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
            api_headers(self.settings)
        except ProblemsError as error:
            return "; ".join(error.problems)
        return ""

    @contextmanager
    def client(self) -> Iterator[TmdbClient]:
        """Yield the client of TMDB; see `services.open_client`."""
        with open_client(self.settings, self.store, self.clock) as client:
            yield client

    @contextmanager
    def graph(self) -> Iterator[GraphTarget]:
        """Yield the graph with its constraints; see `services.open_graph`."""
        with open_graph(self.settings) as target:
            target.set_up()
            yield target

    def ready(self) -> Self:
        """Return self if the schema is of this release; an embedded one in HOME is upgraded.

        Raises:
            DatabaseError: It is missing or of another version; the message says what to run.
        """
        if not self.settings.database_url.get_secret_value():
            self.store.upgrade()
        self.store.ready()
        return self

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

    @cached_property
    def others(self) -> OtherDatabases:
        """Where other systems keep their tables; closed together with these services."""
        others = OtherDatabases(self.engine, self.settings.database_url.get_secret_value())
        self._opened.callback(others.close)
        return others

    def close(self) -> None:
        """Close all connections, then stop an embedded server; safe to repeat."""
        self.engine.dispose()
        super().close()


def open_services(settings: TmdbSettings, clock: Clock | None = None, location: str = LOCATION) -> TmdbServices:
    """Return the services for ``settings``; if no server is configured, PostgreSQL runs in HOME until they are closed.

    Args:
        settings: The settings.
        clock: The system's clock by default.
        location: Repository and code location of the run, for links into Dagster's UI.

    Raises:
        DatabaseError: No server is configured, and none can be started.
    """
    with ExitStack() as opened:
        store = opened.enter_context(open_store(settings))
        services = TmdbServices(
            engine=store.engine(), clock=clock or SystemClock(), settings=settings, store=store, location=location
        )
        services._opened.push(opened.pop_all())
    return services
