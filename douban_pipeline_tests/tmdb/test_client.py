"""Asking TMDB: every request of the client, every fault of the API, pacing, archive; and the commands around it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from douban_pipeline.__main__ import app
from douban_pipeline.core.archive import Archive
from douban_pipeline.core.errors import NotFound, ProblemsError, SourceError, SourceThrottled, SourceUnavailable
from douban_pipeline.core.gate_memory import MemoryGate
from douban_pipeline.core.http import Fetcher
from douban_pipeline.demo.stand_ins.tmdb_server import BUNDLED
from douban_pipeline.tmdb.clients.api import APPENDED, EXPORTS, MOST_APPENDED, SOURCE, TmdbClient
from douban_pipeline.tmdb.clients.errors import EXPORT_RULES, RULES, KeyRefused, RequestRefused, SchemaChanged
from douban_pipeline.tmdb.projection import is_full, project
from douban_pipeline.tmdb.refresh import prune
from douban_pipeline.tmdb.services import TmdbServices, api_access, open_services
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.store.tables import snapshot
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.stand_ins.tmdb_server import TmdbFault, TmdbServer
from douban_pipeline_tests.tmdb.given import RECORDED

KEY = "a-key-of-tmdb"
PACKED = gzip.compress(b"{}\n" * 900)


@pytest.fixture
def server() -> Iterator[TmdbServer]:
    with TmdbServer(key=KEY) as running:
        yield running


@pytest.fixture
def client(server: TmdbServer) -> Iterator[TmdbClient]:
    with ExitStack() as stack:
        yield client_of(server, stack)


def client_of(server: TmdbServer, stack: ExitStack, *, key: str = KEY, **options: Any) -> TmdbClient:
    clock = FakeClock()
    gate = MemoryGate(clock)
    for source in (SOURCE, EXPORTS):
        gate.configure(source, 60_000, 10)
    options = {"timeout": 2.0, "deadline": 2.0, "keep_alive": 2, **options}
    fetcher = stack.enter_context(Fetcher(SOURCE, gate, None, clock, rules=RULES, **options))
    exports = stack.enter_context(Fetcher(EXPORTS, gate, None, clock, rules=EXPORT_RULES))
    return TmdbClient(fetcher, exports, api_url=server.api_url, exports_url=server.exports_url, api_key=key)


def test_what_is_asked_and_what_comes(server: TmdbServer, client: TmdbClient):
    page = client.search_multi("Arrow")
    assert page.results
    assert page.raw["total_pages"] >= 1
    assert {item["media_type"] for item in page.results} <= {"movie", "tv", "person"}
    assert "language=zh-CN" in server.asked[-1]
    assert client.discover_movie().results
    assert [item["name"] for item in client.discover_tv(with_origin_country="CN").results] == ["甄嬛传", "琅琊榜"]
    assert client.discover_movie(vote_average__gte="5").request.query["vote_average.gte"] == "5"
    assert client.search(EntityType.TV, "Breaking Bad").results[0]["name"] == "Breaking Bad"
    assert client.find("tt0903747") == [EntityKey(EntityType.TV, 1396)]
    assert client.configuration()["images"]["secure_base_url"].startswith("https://")


@pytest.mark.parametrize(
    "key", [EntityKey(EntityType.MOVIE, 9261), EntityKey(EntityType.TV, 1396), EntityKey(EntityType.PERSON, 62)]
)
def test_details_bring_all_that_the_graph_needs_in_one_request(server: TmdbServer, client: TmdbClient, key: EntityKey):
    answer = client.details(key)
    assert (answer.entity, answer.language, len(server.asked)) == (key.type, "zh-CN", 1)
    assert is_full(key.type, answer.raw)
    assert set(APPENDED[key.type]) <= answer.raw.keys()
    assert project(key.type, answer.raw).edges


def test_details_in_another_language_and_with_other_things(server: TmdbServer, client: TmdbClient):
    answer = client.movie(9261, language="en-US", append=["images"])
    assert answer.language == "en-US"
    assert "include_image_language=en%2Cnull" in server.asked[-1]
    assert not is_full(EntityType.MOVIE, answer.raw)
    assert client.translations(EntityKey(EntityType.MOVIE, 47964))[0]["translations"]


def test_what_tmdb_would_refuse_is_not_sent(server: TmdbServer, client: TmdbClient):
    with pytest.raises(RequestRefused, match=str(MOST_APPENDED)):
        client.movie(1, append=[f"x{number}" for number in range(MOST_APPENDED + 1)])
    with pytest.raises(RequestRefused, match="page 501"):
        client.search_multi("x", page=501)
    with pytest.raises(RequestRefused, match="letters and digits"):
        client.find("../movie/1")
    assert server.asked == []


def test_what_does_not_exist(client: TmdbClient):
    with pytest.raises(NotFound, match="34"):
        client.movie(999_999_999)
    assert client.find("tt9999999") == []
    assert client.search_multi("no such name").results == []


@pytest.mark.parametrize(
    ("fault", "kind", "says"),
    [
        (TmdbFault("throttled"), SourceThrottled, "429"),
        (TmdbFault("over_limit"), SourceThrottled, "25"),
        (TmdbFault("cut"), SourceUnavailable, "not JSON"),
        (TmdbFault("empty"), SourceUnavailable, "empty"),
        (TmdbFault("page"), SourceUnavailable, "HTML"),
        (TmdbFault("schema"), SchemaChanged, "list of results"),
        (TmdbFault("refused_key"), KeyRefused, "DOUBAN_PIPELINE_TMDB_API_KEY"),
        (TmdbFault("failing"), SourceUnavailable, "500"),
        (TmdbFault("hanging"), SourceUnavailable, "in time|within"),
    ],
    ids=lambda value: value.kind if isinstance(value, TmdbFault) else "",
)
def test_each_fault_is_a_clear_error(server: TmdbServer, fault: TmdbFault, kind: type[SourceError], says: str):
    server.faults.append(fault)
    deadline = 0.3 if fault.kind == "hanging" else 60.0
    with ExitStack() as stack:
        client = client_of(server, stack, attempts=1, timeout=deadline, deadline=deadline)
        with pytest.raises(kind, match=says) as caught:
            client.search_multi("Arrow")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("fault", [TmdbFault("throttled", times=1, retry_after=2), TmdbFault("failing", times=1)])
def test_a_moment_of_trouble_is_waited_out(server: TmdbServer, client: TmdbClient, fault: TmdbFault):
    server.faults.append(replace(fault))
    assert client.search_multi("Arrow").results
    assert len(server.asked) == 2


def test_a_wrong_key_is_named_and_a_mended_one_works_at_once(server: TmdbServer):
    with ExitStack() as stack:
        for _ in range(2):
            with pytest.raises(KeyRefused):
                client_of(server, stack, key="wrong").search_multi("Arrow")
        assert (
            client_of(server, stack, headers={"Authorization": f"Bearer {KEY}"}, key="").search_multi("Arrow").results
        )


@pytest.mark.parametrize("missing", [{"id": 7}, {"credits": None}, {"credits": {}, "id": "9261"}])
def test_an_answer_about_something_else_is_none(missing: dict[str, Any]):
    body = {"id": 9261, "title": "喜宴", "credits": {"cast": [], "crew": []}, **missing}
    recordings = [{"path": "/3/movie/9261", "body": {name: value for name, value in body.items() if value is not None}}]
    server = TmdbServer(recordings)
    server._with_parts = lambda body, path, appended: dict(body)  # type: ignore[method-assign,assignment,misc]
    with server, ExitStack() as stack, pytest.raises(SchemaChanged):
        client_of(server, stack).movie(9261)


def test_changes_are_asked_for_in_windows_and_pages():
    pages = [
        {
            "path": "/3/movie/changes",
            "query": {"page": str(number)},
            "body": {"results": ids, "page": number, "total_pages": 2},
        }
        for number, ids in ((1, [{"id": 1}, {"id": None}]), (2, [{"id": 2}, {"id": 1}]))
    ]
    with TmdbServer(pages) as server, ExitStack() as stack:
        start = date(2026, 11, 1)
        found = client_of(server, stack).changed_ids(EntityType.MOVIE, start, start + timedelta(days=20))
        assert list(found) == [1, 2]
        asked = [target.split("?")[1] for target in server.asked]
    assert len(asked) == 4
    assert "start_date=2026-11-01&end_date=2026-11-15&page=1" in asked[0]
    assert "start_date=2026-11-16&end_date=2026-11-21&page=2" in asked[3]


def test_a_window_with_too_many_pages_is_cut_in_halves():
    crowded = {"path": "/3/tv/changes", "body": {"results": [{"id": 5}], "page": 1, "total_pages": 501}}
    with TmdbServer([crowded]) as server, ExitStack() as stack:
        start = date(2026, 11, 1)
        found = client_of(server, stack).changed_ids(EntityType.TV, start, start + timedelta(days=1))
        assert next(found) == 5
        asked = [target.split("?")[1].split("&page")[0] for target in server.asked]
        found.close()
    assert asked == ["start_date=2026-11-01&end_date=2026-11-02", "start_date=2026-11-01&end_date=2026-11-01"]


def test_lists_of_ids(client: TmdbClient, server: TmdbServer):
    lines = list(client.exported_ids(EntityType.MOVIE, date(2026, 11, 21)))
    assert server.asked[-1] == "/p/exports/movie_ids_11_21_2026.json.gz"
    assert {json.loads(line)["id"] for line in lines} >= {9261, 146}


@pytest.mark.parametrize(("body", "says"), [(b"<html>", "packed"), (PACKED[:-12], "truncated")], ids=["page", "cut"])
def test_lists_of_ids_that_are_none(
    client: TmdbClient, server: TmdbServer, body: bytes, says: str, monkeypatch: pytest.MonkeyPatch
):
    answer = server._export("movie_ids")
    monkeypatch.setattr(server, "_export", lambda _: type(answer)(200, body))
    with pytest.raises(SourceUnavailable, match=says):
        list(client.exported_ids(EntityType.MOVIE, date(2026, 11, 21)))


def test_a_list_that_is_not_there_says_when_it_is(
    client: TmdbClient, server: TmdbServer, monkeypatch: pytest.MonkeyPatch
):
    answer = server._export("no such list")
    monkeypatch.setattr(server, "_export", lambda _: answer)
    with pytest.raises(SourceUnavailable, match="three months"):
        list(client.exported_ids(EntityType.TV, date(2026, 1, 1)))


def test_the_stand_in_serves_a_whole_file_of_recordings():
    recordings = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    with TmdbServer(recordings) as server, ExitStack() as stack:
        found = client_of(server, stack).person(62)
        assert found.raw["name"] == "Bruce Willis"
        assert is_full(EntityType.PERSON, found.raw)


def test_the_bundled_answers_are_small_and_ours():
    assert BUNDLED.stat().st_size < 300_000
    assert "MIT" in (BUNDLED.parent / "SOURCES.md").read_text(encoding="utf-8")


# --- with the store: pacing and archive in its database, and the commands ---------------------------------------------


@pytest.fixture
def services(server: TmdbServer, store_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[TmdbServices]:
    monkeypatch.setattr("douban_pipeline.tmdb.services.EXPORTS_URL", server.exports_url)
    given = {"database_url": store_url, "api_url": server.api_url, "api_key": KEY}
    with closing(open_services(TmdbSettings(_env_file=None, **given))) as opened:
        yield opened


@pytest.mark.postgres
def test_searches_are_taken_from_the_archive_and_details_are_not_kept_twice(
    server: TmdbServer, services: TmdbServices, store: PostgresTmdbStore
):
    for _ in range(2):
        with services.client() as client:
            assert client.search_multi("Arrow").results
            assert client.movie(9261).raw["title"] == "喜宴"
    assert (server.count("/search/"), server.count("/movie/")) == (1, 2)
    with store.transaction() as connection:
        kept = connection.execute("SELECT source, request_key, status FROM tmdb.snapshot").fetchall()
        paced = connection.execute("SELECT source, interval_ms FROM tmdb.gate ORDER BY source").fetchall()
    assert [(source, status) for source, _, status in kept] == [("tmdb", 200)]
    assert KEY not in kept[0][1]
    assert paced == [("tmdb", 51), ("tmdb_exports", 6120)], "twenty a second by default"


@pytest.mark.postgres
def test_nothing_is_asked_without_a_key(services: TmdbServices):
    unkeyed = replace(services, settings=services.settings.model_copy(update={"api_key": SecretStr("")}))
    with pytest.raises(ProblemsError, match="DOUBAN_PIPELINE_TMDB_API_KEY"), unkeyed.client():
        pass


@pytest.mark.parametrize(
    ("key", "headers", "sent"),
    [
        ("0123456789abcdef0123456789abcdef", {}, "0123456789abcdef0123456789abcdef"),
        ("e30.e30.c2ln", {"Authorization": "Bearer e30.e30.c2ln"}, ""),
    ],
)
def test_a_read_access_token_is_a_header_and_a_key_part_of_the_address(
    key: str, headers: dict[str, str], sent: str
) -> None:
    assert api_access(TmdbSettings(api_key=key)) == (headers, sent)


@pytest.mark.postgres
def test_a_days_list_of_ids_is_fetched(services: TmdbServices, monkeypatch: pytest.MonkeyPatch):
    for name in ("database_url", "api_key", "api_url"):
        value = getattr(services.settings, name)
        plain = value if isinstance(value, str) else value.get_secret_value()
        monkeypatch.setenv(services.settings.variable(name), plain)
    result = CliRunner().invoke(app, ["tmdb", "ids", "movie", "--day", "2026-11-21"])
    assert (result.exit_code, "0 lines unreadable" in result.output) == (0, True), result.output
    assert isinstance(CliRunner().invoke(app, ["tmdb", "ids", "movie"]).exception, ProblemsError)


@pytest.mark.postgres
def test_archived_answers_are_pruned(services: TmdbServices):
    Archive(services.engine, snapshot, FakeClock()).put(SOURCE, "/search/multi?query=x", 200, b"{}", "1")
    with services.store.transaction() as connection:
        connection.execute("UPDATE tmdb.snapshot SET seen_at = now() - interval '31 days'")
    assert prune(services).archived == 1
