"""What who asks gets at the default limits: from the store, in a crowd, and above the limit.

The stand-in of TMDB runs in a process of its own and takes a fixed time an answer. On a machine that does other work
the figures say little.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from douban_pipeline.core.database import chunks
from douban_pipeline.tmdb.enrichment.factory import STORE_WAIT_SECONDS, open_service
from douban_pipeline.tmdb.enrichment.results import State
from douban_pipeline.tmdb.enrichment.service import TMDBEnrichmentService
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Target
from douban_pipeline_tests.harness.tmdb.films import answers, title_of
from douban_pipeline_tests.stand_ins.tmdb_server import TmdbServer

CALLERS = 50
STORED_A_SECOND = 200.0
"""Of all callers together, for films that are stored, each for another one."""
STORED_SECONDS = 10
ABOVE_A_SECOND = 15
"""Different questions a second above the limit, for `ABOVE_SECONDS`."""
ABOVE_SECONDS = 8
UPSTREAM_SECONDS = 0.2
STOPPED = "postgresql://nobody@127.0.0.1:1/x"
TARGET = Target(most=25)
"""Milliseconds at the 95th percentile."""
_FIRST_STORED = 2_000_001
"""Id of the first film that is stored: 10 KB each, with the parts and keys of TMDB's answers."""

FILMS = [f"无此{chr(0x4E00 + number)}影" for number in range(ABOVE_A_SECOND * ABOVE_SECONDS)]
"""Films of the stand-in that nobody asked for before."""


def _serve(pipe: Connection) -> None:
    with TmdbServer(seconds=UPSTREAM_SECONDS) as server:
        for number, title in enumerate(FILMS, 80_000_000):
            credits = {"cast": [], "crew": [{"id": 1, "credit_id": f"{number}", "job": "Director", "name": "导演"}]}
            film = {"id": number, "title": title, "release_date": "1993-08-04", "credits": credits}
            server.learn({"path": f"/3/movie/{number}", "body": film})
        pipe.send(server.api_url)
        pipe.recv()


@contextmanager
def upstream() -> Iterator[str]:
    """Yield the address of a stand-in in a process of its own."""
    here, there = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=_serve, args=(there,), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        here.send(None)
        process.join(10)


@contextmanager
def _service(url: str, home: Path, database: str) -> Iterator[TMDBEnrichmentService]:
    settings = TmdbSettings(home=home, database_url=database, api_url=url, api_key="k")
    with open_service(settings, PostgresTmdbStore(database, wait_seconds=STORE_WAIT_SECONDS)) as service:
        yield service


def _stored(service: TMDBEnrichmentService) -> list[float]:
    count = round(STORED_A_SECOND * STORED_SECONDS)
    took: list[float] = []

    async def ask(number: int) -> None:
        await asyncio.sleep(number / STORED_A_SECOND)
        began = time.perf_counter()
        question = f"《{title_of(_FIRST_STORED + number)}》的导演是谁？"
        result = await service.enrich_query(question, "movie", f"u{number % CALLERS}", "s")
        if result.source != "store":
            raise RuntimeError(f"{question}: {result.state}, {result.source}, {result.problem}")
        took.append(1000 * (time.perf_counter() - began))

    async def every() -> None:
        await asyncio.gather(*map(ask, range(count)))

    asyncio.run(every())
    return took


def _crowd(service: TMDBEnrichmentService) -> tuple[float, list[float]]:
    async def ask() -> tuple[State, float]:
        result = await service.enrich_query(f"《{FILMS[0]}》的导演是谁？", "movie", "u", "s", incognito=True)
        return result.state, result.duration_ms

    async def every() -> list[tuple[State, float]]:
        return await asyncio.gather(*(ask() for _ in range(CALLERS)))

    found = asyncio.run(every())
    good = [took for state, took in found if state is State.ANSWERED]
    return 100 * len(good) / len(found), good


def _above(service: TMDBEnrichmentService) -> list[tuple[State, float]]:
    async def ask(number: int, title: str) -> tuple[State, float]:
        await asyncio.sleep(number / ABOVE_A_SECOND)
        result = await service.enrich_query(f"《{title}》的导演是谁？", "movie", "u", "s", incognito=True)
        return result.state, result.duration_ms

    async def every() -> list[tuple[State, float]]:
        return await asyncio.gather(*(ask(*each) for each in enumerate(FILMS)))

    return asyncio.run(every())


def p95(took: list[float]) -> float:
    """Return the 95th percentile."""
    return statistics.quantiles(took, n=100)[94]


def measure_answers(store: PostgresTmdbStore, home: Path) -> Iterator[Figure]:
    """Yield each figure as it is known."""
    database = store.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with upstream() as url:
        for piece in chunks(answers(_FIRST_STORED, round(STORED_A_SECOND * STORED_SECONDS)), 500):
            store.persist_payloads(piece)
        with _service(url, home / "up", database) as service:
            _stored(service)
            asked = time.perf_counter()
            taken = _stored(service)
            rate = len(taken) / (time.perf_counter() - asked)
            yield Figure(
                "different questions answered from the store", rate, "/s", Target(least=0.95 * STORED_A_SECOND)
            )
            yield Figure("an answer from the store at that rate, p95", p95(taken), "ms", TARGET)
        with _service(url, home / "crowd", STOPPED) as service:
            share, took = _crowd(service)
        yield Figure("answered of 50 at once for one film that is not stored", share, "%")
        yield Figure("an answer in that crowd, p95", p95(took), "ms")
        with _service(url, home / "above", STOPPED) as service:
            found = _above(service)
        for state in (State.ANSWERED, State.REFUSED, State.LATE):
            share = 100 * sum(each is state for each, _ in found) / len(found)
            yield Figure(f"{state.value} of 15 different questions a second, none stored", share, "%")
        for state, name in ((State.ANSWERED, "an answer"), (State.REFUSED, "a refusal")):
            yield Figure(f"{name} among them, p95", p95([took for each, took in found if each is state]), "ms")
