"""``make bench-tmdb``: speeds of store, outbox and graph on servers of its own, or those that are named.

Each figure is printed beside its target, and all are written to ``results.json``. A busy machine makes them small.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from douban_pipeline.core.database import chunks
from douban_pipeline.tmdb.embedded import embedded_graph, embedded_postgres
from douban_pipeline.tmdb.graph.target import GraphTarget
from douban_pipeline.tmdb.graph_sync import drain
from douban_pipeline.tmdb.store import outbox
from douban_pipeline.tmdb.store.entities import EntityAnswer
from douban_pipeline.tmdb.store.exports import store_export
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.types import EntityType
from douban_pipeline_tests.harness.benchmarks.bench import bench
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Measure, Target
from douban_pipeline_tests.harness.tmdb.answering import measure_answers

WORKERS, CLAIM, BATCH = 4, 500, 500


def movie(tmdb_id: int, credits: int, people: int, version: int, size: int) -> dict[str, Any]:
    """Return a generated full movie of about ``size`` bytes more than its credits."""
    draw = random.Random(tmdb_id)
    cast = [
        {"id": person, "name": f"Person {person}", "credit_id": f"{tmdb_id:x}-{place:x}", "character": f"Role {place}"}
        for place, person in enumerate(draw.sample(range(1, people + 1), credits))
    ]
    return {
        "id": tmdb_id,
        "title": f"Movie {tmdb_id}, {version}",
        "release_date": "1993-08-04",
        "vote_average": 7.5,
        "genres": [{"id": 18, "name": "Drama"}],
        "homepage": "".join(draw.choices("abcdefghij0123456789", k=size)),
        "credits": {"cast": cast, "crew": []},
    }


def answers(count: int, version: int, *, credits: int, people: int, size: int) -> list[EntityAnswer]:
    """Return generated answers."""
    now = datetime.now(UTC)
    return [
        EntityAnswer(EntityType.MOVIE, movie(each, credits, people, version, size), "zh-CN", now)
        for each in range(1, count + 1)
    ]


def without_what_is_there() -> None:
    """Keep garbage collection from walking through all that was generated ahead, which no real process holds."""
    gc.collect()
    gc.freeze()


def rate(name: str, count: int, work: Callable[[], object], least: float | None = None) -> Figure:
    """Run ``work``; return how many of ``count`` it did a second."""
    began = time.perf_counter()
    work()
    target = Target(least=least) if least is not None else None
    return Figure(name, count / (time.perf_counter() - began), "/s", target)


def persist(store: PostgresTmdbStore, given: list[EntityAnswer]) -> None:
    """Persist answers in batches."""
    for piece in chunks(given, BATCH):
        store.persist_payloads(piece)


def empty_outbox(store: PostgresTmdbStore) -> int:
    """Claim and acknowledge everything with several workers; return how many rows that were."""
    done: list[int] = []

    def work(name: str) -> None:
        while claims := store.run(lambda connection: outbox.claim(connection, name, CLAIM, 60)):
            done.append(store.run(lambda connection, claims=claims: outbox.acknowledge(connection, name, claims)))  # type: ignore[misc]

    workers = [threading.Thread(target=work, args=(f"w{each}",)) for each in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(done)


def measure(store: PostgresTmdbStore, target: GraphTarget, movies: int) -> Iterator[Figure]:
    """Yield each figure as it is known."""
    large = {"credits": 20, "people": 500, "size": 10_000}
    first, second = answers(movies, 1, **large), answers(movies, 2, **large)
    without_what_is_there()
    yield rate("new movies", movies, lambda: persist(store, first))
    yield rate("unchanged movies", movies, lambda: persist(store, first), 5_000)
    yield rate("changed movies", movies, lambda: persist(store, second), 3_000)
    with store.transaction() as connection:
        connection.execute(
            "INSERT INTO tmdb.neo4j_etl_outbox (entity_type, tmdb_id, raw_hash, graph_hash) "
            "SELECT 'tv', n, 'x', 'x' FROM generate_series(1, %s) AS n",
            (20 * movies,),
        )
    waiting = store.run(outbox.counts).waiting
    counted: list[int] = []
    name = "outbox rows claimed and acknowledged, four workers"
    yield rate(name, waiting, lambda: counted.append(empty_outbox(store)), 20_000)
    assert counted == [waiting], "a row was lost, or done twice"
    lines = [
        json.dumps({"id": 10_000_000 + each, "original_title": f"Movie {each}", "popularity": 0.6}).encode()
        for each in range(100 * movies)
    ]
    without_what_is_there()
    yield rate("stubs of an id export", len(lines), lambda: store_export(store, EntityType.MOVIE, lines), 150_000)
    titles = movies // 10
    persist(store, answers(titles, 3, credits=100, people=20 * titles, size=10))
    target.set_up()
    target.clear()
    yield rate("edges upserted", 101 * titles, lambda: drain(store, target), 5_000)
    persist(store, answers(titles, 4, credits=100, people=20 * titles, size=10))
    yield rate("edges looked at again", 101 * titles, lambda: drain(store, target))


@contextmanager
def servers(postgres: str) -> Iterator[tuple[PostgresTmdbStore, GraphTarget]]:
    """Give an empty store and a graph: the PostgreSQL named, whose schema tmdb must not exist, or one of its own."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, embedded_graph(Path(folder) / "g") as at:
        target = GraphTarget(at.uri, at.user, at.password, at.database)
        if postgres:
            with PostgresTmdbStore(postgres) as store, target:
                before, _ = store.upgrade()
                if before is not None:
                    raise SystemExit("the schema tmdb exists there: name an empty database")
                yield store, target
            return
        with embedded_postgres(Path(folder) / "p") as url, PostgresTmdbStore(url) as store, target:
            store.upgrade()
            yield store, target


def all_figures(home: Path, movies: int, rounds: int, postgres: str = "") -> Iterator[Figure]:
    """Measure store, outbox, graph and answers."""
    with servers(postgres) as (store, target):
        yield from measure(store, target, movies)
        yield from measure_answers(store, home, rounds)


MEASURES = (
    Measure("tmdb", "store, outbox, graph and answers", lambda world: all_figures(world.scratch, 2_000, 4), ()),
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--movies", type=int, default=5_000, help="full movies; the other sizes follow it")
    parser.add_argument("--postgres", default="", help="URL of an empty database; default: one from the wheel")
    parser.add_argument("--rounds", type=int, default=8, help="questions of each of the 50 callers")
    parser.add_argument("--out", type=Path, default=Path(".douban_pipeline/bench-tmdb"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        figures = all_figures(Path(home), given.movies, given.rounds, given.postgres)
        bench("tmdb", figures, given.out / "results.json")


if __name__ == "__main__":
    main()
