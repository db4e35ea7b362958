"""The store and the graph as the settings name them, or those for trying in HOME."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from douban_pipeline.tmdb.embedded import embedded_graph, embedded_postgres
from douban_pipeline.tmdb.settings import TmdbSettings

if TYPE_CHECKING:
    from douban_pipeline.tmdb.graph.target import GraphTarget
    from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore


@contextmanager
def open_store(settings: TmdbSettings) -> Iterator[PostgresTmdbStore]:
    """Yield the store; where no server is named, PostgreSQL runs in HOME for as long as the block does.

    Raises:
        DatabaseError: There is no server, and none can be started.
    """
    from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore

    url = settings.database_url.get_secret_value()
    if not url:
        with (
            embedded_postgres(settings.home / "tmdb" / "postgres") as found,
            PostgresTmdbStore(found, settings.pool_min, settings.pool_max, settings.language) as store,
        ):
            yield store
        return
    with PostgresTmdbStore(url, settings.pool_min, settings.pool_max, settings.language) as store:
        yield store


@contextmanager
def open_graph(settings: TmdbSettings) -> Iterator[GraphTarget]:
    """Yield the graph; where no server is named, ArcadeDB runs in HOME for as long as the block does.

    Raises:
        DatabaseError: There is no server, and none can be started.
    """
    from douban_pipeline.tmdb.graph.target import GraphTarget

    if settings.graph_uri:
        password = settings.graph_password.get_secret_value()
        with GraphTarget(settings.graph_uri, settings.graph_user, password, settings.graph_database) as target:
            yield target
        return
    with (
        embedded_graph(settings.home / "tmdb" / "graph") as found,
        GraphTarget(found.uri, found.user, found.password, found.database) as target,
    ):
        yield target
