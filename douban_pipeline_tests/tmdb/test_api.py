"""The service over HTTP: a real server on loopback, with and without PostgreSQL, and who may ask what how often."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import uvicorn

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.counters import Counters
from douban_pipeline.core.guesses import GuessGuard
from douban_pipeline.serve.app import create_app
from douban_pipeline.serve.settings import ServeSettings
from douban_pipeline.tmdb.api import MOST_BYTES, RateLimit
from douban_pipeline.tmdb.enrichment import factory
from douban_pipeline.tmdb.mounts import mounts
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.stand_ins.tmdb_server import TmdbFault, TmdbServer
from douban_pipeline_tests.tmdb.given import answer as given_answer
from douban_pipeline_tests.tmdb.given import crew, movie

STOPPED = "postgresql://nobody@127.0.0.1:1/x"
LOGO_HASH = "8e7b30f73a4020692ccca9c88bafe5dcb6f8a62a4c6bc55cd9ba82bb2cd95f6c"
TOKEN = "a-token-of-this-service-0123456789"
ASKED = {"message": "《喜宴》的导演是谁？", "kb_prefix": "movie", "user_id": "u", "session_id": "s"}


@contextmanager
def running(
    home: Path, tmdb: TmdbServer, *, url: str = "", token: str = "", rate: float = 1000, **settings: str
) -> Iterator[httpx.Client]:
    """Yield a client of the service as `serve` puts it together."""
    given = {"API_URL": tmdb.api_url, "API_KEY": "k", **settings}
    if url:
        given["DATABASE_URL"] = url
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOUBAN_PIPELINE_HOME", str(home))
        patch.setattr(factory, "SERVICE_REQUESTS_PER_SECOND", rate)
        for name, value in given.items():
            patch.setenv(f"DOUBAN_PIPELINE_TMDB_{name}", value)
        guard = GuessGuard(Counters(SystemClock()))
        [mount] = mounts(guard)
        app = create_app(ServeSettings(_env_file=None, token=token), [mount], guard=guard)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on", access_log=False))
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=30) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()


@pytest.fixture
def tmdb() -> Iterator[TmdbServer]:
    with TmdbServer() as server:
        yield server


def figures(client: httpx.Client) -> dict[str, float]:
    lines = [line.split() for line in client.get("/metrics").text.splitlines() if not line.startswith("#")]
    return {name.removeprefix("douban_pipeline_tmdb_"): float(value) for name, value in lines}


@pytest.mark.postgres
def test_a_question_is_answered_and_written_down(
    tmp_path: Path, tmdb: TmdbServer, store: PostgresTmdbStore, store_url: str
):
    talk = str(uuid4())
    with running(tmp_path, tmdb, url=store_url) as client:
        answer = client.post("/tmdb/enrich", json={**ASKED, "conversation_id": talk, "request_id": "r"})
        assert answer.status_code == 200
        found = answer.json()
        assert found["answer"].startswith("《喜宴》（1993）的导演是李安。")
        assert found["selected"][0]["tmdb_id"] == 9261
        assert {"title", "year", "role", "popularity"} == found["selected"][0]["parts"].keys()
        assert any(edge["type"] == "DIRECTED" for edge in found["graph"]["edges"])
        assert "TMDB" in found["attribution"]
        chosen = client.post("/tmdb/enrich", json={**ASKED, "choice": {"media_type": "movie", "tmdb_id": 90000034}})
        assert "安德鲁·安" in chosen.json()["answer"]
        assert client.get("/healthz").json()["systems"]["tmdb"] == "ok"
        assert figures(client)['enrichments_total{outcome="answered"}'] == 2
    with store.transaction() as connection:
        rows = connection.execute("SELECT request_id, conversation_id::text FROM tmdb.enrichment_requests ORDER BY 1")
        assert rows.fetchall() == [("r", talk), (None, None)]
    with running(tmp_path, tmdb, url=store_url) as client:
        stored = client.get("/tmdb/movies/9261").json()
        assert (stored["source"], stored["movie"]["title"]) == ("store", "喜宴")
        deleted = client.request(
            "DELETE", f"/tmdb/conversations/{talk}/requests", headers={"Content-Type": "application/json"}
        )
        assert deleted.json() == {"deleted": 1, "spooled": 0}
        rest = client.request("DELETE", "/tmdb/users/u/requests", headers={"Content-Type": "application/json"})
        assert rest.json() == {"deleted": 1, "spooled": 0}


def test_with_postgresql_stopped_everything_is_answered(tmp_path: Path, tmdb: TmdbServer):
    with running(tmp_path, tmdb, url=STOPPED) as client:
        assert client.post("/tmdb/enrich", json=ASKED).json()["state"] == "answered"
        film = client.get("/tmdb/movies/9261").json()
        assert (film["source"], film["movie"]["title"]) == ("tmdb", "喜宴")
        assert client.get("/tmdb/movies/999999999").status_code == 404
        assert client.get("/tmdb/movies/x").status_code == 404
        assert client.get("/healthz").status_code == 200
        refused = client.request("DELETE", "/tmdb/users/u/requests", headers={"Content-Type": "application/json"})
        assert (refused.status_code, "稍后重试" in refused.text) == (503, True)
        assert {"queue_size", "spool_size", "persist_failures_total", "answer_seconds_count"} <= figures(client).keys()


def test_without_a_database_nothing_is_written(tmp_path: Path, tmdb: TmdbServer):
    with running(tmp_path, tmdb) as client:
        assert client.post("/tmdb/enrich", json=ASKED).json()["persistence"] == "skipped"
        tmdb.faults.append(TmdbFault("failing", match="/movie/"))
        assert client.get("/tmdb/movies/9261").status_code == 503
    assert not (tmp_path / "tmdb").exists()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 422),
        (b"[]", 422),
        (b'{"message": ""}', 422),
        (b'{"message": "x", "user": "u"}', 422),
        (b'{"message": "x", "conversation_id": "no uuid"}', 422),
        (b'{"message": "x", "language": "zh-CN; DROP TABLE"}', 422),
        (b'{"message": "%s"}' % (b"x" * 501), 422),
        (b" " * (MOST_BYTES + 1), 413),
    ],
)
def test_what_is_no_question_is_refused(tmp_path: Path, tmdb: TmdbServer, body: bytes, status: int):
    with running(tmp_path, tmdb) as client:
        answer = client.post("/tmdb/enrich", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert answer.json()["detail"]
    assert tmdb.asked == []


def test_the_token_a_stranger_and_a_page_elsewhere(tmp_path: Path, tmdb: TmdbServer):
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    with running(tmp_path, tmdb, token=TOKEN) as client:
        assert client.post("/tmdb/enrich", json=ASKED).status_code == 401
        assert client.get("/metrics").status_code == 401
        assert client.post("/tmdb/enrich", json=ASKED, headers=bearer).status_code == 200
        assert client.get("/metrics", headers=bearer).status_code == 200
    with running(tmp_path, tmdb) as client:
        assert client.post("/tmdb/enrich", json=ASKED, headers={"Origin": "https://evil.example"}).status_code == 403
        assert client.post("/tmdb/enrich", content=b"message=x").status_code == 403


def test_who_asks_too_often_for_what_tmdb_must_be_asked_waits(tmp_path: Path, tmdb: TmdbServer):
    with running(tmp_path, tmdb, QUESTIONS_PER_MINUTE="2") as client:
        answers = [client.post("/tmdb/enrich", json=ASKED) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert 1 <= int(answers[2].headers["Retry-After"]) <= 61


@pytest.mark.postgres
def test_what_is_stored_is_answered_however_often_it_is_asked(
    tmp_path: Path, tmdb: TmdbServer, store: PostgresTmdbStore, store_url: str
):
    store.persist_payloads([given_answer("movie", movie(9261, crew(1, "d", name="李安"), title="喜宴"))])
    with running(tmp_path, tmdb, url=store_url, QUESTIONS_PER_MINUTE="1") as client:
        found = [client.post("/tmdb/enrich", json=ASKED).json() for _ in range(5)]
        film = client.get("/tmdb/movies/9261")
    assert {each["source"] for each in found} == {film.json()["source"]} == {"store"}
    assert tmdb.count("/search/multi") == 0


def test_the_limit_begins_anew_after_a_minute():
    async def work() -> None:
        clock = FakeClock()
        limit = RateLimit(60, Counters(clock))
        assert [await limit.wait("a") for _ in range(60)] == [0] * 60
        clock.advance(seconds=20)
        assert await limit.wait("a") == 41
        assert await limit.wait("b") == 0
        clock.advance(seconds=40)
        assert await limit.wait("a") == 0

    asyncio.run(work())


def test_no_key_no_paths(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("DOUBAN_PIPELINE_TMDB_API_KEY", raising=False)
    assert list(mounts(GuessGuard(Counters(FakeClock())))) == []


def test_a_service_that_is_stopped_drains_its_queue_to_the_disk(tmp_path: Path, tmdb: TmdbServer):
    environment: dict[str, Any] = {
        **{name: value for name, value in os.environ.items() if not name.startswith("DOUBAN_PIPELINE_")},
        "DOUBAN_PIPELINE_HOME": str(tmp_path),
        "DOUBAN_PIPELINE_TMDB_API_URL": tmdb.api_url,
        "DOUBAN_PIPELINE_TMDB_API_KEY": "k",
        "DOUBAN_PIPELINE_TMDB_DATABASE_URL": STOPPED,
        "PYTHONUNBUFFERED": "1",
    }
    command = [sys.executable, "-m", "douban_pipeline", "serve", "--port", "0"]
    with subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        base = process.stdout.readline().split()[2]
        transport = httpx.HTTPTransport(retries=20)
        with httpx.Client(base_url=base, transport=transport, timeout=30) as client:
            answers = [client.post("/tmdb/enrich", json=ASKED).json() for _ in range(3)]
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    assert {answer["state"] for answer in answers} == {"answered"}
    from douban_pipeline.tmdb.enrichment.spool import Spool

    spool = Spool(tmp_path / "tmdb" / "spool.sqlite", FakeClock())
    assert spool.counts() == (3, 0)
    spool.close()


def test_while_tmdb_lets_no_call_pass_who_asks_is_told_when_to_come_back(tmp_path: Path, tmdb: TmdbServer):
    tmdb.faults.append(TmdbFault("throttled", retry_after=300))
    with running(tmp_path, tmdb, rate=15) as client:
        client.post("/tmdb/enrich", json=ASKED)
        asked = len(tmdb.asked)
        for answer in (client.post("/tmdb/enrich", json=ASKED), client.get("/tmdb/movies/9261")):
            assert answer.status_code == 503
            assert 290 <= int(answer.headers["Retry-After"]) <= 400
            assert answer.headers["Retry-After"] in answer.text
        refused = client.post("/tmdb/enrich", json=ASKED).json()
        assert (refused["state"], refused["retry_after"] > 0) == ("refused", True)
        assert len(tmdb.asked) == asked, "TMDB is not asked meanwhile"


def test_tmdb_s_logo_and_sentence_are_with_its_data(tmp_path: Path, tmdb: TmdbServer):
    with running(tmp_path, tmdb) as client:
        for answer in (client.post("/tmdb/enrich", json=ASKED).json(), client.get("/tmdb/movies/9261").json()):
            assert answer["attribution_en"] == (
                "This product uses the TMDB API but is not endorsed or certified by TMDB."
            )
            assert answer["link"] == "https://www.themoviedb.org/"
            logo = client.get(answer["logo"])
            assert logo.headers["Content-Type"] == "image/svg+xml"
            # The address of the logo on TMDB's page names this hash.
            assert hashlib.sha256(logo.content).hexdigest() == LOGO_HASH
