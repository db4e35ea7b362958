"""``make bench-tmdb``: speeds of store, outbox and graph on servers of its own, or those that are named.

Films have the parts and keys of TMDB's answers, 10 KB each. Each figure is printed beside its target and beside what
the bare library does with the same rows in turn; all are written to ``results.json``, and it fails if one misses its
target. A busy machine makes rates small and times long, and ratios less so.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from neo4j import Driver, GraphDatabase

from douban_pipeline.core.database import chunks
from douban_pipeline.demo.embedded_servers import embedded_graph, embedded_postgres
from douban_pipeline.tmdb.graph.target import GraphTarget
from douban_pipeline.tmdb.graph_sync import GRAPH_BATCH, drain
from douban_pipeline.tmdb.store import outbox
from douban_pipeline.tmdb.store.entities import EntityAnswer
from douban_pipeline.tmdb.store.exports import store_export
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.types import EntityType
from douban_pipeline_tests.harness.benchmarks.bench import bench
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Measure, Target
from douban_pipeline_tests.harness.benchmarks.report import endings
from douban_pipeline_tests.harness.tmdb import bare
from douban_pipeline_tests.harness.tmdb.answering import measure_answers
from douban_pipeline_tests.harness.tmdb.films import answers, person
from douban_pipeline_tests.harness.tmdb.memory import memory

WORKERS, CLAIM, BATCH = 4, 500, 500
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
    """Yield how many rows a second we do, and how often as many as the bare library that is.

    Both take the same pieces in turn.

    Args:
        name: The figure.
        given: What is done.
        ours: Our work on a piece.
        bare: The library's.
        least: What the ratio should not be less than.
    """
    seconds = in_turn((partial(ours, some), partial(bare, some)) for some in chunks(given, BATCH))
    own, other = (len(given) / each for each in seconds)
    yield from compared(name, own, other, least)


def compared(name: str, own: float, other: float, least: float | None) -> Iterator[Figure]:
    """Yield our rate beside that of a bare library, and how often as high it is."""
    yield Figure(name, own, "/s", baseline=other, against="the bare library on the same rows")
    target = Target(least=least) if least is not None else None
    yield Figure(f"{name}, times the bare library", own / other, "", target)


def in_workers(work: Callable[[str], int]) -> int:
    """Have several workers do the same, each with a name of its own; return the sum of what they return."""
    with ThreadPoolExecutor(WORKERS) as workers:
        return sum(workers.map(work, [f"w{each}" for each in range(WORKERS)]))


def empty_outbox(store: PostgresTmdbStore, name: str) -> int:
    """Claim and acknowledge rows until there are none; return how many that were."""
    done = 0
    while claims := store.run(lambda connection: outbox.claim(connection, name, CLAIM, 60)):
        done += store.run(partial(outbox.acknowledge, worker=name, claims=claims))
    return done


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
    with store.transaction() as connection:
        connection.execute(
            "INSERT INTO tmdb.neo4j_etl_outbox (entity_type, tmdb_id, raw_hash, graph_hash) "
            "SELECT 'tv', n, 'x', 'x' FROM generate_series(1, %s) AS n",
            (20 * movies,),
        )
        connection.execute("INSERT INTO bare.outbox SELECT * FROM tmdb.neo4j_etl_outbox")
    waiting, counted = store.run(outbox.counts).waiting, list[int]()
    own = seconds_of(lambda: counted.append(in_workers(partial(empty_outbox, store))))
    other = seconds_of(lambda: counted.append(in_workers(lambda _: bare.queue(store, CLAIM))))
    assert counted == [waiting, waiting], "a row was lost, or done twice"
    yield from compared("outbox rows claimed and acknowledged", waiting / own, waiting / other, 0.7)
    lines = [
        json.dumps({"id": 10_000_000 + each, "original_title": f"Movie {each}", "popularity": 0.6}).encode()
        for each in range(100 * movies)
    ]
    without_what_is_there()
    own = seconds_of(lambda: store_export(store, EntityType.MOVIE, lines))
    other = seconds_of(lambda: bare.stubs(store, lines))
    yield from compared("stubs of an id export", len(lines) / own, len(lines) / other, 0.7)
    yield gone(store)
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


def gone(store: PostgresTmdbStore) -> Figure:
    """Return how long it takes to find who lists a title that went, among 1,000 people with 60 credits each."""
    people = [
        EntityAnswer(EntityType.PERSON, person(tmdb_id, credits=60), "zh-CN", datetime.now(UTC))
        for tmdb_id in range(1, 1001)
    ]
    persist(store, people)
    took = []
    for title in range(1, 21):
        took.append(1000 * seconds_of(partial(store.people_crediting, {EntityType.MOVIE: [title]})))
    return Figure("who lists a title that went, among 1,000 people", statistics.median(took), "ms", Target(most=25))


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


def all_figures(home: Path, movies: int, rounds: int, titles: int, postgres: str = "") -> Iterator[Figure]:
    """Measure store, outbox, graph, answers and memory."""
    with servers(postgres) as (store, target, driver):
        yield from measure_answers(store, home, rounds)
        yield from measure(store, target, driver, movies)
        yield memory(store.engine.url.set(drivername="postgresql").render_as_string(hide_password=False), titles)


MEASURES = (
    Measure("tmdb", "store, outbox, graph and answers", lambda world: all_figures(world.scratch, 1_000, 4, 5_000), ()),
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--titles", type=int, default=10_000, help="films stored to measure the memory they take")
    parser.add_argument("--movies", type=int, default=2_000, help="full movies; the other sizes follow it")
    parser.add_argument("--postgres", default="", help="URL of an empty database; default: one from the wheel")
    parser.add_argument("--rounds", type=int, default=8, help="questions of each of the 50 callers")
    parser.add_argument("--out", type=Path, default=Path(".douban_pipeline/bench-tmdb"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        figures = all_figures(Path(home), given.movies, given.rounds, given.titles, given.postgres)
        if endings(bench("tmdb", figures, given.out / "results.json")):
            raise SystemExit(1)


if __name__ == "__main__":
    main()
