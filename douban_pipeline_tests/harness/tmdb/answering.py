"""How much an answer takes beside TMDB's own time: 50 callers, with PostgreSQL running and with it stopped.

The stand-in runs in a process of its own and takes a fixed time an answer. The same requests are made bare first, by
the same number of callers at the same pace: what `enrich_query` takes more at the 95th percentile is our own time.
Callers pause between questions as people do, so that all together ask what TMDB's limit allows (about 40 requests a
second). On a machine that does other work the figures say little.
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

from douban_pipeline.demo.tmdb_server import TmdbServer
from douban_pipeline.tmdb.clients.api import APPENDED
from douban_pipeline.tmdb.enrichment.opening import STORE_WAIT_SECONDS, open_service
from douban_pipeline.tmdb.enrichment.results import State
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.types import EntityType

CALLERS = 50
QUESTIONS_A_SECOND = 18.0
UPSTREAM_SECONDS = 0.2
STOPPED = "postgresql://nobody@127.0.0.1:1/x"
ASKED = ("《喜宴》的导演是谁？", "《饮食男女》的主演有谁", "《卧虎藏龙》是谁导演的", "《推手》的编剧是谁")
TARGET = 25.0
"""Milliseconds at the 95th percentile."""


def _serve(pipe: Connection) -> None:
    with TmdbServer(seconds=UPSTREAM_SECONDS) as server:
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


async def _callers(rounds: int, ask: Callable[[str], Awaitable[None]]) -> list[float]:
    """Have every caller ask ``rounds`` questions with pauses; return how long each took, in milliseconds."""
    took: list[float] = []

    async def caller(number: int) -> None:
        draw = random.Random(number)
        for _ in range(rounds):
            await asyncio.sleep(draw.uniform(0, 2 * CALLERS / QUESTIONS_A_SECOND))
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

        asyncio.run(_callers(1, ask))  # connections, threads, caches
        return asyncio.run(_callers(rounds, ask))


def _answered(url: str, home: Path, database: str, rounds: int) -> list[float]:
    settings = TmdbSettings(
        home=home, database_url=database, api_url=url, api_key="k", service_requests_per_second=1000
    )
    store = PostgresTmdbStore(database, wait_seconds=STORE_WAIT_SECONDS)
    with open_service(settings, store) as service:

        async def ask(question: str) -> None:
            result = await service.enrich_query(question, "movie", "u", "s")
            if result.state is not State.ANSWERED or result.persistence not in ("queued", "spooled"):
                raise RuntimeError(f"{question}: {result.state}, {result.persistence}, {result.problem}")

        asyncio.run(_callers(1, ask))
        return asyncio.run(_callers(rounds, ask))


def p95(took: list[float]) -> float:
    """Return the 95th percentile."""
    return statistics.quantiles(took, n=100)[94]


def measure_answers(store: PostgresTmdbStore, home: Path, rounds: int) -> Iterator[tuple[str, float]]:
    """Yield each figure as it is known, in milliseconds."""
    database = store.url.render_as_string(hide_password=False)
    with upstream() as url:
        bare = _bare(url, rounds)
        yield "ms of TMDB's own time, p95", p95(bare)
        answered = _answered(url, home / "up", database, rounds)
        yield "ms beside TMDB's own time, p95", p95(answered) - p95(bare)
        stopped = _answered(url, home / "down", STOPPED, rounds)
        yield "ms beside TMDB's own time, p95, PostgreSQL stopped", p95(stopped) - p95(bare)
