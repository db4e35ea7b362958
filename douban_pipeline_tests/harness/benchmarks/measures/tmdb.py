"""Speeds of TMDB's store, outbox and graph, and its answers, on servers of their own or one that is named.

Films have the parts and keys of TMDB's answers, 10 KB each. Each figure stands beside what the bare library does with
the same rows in turn. A busy machine makes rates small and times long, and ratios less so.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from neo4j import Driver, GraphDatabase

from douban_pipeline.core.database import chunks
from douban_pipeline.demo.embedded_servers import embedded_graph, embedded_postgres
from douban_pipeline.tmdb.graph.target import GraphTarget
from douban_pipeline.tmdb.graph_sync import GRAPH_BATCH, drain
from douban_pipeline.tmdb.store.entities import EntityAnswer
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Measure, Target, World
from douban_pipeline_tests.harness.tmdb import bare
from douban_pipeline_tests.harness.tmdb.answering import measure_answers
from douban_pipeline_tests.harness.tmdb.films import answers

BATCH = 500
_TITLES, _ELSEWHERE = 3_000_000, 10_000_000
"""First ids of the films of the graph, and of the people of the bare library."""


def without_what_is_there() -> None:
    """Keep garbage collection from walking through all that was generated ahead, which no real process holds."""
    gc.collect()
    gc.freeze()


def seconds_of(work: Callable[[], object]) -> float:
    """Return how long ``work`` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def persist(store: PostgresTmdbStore, given: Sequence[EntityAnswer]) -> None:
    """Persist answers in batches."""
    for piece in chunks(given, BATCH):
        store.persist_payloads(piece)


def in_turn(pairs: Iterable[tuple[Callable[[], object], Callable[[], object]]]) -> tuple[float, float]:
    """Return how long the first works of all pairs take, and the second ones.

    What else the machine does, and what a server warms up, slows both: each goes first every other time.
    """
    own = other = 0.0
    for place, (ours, theirs) in enumerate(pairs):
        if place % 2:
            other += seconds_of(theirs)
        own += seconds_of(ours)
        if not place % 2:
            other += seconds_of(theirs)
    return own, other


def beside(
    name: str,
    given: Sequence[EntityAnswer],
    ours: Callable[[Sequence[EntityAnswer]], object],
    bare: Callable[[Sequence[EntityAnswer]], object],
    least: float | None = None,
) -> Iterator[Figure]:
    """Yield how many rows a second we do beside the bare library, which takes the same pieces in turn."""
    seconds = in_turn((partial(ours, some), partial(bare, some)) for some in chunks(given, BATCH))
    own, other = (len(given) / each for each in seconds)
    yield from compared(name, own, other, least)


def compared(name: str, own: float, other: float, least: float | None) -> Iterator[Figure]:
    """Yield our rate beside that of a bare library, and how often as high it is."""
    yield Figure(name, own, "/s", baseline=other, against="the bare library on the same rows")
    target = Target(least=least) if least is not None else None
    yield Figure(f"{name}, times the bare library", own / other, "", target)


def measure(store: PostgresTmdbStore, target: GraphTarget, driver: Driver, movies: int) -> Iterator[Figure]:
    """Yield each figure as it is known."""
    bare.create_tables(store)
    first, second = answers(1, movies), answers(1, movies, 2)
    without_what_is_there()
    both = store.persist_payloads, partial(bare.upsert, store)
    yield from beside("new films", first, *both)
    yield from beside("unchanged films", first, *both, 1.0)
    yield from beside("changed films", second, *both, 0.7)
    yield from growth(store, movies)
    yield from edges(store, target, driver, max(movies // 5, GRAPH_BATCH))


def growth(store: PostgresTmdbStore, movies: int) -> Iterator[Figure]:
    """Yield how much longer a changed film takes among ten times as many."""

    def seconds(version: int) -> float:
        given = answers(1, BATCH, version)
        return seconds_of(partial(persist, store, given))

    small = min(seconds(version) for version in (3, 4, 5))
    for first in range(movies + 1, 10 * movies, BATCH):
        persist(store, answers(first, min(BATCH, 10 * movies + 1 - first)))
    large = min(seconds(version) for version in (6, 7, 8))
    note = f"{movies:,} and {10 * movies:,} films"
    yield Figure(
        "a changed film among ten times as many, times as long", large / small, "", Target(most=1.2), note=note
    )


def edges(store: PostgresTmdbStore, target: GraphTarget, driver: Driver, titles: int) -> Iterator[Figure]:
    """Yield how fast edges reach an empty graph, and one that has them."""
    with store.transaction() as connection:
        connection.execute("DELETE FROM tmdb.neo4j_etl_outbox")
    many = {"people": 20 * titles, "cast": 60, "crew": 37}
    target.set_up()
    target.clear()

    for name, version, least in (("edges upserted", 1, 0.9), ("edges looked at again", 2, None)):

        def batches(version: int = version) -> Iterator[tuple[Callable[[], object], Callable[[], object]]]:
            for first in range(1, titles + 1, GRAPH_BATCH):
                count = min(GRAPH_BATCH, titles + 1 - first)
                store.persist_payloads(answers(_TITLES + first, count, version, **many))
                elsewhere = answers(_TITLES + first + titles, count, version, first_person=_ELSEWHERE, **many)
                yield partial(drain, store, target), partial(bare.merge, driver, target.database, elsewhere)

        own, other = (100 * titles / each for each in in_turn(batches()))
        yield from compared(name, own, other, least)


@contextmanager
def servers(postgres: str) -> Iterator[tuple[PostgresTmdbStore, GraphTarget, Driver]]:
    """Give an empty store and a graph: the PostgreSQL named, whose schema tmdb must not exist, or one of its own."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        at = stack.enter_context(embedded_graph(folder / "g"))
        target = stack.enter_context(GraphTarget(at.uri, at.user, at.password, at.database))
        driver = stack.enter_context(GraphDatabase.driver(at.uri, auth=(at.user, at.password)))
        url = postgres or stack.enter_context(embedded_postgres(folder / "p"))
        store = stack.enter_context(PostgresTmdbStore(url))
        if store.upgrade()[0] is not None:
            raise SystemExit("the schema tmdb exists there: name an empty database")
        yield store, target, driver


def tmdb(world: World, movies: int = 1_000, postgres: str = "") -> Iterator[Figure]:
    """Measure store, graph and answers; ``postgres`` names an empty database to use."""
    with servers(postgres) as (store, target, driver):
        yield from measure_answers(store, world.scratch)
        yield from measure(store, target, driver, movies)


MEASURES = (Measure("tmdb", "TMDB's store, graph and answers", tmdb, ()),)
