"""What several processes of the service count together, over a real server's database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from douban_pipeline.core.database import open_engine
from douban_pipeline.douban.store import migrations
from douban_pipeline.serve.app import COOKIE
from douban_pipeline_tests.serve.processes import TOKEN, processes, visitor
from douban_pipeline_tests.stand_ins.tmdb_server import TmdbServer

pytestmark = pytest.mark.mariadb
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def tables(mariadb_url: str) -> str:
    """The address of a database with our tables."""
    engine = open_engine(mariadb_url)
    migrations.tree_of("mac_").upgrade(engine)
    engine.dispose()
    return mariadb_url


@pytest.fixture
def bases(tables: str, tmp_path: Path) -> Iterator[list[str]]:
    """Two processes, each of which could be on a host of its own; both answer questions about films."""
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "shown.html").write_text("一切正常")
    with TmdbServer() as tmdb:
        settings = {
            "DATABASE_URL": tables,
            "TMDB_API_URL": tmdb.api_url,
            "TMDB_API_KEY": "k",
            "TMDB_QUESTIONS_PER_MINUTE": "4",
        }
        with processes(tmp_path, 2, **settings) as found:
            yield found


def log_in(client: httpx.Client, token: str) -> httpx.Response:
    origin = str(client.base_url).rstrip("/")
    return client.post("/login", data={"token": token, "next": "/"}, headers={"Origin": origin})


def test_processes_share_their_limits_and_their_logins(bases: list[str]) -> None:
    one, other = bases
    with visitor(one) as first, visitor(other) as second:
        # A login that was ended at one process is ended at the other, whoever kept its cookie.
        assert log_in(first, TOKEN).status_code == 303
        kept = {"Cookie": f"{COOKIE}={first.cookies[COOKIE]}"}
        assert second.get("/shown.html", headers=kept).text == "一切正常"
        assert first.post("/logout", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 303
        assert [httpx.get(f"{base}/", headers=kept).status_code for base in bases] == [401, 401]
        assert log_in(second, TOKEN).status_code == 303, "a new login is another one"

        # Questions of a minute.
        answers = [client.get("/tmdb/movies/9261", headers=BEARER) for _ in range(4) for client in (first, second)]
        assert [answer.status_code for answer in answers] == [200] * 4 + [429] * 4
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 61
        with visitor(other, "127.0.0.2") as neighbour:
            assert neighbour.get("/tmdb/movies/9261", headers=BEARER).status_code == 200

    # Guesses, in whatever form and wherever they are made.
    with visitor(one, "127.0.0.3") as guesser, visitor(other, "127.0.0.3") as elsewhere:
        assert [log_in(guesser, f"wrong {n}").status_code for n in range(3)] == [403] * 3
        wrong = {"Authorization": "Bearer wrong"}
        assert [elsewhere.get("/", headers=wrong).status_code for _ in range(2)] == [401] * 2
        for client in (guesser, elsewhere):
            refused = client.get("/", headers=BEARER)
            assert (refused.status_code, 800 < int(refused.headers["retry-after"]) <= 901) == (429, True)
            assert "分钟后再试" in refused.text
            assert log_in(client, TOKEN).status_code == 429
    with visitor(one, "127.0.0.4") as somebody:
        assert somebody.get("/shown.html", headers=BEARER).status_code == 200
