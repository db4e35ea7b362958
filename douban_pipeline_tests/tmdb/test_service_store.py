"""The service with a real PostgreSQL: stopped under load and started again, asked to forget, and from the terminal."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from douban_pipeline.demo.embedded_servers import embedded_postgres
from douban_pipeline.tmdb.enrichment.factory import open_service, open_spool
from douban_pipeline.tmdb.enrichment.results import State
from douban_pipeline.tmdb.enrichment.writer import Writer
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline_tests.stand_ins.tmdb_server import TmdbServer
from douban_pipeline_tests.tmdb.given import movie

QUESTIONS = ("《喜宴》的导演是谁？", "李安导演过哪些电影", "推荐几部国产剧")


@pytest.fixture(autouse=True)
def _unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("douban_pipeline.tmdb.enrichment.factory.SERVICE_REQUESTS_PER_SECOND", 1000)


@pytest.fixture(scope="module")
def server() -> Iterator[TmdbServer]:
    with TmdbServer() as running:
        yield running


def settings_for(server: TmdbServer, home: Path, url: str, **more: Any) -> TmdbSettings:
    more = {"enrichment_write_queue_size": 5, **more}
    return TmdbSettings(home=home, database_url=url, api_url=server.api_url, api_key="k", **more)


def count(store: PostgresTmdbStore, table: str = "enrichment_requests") -> int:
    with store.transaction() as connection:
        row = connection.execute(f"SELECT count(*) FROM tmdb.{table}").fetchone()  # type: ignore[arg-type]
        assert row is not None
        return int(row[0])


@pytest.fixture
def data_folder() -> Iterator[Path]:
    """A folder for PostgreSQL's account, which is not ours: pytest closes its own to others whenever one starts."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield Path(folder) / "postgres"


@pytest.mark.long
def test_postgresql_stopped_under_load_and_started_again_loses_nothing(
    server: TmdbServer, tmp_path: Path, data_folder: Path
):
    async def ask(service: Any, most: int) -> list[Any]:
        """Ask as several people at once."""
        asked = [
            service.enrich_query(QUESTIONS[place % 3], "movie", f"u{place}", "s", request_id=f"r{place}")
            for place in range(most)
        ]
        return await asyncio.gather(*asked)

    with embedded_postgres(data_folder) as url:
        with PostgresTmdbStore(url) as store:
            store.upgrade()
        settings = settings_for(server, tmp_path, url)
        # A store that gives up at once: nobody waits two seconds in a test.
        store = PostgresTmdbStore(url, 1, 4, wait_seconds=0.2)
        service_context = open_service(settings, store)
        service = service_context.__enter__()
        before = asyncio.run(ask(service, 12))
    # PostgreSQL is stopped now, while the service goes on.
    during = asyncio.run(ask(service, 30))
    assert {result.state for result in (*before, *during)} == {State.ANSWERED}
    assert {result.persistence for result in during} <= {"queued", "spooled"}
    service_context.__exit__(None, None, None)
    spool = open_spool(settings)
    waiting, rejected = spool.counts()
    assert rejected == 0
    assert waiting >= 30
    with embedded_postgres(data_folder) as url, PostgresTmdbStore(url) as store:
        assert count(store) + waiting == 42
        Writer(store, spool, service.metrics).replay()
        assert spool.counts() == (0, 0)
        assert count(store) == 42
        assert count(store, "movies") > 0
        assert count(store, "neo4j_etl_outbox") > 0
        with store.transaction() as connection:
            once = connection.execute(
                "SELECT count(DISTINCT id), count(DISTINCT user_id) FROM tmdb.enrichment_requests"
            )
            assert once.fetchone() == (42, 30)
    spool.close()


REPLAY = """
import sys
from douban_pipeline.tmdb.enrichment.factory import open_spool
from douban_pipeline.tmdb.enrichment.metrics import Metrics
from douban_pipeline.tmdb.enrichment.writer import Writer
from douban_pipeline.tmdb.settings import load_settings
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore

with PostgresTmdbStore(sys.argv[1]) as store:
    Writer(store, open_spool(load_settings()), Metrics()).replay()
"""


@pytest.mark.postgres
def test_two_processes_replay_one_spool_and_write_each_question_once(
    server: TmdbServer, store: PostgresTmdbStore, store_url: str, tmp_path: Path
):
    stopped = settings_for(server, tmp_path, "postgresql://nobody@127.0.0.1:1/x")
    with open_service(stopped, PostgresTmdbStore("postgresql://nobody@127.0.0.1:1/x", wait_seconds=0.1)) as service:
        for number in range(20):
            asyncio.run(service.enrich_query("《喜宴》的导演是谁？", "movie", f"u{number}", "s"))
    environment = {
        "DOUBAN_PIPELINE_HOME": str(tmp_path),
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PATH": "/usr/bin:/bin",
    }
    command = [sys.executable, "-c", REPLAY, store_url]
    running = [subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE) for _ in range(2)]
    printed = [process.communicate(timeout=120)[0].decode() for process in running]
    spool = open_spool(stopped)
    assert spool.counts() == (0, 0), printed
    spool.close()
    assert count(store) == 20


@pytest.mark.postgres
def test_an_older_answer_from_the_spool_does_not_replace_a_newer_one(store: PostgresTmdbStore):
    def persist(title: str, fetched_at: str) -> None:
        payload = {"type": "movie", "data": movie(1, title=title), "fetched_at": fetched_at}
        asked: dict[str, Any] = {"tmdb_endpoint": "/search/multi", "extracted_entities": [], "disambiguation": []}
        asyncio.run(
            store.persist_enrichment(
                user_id="u", session_id="s", query_text="q", payloads=[payload], logged_id=uuid4(), **asked
            )
        )

    persist("new", "2026-11-02T00:00:00+00:00")
    persist("old", "2026-11-01T00:00:00+00:00")
    with store.transaction() as connection:
        assert connection.execute("SELECT title FROM tmdb.movies").fetchone() == ("new",)
        assert connection.execute("SELECT count(*) FROM tmdb.enrichment_request_entities").fetchone() == (2,)


@pytest.mark.postgres
def test_a_question_under_one_id_is_written_once(store: PostgresTmdbStore):
    logged = uuid4()
    for _ in range(2):
        asked: dict[str, Any] = {"tmdb_endpoint": "/search/multi", "extracted_entities": [], "disambiguation": []}
        asyncio.run(
            store.persist_enrichment(
                user_id="u", session_id="s", query_text="q", payloads=[], logged_id=logged, request_id="r", **asked
            )
        )
    assert count(store) == 1
    assert store.delete_request(logged) == 1
    assert count(store) == 0


@pytest.mark.postgres
def test_an_answer_of_five_megabytes_and_hostile_text_reach_the_store_whole(
    store: PostgresTmdbStore, store_url: str, tmp_path: Path
):
    hostile = "《'); DROP SCHEMA tmdb CASCADE; -- <img onerror=alert(1)> MATCH (n) DELETE n\x00》的导演是谁"
    film = movie(1, title="'; DROP TABLE tmdb.movies; --", overview="影" * 1_700_000)
    recordings = [
        {"path": "/3/movie/1", "body": film},
        {
            "path": "/3/search/multi",
            "query": {"query": "大片"},
            "body": {"page": 1, "results": [found_item(1, "大片")]},
        },
    ]
    with TmdbServer(recordings) as server, open_service(settings_for(server, tmp_path, store_url), store) as service:
        large = asyncio.run(service.enrich_query("《大片》的导演是谁", "movie", "u'; --", "<b>s</b>", deadline=30))
        assert large.state is State.ANSWERED
        assert asyncio.run(service.enrich_query(hostile, "movie", "u2", "s")).state is State.NOTHING
    with PostgresTmdbStore(store_url) as again, again.transaction() as connection:
        query = "SELECT length(raw->>'overview'), title FROM tmdb.movies WHERE raw IS NOT NULL"
        assert connection.execute(query).fetchone() == (1_700_000, "'; DROP TABLE tmdb.movies; --")
        asked = connection.execute("SELECT user_id, query_text FROM tmdb.enrichment_requests ORDER BY 1").fetchall()
    assert asked == [("u'; --", "《大片》的导演是谁"), ("u2", hostile.replace("\x00", ""))]


def found_item(tmdb_id: int, title: str) -> dict[str, Any]:
    return {"id": tmdb_id, "media_type": "movie", "title": title, "release_date": "1993-08-04"}
