"""What who asks gets at the default limits: from the store, beside TMDB's own time, in a crowd, and above the limit.

The stand-in of TMDB runs in a process of its own and takes a fixed time an answer. For answers of TMDB the same
requests are made bare first, by the same number of callers at the same pace: what `enrich_query` takes more at the 95th
percentile is our own time. Callers pause between questions as people do. On a machine that does other work the figures
say little.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import httpx

from douban_pipeline.core.database import chunks
from douban_pipeline.tmdb.clients.api import APPENDED
from douban_pipeline.tmdb.enrichment.factory import STORE_WAIT_SECONDS, open_service
from douban_pipeline.tmdb.enrichment.results import State
from douban_pipeline.tmdb.enrichment.service import TMDBEnrichmentService
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.types import EntityType
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Target
from douban_pipeline_tests.harness.tmdb.films import answers, title_of
from douban_pipeline_tests.stand_ins.tmdb_server import TmdbServer

CALLERS = 50
QUESTIONS_A_SECOND = 6.0
"""Of all callers together, for films that are not stored: each takes two of the 15 requests a second."""
STORED_A_SECOND = 200.0
"""Of all callers together, for films that are stored, each for another one."""
STORED_SECONDS = 10
ABOVE_A_SECOND = 15
"""Different questions a second above the limit, for `ABOVE_SECONDS`."""
ABOVE_SECONDS = 8
UPSTREAM_SECONDS = 0.2
STOPPED = "postgresql://nobody@127.0.0.1:1/x"
ASKED = ("《喜宴》的导演是谁？", "《饮食男女》的主演有谁", "《卧虎藏龙》是谁导演的", "《推手》的编剧是谁")
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


async def _callers(rounds: int, ask: Callable[[str], Awaitable[None]], pace: float) -> list[float]:
    """Have every caller ask ``rounds`` questions with pauses; return how long each took, in milliseconds."""
    took: list[float] = []

    async def caller(number: int) -> None:
        draw = random.Random(number)
        for _ in range(rounds):
            await asyncio.sleep(draw.uniform(0, 2 * CALLERS / pace))
            began = time.perf_counter()
            await ask(draw.choice(ASKED))
            took.append(1000 * (time.perf_counter() - began))

    await asyncio.gather(*(caller(number) for number in range(CALLERS)))
    return took


def _bare(url: str, rounds: int) -> list[float]:
    """Make the requests that a question takes, and nothing else."""
    names = {"《喜宴》": 9261, "《饮食男女》": 10451, "《卧虎藏龙》": 146, "《推手》": 90_000_035}
    appended = ",".join(APPENDED[EntityType.MOVIE])
    with httpx.Client(limits=httpx.Limits(max_keepalive_connections=64)) as client, ThreadPoolExecutor(64) as threads:

        def requests(question: str) -> None:
            name = question[: question.index("》") + 1]
            asked = {"query": name[1:-1], "include_adult": "false", "page": "1", "language": "zh-CN", "api_key": "k"}
            client.get(f"{url}/search/multi", params=asked).raise_for_status()
            asked = {"language": "zh-CN", "append_to_response": appended, "api_key": "k"}
            client.get(f"{url}/movie/{names[name]}", params=asked).raise_for_status()

        async def ask(question: str) -> None:
            await asyncio.get_running_loop().run_in_executor(threads, requests, question)

        asyncio.run(_callers(1, ask, QUESTIONS_A_SECOND))  # connections, threads, caches
        return asyncio.run(_callers(rounds, ask, QUESTIONS_A_SECOND))


@contextmanager
def _service(url: str, home: Path, database: str) -> Iterator[TMDBEnrichmentService]:
    """Yield the service at its default limits."""
    settings = TmdbSettings(home=home, database_url=database, api_url=url, api_key="k")
    with open_service(settings, PostgresTmdbStore(database, wait_seconds=STORE_WAIT_SECONDS)) as service:
        yield service


def _answered(service: TMDBEnrichmentService, rounds: int, pace: float, source: str) -> list[float]:
    async def ask(question: str) -> None:
        result = await service.enrich_query(question, "movie", "u", "s")
        if result.state is not State.ANSWERED or (source and result.source != source):
            raise RuntimeError(f"{question}: {result.state}, {result.source}, {result.problem}")

    return asyncio.run(_callers(rounds, ask, pace))


def _stored(service: TMDBEnrichmentService) -> list[float]:
    """Ask for as many different films that are stored as `STORED_A_SECOND` says; return how long each took, in ms."""
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
    """Have all callers ask for one film at once that is not stored; return the share answered, and times in ms."""

    async def ask() -> tuple[State, float]:
        result = await service.enrich_query(f"《{FILMS[0]}》的导演是谁？", "movie", "u", "s", incognito=True)
        return result.state, result.duration_ms

    async def every() -> list[tuple[State, float]]:
        return await asyncio.gather(*(ask() for _ in range(CALLERS)))

    found = asyncio.run(every())
    good = [took for state, took in found if state is State.ANSWERED]
    return 100 * len(good) / len(found), good


def _above(service: TMDBEnrichmentService) -> list[tuple[State, float]]:
    """Ask for different films that are not stored, twice as fast as TMDB may be asked; return outcomes and ms."""

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


def measure_answers(store: PostgresTmdbStore, home: Path, rounds: int) -> Iterator[Figure]:
    """Yield each figure as it is known."""
    database = store.url.render_as_string(hide_password=False)
    with upstream() as url:
        with _service(url, home / "up", database) as service:
            _answered(service, 1, QUESTIONS_A_SECOND, "")  # asks TMDB for the films, and stores them
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
        bare = _bare(url, rounds)
        yield Figure("TMDB's own time, p95", p95(bare), "ms")
        with _service(url, home / "down", STOPPED) as service:
            _answered(service, 1, QUESTIONS_A_SECOND, "tmdb")
            stopped = _answered(service, rounds, QUESTIONS_A_SECOND, "tmdb")
        ours = p95(stopped) - p95(bare)
        yield Figure("beside TMDB's own time, p95, PostgreSQL stopped", ours, "ms", TARGET)
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
