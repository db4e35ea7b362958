"""Loading recorded answers, and the commands around it."""

from __future__ import annotations

import gzip
import json
import lzma
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from psycopg import DataError
from typer.testing import CliRunner

from douban_pipeline.core.check_results import CheckResult
from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.ops.cli import app
from douban_pipeline.tmdb.enrichment.factory import open_spool
from douban_pipeline.tmdb.operations import OPERATIONS
from douban_pipeline.tmdb.recorded_answers import Loaded, load
from douban_pipeline.tmdb.services import TmdbServices, open_services
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store.entities import EntityAnswer, EntityWriter, Stored
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.tmdb.given import RECORDED, answer, cast, movie, recorded, show
from douban_pipeline_tests.tmdb.serving import job

pytestmark = pytest.mark.postgres


def write(path: Path, *exchanges: dict[str, Any] | str) -> Path:
    lines = [each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in exchanges]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def exchange(path: str, body: Any, status: int = 200, **query: str) -> dict[str, Any]:
    return {"method": "GET", "path": f"/3/{path}", "query": query, "status": status, "body": body}


def loaded(store: PostgresTmdbStore, path: Path) -> list[Loaded]:
    return list(load(store, [path], SystemClock()))


def test_recorded_answers_are_loaded_once_and_then_unchanged(store: PostgresTmdbStore):
    first, second = loaded(store, RECORDED), loaded(store, RECORDED)
    assert len(first) == len(second) == len(recorded())
    assert Counter(each.change for each in second if each.change).keys() == {"unchanged"}
    full = {str(each.entity) for each in first if each.full}
    assert full == {"movie/49026", "person/62", "person/4347"}
    [gone] = [each for each in first if each.meaning == "missing"]
    assert (str(gone.entity), gone.change) == ("movie/999999999", None)
    with store.transaction() as connection:
        dates = connection.execute("SELECT DISTINCT fetched_at::date::text FROM tmdb.movies WHERE raw IS NOT NULL")
        assert dates.fetchall() == [("2026-08-13",)]
        languages = "SELECT count(*) FROM tmdb.movie_translations WHERE tmdb_movie_id = 47964"
        assert connection.execute(languages).fetchone() == (6,), (
            "five of the list, one of them also asked for, and Italian"
        )


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gz", "xz"])
def test_packed_files_are_known_by_what_is_in_them(store: PostgresTmdbStore, tmp_path: Path, pack: Any):
    path = tmp_path / "answers"
    path.write_bytes(pack(json.dumps(exchange("movie/1", movie(1))).encode()))
    assert [each.change for each in loaded(store, path)] == ["new"]


def test_of_a_file_that_was_cut_what_came_before_is_kept(store: PostgresTmdbStore, tmp_path: Path):
    path = tmp_path / "cut.gz"
    lines = "\n".join(json.dumps(exchange(f"movie/{each}", movie(each, overview="x" * each))) for each in range(1, 300))
    path.write_bytes(gzip.compress(lines.encode())[:-30])
    found: list[Loaded] = []
    answers = load(store, [path], SystemClock())
    with pytest.raises(ProblemsError, match=r"cut\.gz cannot be read to its end"):
        found.extend(each for each in answers if not found.append(each))  # type: ignore[func-returns-value]
    assert len(found) >= 200


def test_what_cannot_be_read_is_named_and_the_rest_is_loaded(store: PostgresTmdbStore, tmp_path: Path):
    path = write(
        tmp_path / "mixed.jsonl",
        exchange("movie/1", movie(1)),
        "{not json",
        "[]",
        "",
        exchange("movie/2", {**movie(2), "x": 10**400}),
        {"path": "/3/movie/3", "status": "many", "body": movie(3)},
        exchange("tv/4", json.dumps(show(4))),
        exchange("movie/5", movie(5, strange={"new": [1]}, softcore=False)),
        {"path": "//[movie/6", "status": 200, "body": movie(6)},
    )
    found = loaded(store, path)
    assert [(each.place, each.change, each.meaning) for each in found] == [
        ("mixed.jsonl:1", "new", "entity"),
        ("mixed.jsonl:2", None, "unreadable"),
        ("mixed.jsonl:3", None, "unreadable"),
        ("mixed.jsonl:5", "new", "entity"),
        ("mixed.jsonl:6", None, "unreadable"),
        ("mixed.jsonl:7", "new", "entity"),
        ("mixed.jsonl:8", "new", "entity"),
        ("mixed.jsonl:9", None, "unreadable"),
    ]


def test_an_answer_that_postgresql_refuses_does_not_take_others_with_it(
    store: PostgresTmdbStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    original = EntityWriter.write

    def write_unless_second(writer: EntityWriter, answers: Sequence[EntityAnswer]) -> list[Stored]:
        if any(answer.raw["id"] == 2 for answer in answers):
            raise DataError("a number that is too large")
        return original(writer, answers)

    monkeypatch.setattr(EntityWriter, "write", write_unless_second)
    path = write(tmp_path / "three.jsonl", *(exchange(f"movie/{each}", movie(each)) for each in (1, 2, 3)))
    assert [(each.change, each.meaning) for each in loaded(store, path)] == [
        ("new", "entity"),
        (None, "unreadable"),
        ("new", "entity"),
    ]


def test_the_same_film_at_other_dates(store: PostgresTmdbStore, tmp_path: Path):
    film = movie(1, cast(2, "a"))
    later = {**film, "popularity": 1, "vote_count": 99, "softcore": False}
    path = write(
        tmp_path / "dates.jsonl",
        exchange("movie/1", film, append_to_response="credits", language="zh-CN"),
        exchange("movie/1", later, append_to_response="credits,images", language="zh-CN"),
        exchange("movie/1", {**later, "title": "B"}, append_to_response="credits", language="zh-CN"),
        exchange("movie/1", {"id": 1, "title": "C", "images": {}}, append_to_response="images", language="zh-CN"),
        exchange("movie/1", {"id": 1, "title": "C", "videos": {}}, append_to_response="videos", language="zh-CN"),
        exchange("movie/1", {"success": False, "status_code": 34}, 404),
        exchange("movie/1", film, language="zh-CN"),
    )
    assert [(each.change, each.full) for each in loaded(store, path)] == [
        ("new", True),
        ("changed, not in the graph", True),
        ("changed in the graph", True),
        ("new", False),
        ("unchanged", False),
        ("gone", False),
        ("new", True),
    ]


@pytest.mark.parametrize("order", [("old", "new"), ("new", "old")])
def test_the_newer_recording_wins_in_any_order_and_twice_changes_nothing(
    store: PostgresTmdbStore, tmp_path: Path, order: tuple[str, str]
):
    films = {"old": ("Old", "2026-08-01T00:00:00+00:00"), "new": ("New", "2026-08-02T00:00:00+00:00")}
    paths = [
        write(tmp_path / name, exchange("movie/1", movie(1, title=title), language="zh-CN") | {"recorded": recorded_at})
        for name, (title, recorded_at) in films.items()
    ]
    by_name = {path.name: path for path in paths}
    for name in order:
        loaded(store, by_name[name])
    with store.transaction() as connection:
        assert connection.execute("SELECT raw->>'title' FROM tmdb.movies WHERE tmdb_id = 1").fetchone() == ("New",)
    again = [each for name in order for each in loaded(store, by_name[name])]
    assert {each.change for each in again} == {None, "unchanged"}
    assert [each.note for each in again if each.change is None] == ["older than what is stored"]


def _at(day: int, path: str, body: Any, status: int = 200, language: str = "zh-CN", **query: str) -> dict[str, Any]:
    recorded_at = f"2026-08-0{day}T00:00:00+00:00"
    return exchange(path, body, status, language=language, **query) | {"recorded": recorded_at}


GONE = {"success": False, "status_code": 34}
GENRES = {"genres": [{"id": 18, "name": "剧情"}]}


def _translated(day: int, title: str) -> dict[str, Any]:
    item = {"iso_639_1": "en", "iso_3166_1": "US", "name": "English", "data": {"title": title, "overview": title}}
    return _at(day, "movie/1/translations", {"id": 1, "translations": [item]})


def _listed(day: int, title: str, language: str = "zh-CN", **more: Any) -> dict[str, Any]:
    return _at(day, "movie/popular", {"results": [{"id": 1, "title": title, **more}]}, language=language)


@pytest.mark.parametrize(
    "recordings",
    [
        pytest.param([_at(day, "movie/1", movie(1, title=f"T{day}")) for day in (1, 2, 3)], id="full"),
        pytest.param(
            [
                _at(1, "movie/1", movie(1, cast(2, "a", name="A"))),
                _at(2, "movie/1", movie(1, cast(2, "a", name="B"), cast(3, "c", name="C"))),
                _at(3, "movie/4", movie(4, cast(2, "d", name="D"))),
            ],
            id="people named by credits",
        ),
        pytest.param(
            [
                _at(1, "movie/1", movie(1, cast(2, "a", name="甲"))),
                _at(2, "movie/4", movie(4, cast(2, "d", name="Jia")), language="en-US"),
                _at(3, "person/popular", {"results": [{"id": 2, "name": "贾", "popularity": 1.0}]}),
            ],
            id="a person in two languages",
        ),
        pytest.param(
            [
                _at(1, "movie/1", movie(1, title="One"), language="en-US"),
                _at(2, "movie/1", movie(1, title="一")),
                _at(3, "movie/1", movie(1, title="Three"), language="en-US"),
            ],
            id="base language between",
        ),
        pytest.param(
            [
                _at(1, "movie/1", movie(1, title="T1"), language="en-US"),
                _at(2, "movie/1", movie(1, title="T2"), language="de-DE"),
                _at(3, "movie/1", movie(1, title="T3"), language="en-US"),
            ],
            id="no base language",
        ),
        pytest.param(
            [
                _at(1, "movie/1", {"id": 1, "title": "Old", "overview": "old"}, language="en-US"),
                _at(2, "movie/1", {"id": 1, "title": "New", "overview": "new"}, language="en-US"),
                _at(3, "movie/1", movie(1, title="新")),
            ],
            id="without credits",
        ),
        pytest.param(
            [_at(1, "movie/1", {"id": 1, "title": "T1"}), _at(2, "movie/1", movie(1)), _at(3, "movie/1", {"id": 1})],
            id="beside the base row in its language",
        ),
        pytest.param([_translated(day, f"T{day}") for day in (1, 2, 3)], id="lists of translations"),
        pytest.param(
            [_translated(3, "T3"), _at(1, "movie/1", {"id": 1, "title": "T1"}, language="en-US"), _translated(2, "T2")],
            id="answer beside lists of translations",
        ),
        pytest.param(
            [
                _listed(1, "一", popularity=1.0, vote_count=9),
                _listed(2, "Two", "en-US"),
                _listed(3, "三", popularity=3.0),
            ],
            id="lists",
        ),
        pytest.param(
            [
                _listed(1, "一", popularity=1.0),
                _listed(2, "Two", "en-US", popularity=2.0),
                _listed(3, "Three", "de-DE", popularity=3.0),
            ],
            id="lists in two languages",
        ),
        pytest.param(
            [_at(1, "movie/1", movie(1)), _at(2, "movie/1", GONE, 404), _listed(3, "T3", popularity=1.0)], id="gone"
        ),
        pytest.param(
            [_at(1, "movie/1", movie(1)), _at(2, "movie/1", GONE, 404), _at(3, "movie/1", movie(1, title="B"))],
            id="gone and back",
        ),
        pytest.param(
            [_at(1, "movie/1", movie(1)), _at(2, "movie/1", movie(1, title="B")), _at(3, "movie/1", GONE, 404)],
            id="gone at last",
        ),
        pytest.param(
            [
                _at(1, "genre/movie/list", GENRES),
                _at(2, "genre/movie/list", {"genres": [{"id": 18, "name": "Drama"}]}, language="en-US"),
                _at(3, "movie/1", movie(1, genres=[{"id": 18, "name": "戏剧"}])),
            ],
            id="genres",
        ),
    ],
)
def test_the_same_is_kept_whatever_the_order_of_three_recordings(
    store: PostgresTmdbStore, tmp_path: Path, recordings: list[dict[str, Any]]
):
    kept = {}
    for order in permutations(range(3)):
        with store.transaction() as connection:
            connection.execute(
                "TRUNCATE tmdb.movies, tmdb.people, tmdb.tv_shows, tmdb.genres, tmdb.name_sounds CASCADE"
            )
        for each in order:
            loaded(store, write(tmp_path / f"{each}.jsonl", recordings[each]))
        kept[order] = {table: _contents(store, table) for table in _TABLES}
    for order, contents in kept.items():
        assert contents == kept[0, 1, 2], order


_TABLES = (
    *("movies", "people", "tv_shows", "genres", "name_sounds"),
    *("movie_translations", "person_translations", "tv_translations"),
)


def _contents(store: PostgresTmdbStore, table: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table without the times at which this store came to see them."""
    seen = "- 'first_seen_at' - 'changed_at'" + ("" if table == "genres" else " - 'last_seen_at'")
    with store.transaction() as connection:
        return connection.execute(f"SELECT to_jsonb(t) {seen} FROM tmdb.{table} AS t ORDER BY 1").fetchall()


def test_lines_without_a_date_are_as_old_as_their_file(store: PostgresTmdbStore, tmp_path: Path):
    films = [exchange("movie/1", movie(1, title=title), language="zh-CN") for title in ("A", "B")]
    path = write(tmp_path / "films.jsonl", *films, exchange("movie/1", {"success": False, "status_code": 34}, 404))
    assert [each.change for each in loaded(store, path)] == ["new", "changed in the graph", "gone"]
    path = write(tmp_path / "films.jsonl", *films)
    assert [each.change for each in loaded(store, path)][-1] in ("new", "changed in the graph")
    assert {each.change for each in loaded(store, path)} == {None, "unchanged"}


# --- commands ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def run(store_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Run a command on the test's database."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOUBAN_PIPELINE_TMDB_DATABASE_URL", store_url)

    def invoke(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, ["tmdb", *arguments])
        assert result.exit_code == code, result.output
        return result.output

    return invoke


def test_load_prints_what_became_of_each_entity(run: Any, tmp_path: Path):
    path = write(tmp_path / "a.jsonl", exchange("movie/1", movie(1)), exchange("account", {}))
    printed = run("load", str(path))
    assert "movie/1: new" in printed
    assert "/account: unknown" in printed
    assert run("load", str(path)).splitlines()[-1] == "1 unchanged, 1 unknown"
    broken = write(tmp_path / "b.jsonl", "{")
    assert "b.jsonl:1" in run("load", str(broken), code=1)


def test_a_list_of_ids_is_taken_in(run: Any, tmp_path: Path):
    path = tmp_path / "movie_ids.json.gz"
    path.write_bytes(gzip.compress(b'{"id": 1, "original_title": "A", "popularity": 2.5}\n{"id": 2}\n{'))
    assert "2 new stubs, 0 known already, 1 lines unreadable" in run("ids", "movie", str(path))


def test_without_a_server_a_command_says_what_to_set(run: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("DOUBAN_PIPELINE_TMDB_DATABASE_URL")
    refused = CliRunner().invoke(app, ["tmdb", "load", str(RECORDED)]).exception
    assert isinstance(refused, DatabaseError)
    assert "set DOUBAN_PIPELINE_TMDB_DATABASE_URL" in refused.remedy
    assert "douban-pipeline demo" in refused.remedy


# --- checks -----------------------------------------------------------------------------------------------------------


def checks_of(services: TmdbServices) -> dict[str, CheckResult]:
    return {each.name: each for each in OPERATIONS.checks(services)}


def test_checks_say_what_is_wrong_and_what_to_do(store_url: str, tmp_path: Path):
    settings = TmdbSettings(_env_file=None, home=tmp_path, database_url=store_url)
    with closing(open_services(settings)) as services:
        found = checks_of(services)
        assert {name for name, each in found.items() if each.state != "ok"} == {"api", "graph"}
        assert "DOUBAN_PIPELINE_TMDB_API_KEY" in found["api"].remedy
        assert "DOUBAN_PIPELINE_TMDB_GRAPH_URI" in found["graph"].remedy
        services.store.persist_payloads([answer("movie", movie(1))])
        services.store.run(lambda connection: connection.execute(_LATE))
        late = checks_of(services)
    assert {name for name in ("age", "outbox") if late[name].state == "warn"} == {"age", "outbox"}
    assert (late["age"].remedy.count("tmdb_retention"), late["outbox"].remedy.count("sync_tmdb_graph")) == (1, 1)


_LATE = """
    WITH old AS (UPDATE tmdb.movies SET fetched_at = now() - interval '200 days')
    UPDATE tmdb.neo4j_etl_outbox SET enqueued_at = now() - interval '2 hours'
"""


def test_checks_name_what_keeps_questions_from_being_written(store_url: str, tmp_path: Path):
    settings = TmdbSettings(_env_file=None, home=tmp_path, database_url=store_url)
    with closing(open_services(settings)) as services:
        with closing(open_spool(settings)) as spool:
            spool.add(job(FakeClock()))
        found = checks_of(services)
        assert "1 questions wait" in found["spool"].message
        assert "start the service" in found["spool"].remedy
        assert "behind the answers" in found["questions"].message
        (tmp_path / "tmdb" / "spool.sqlite-wal").unlink(missing_ok=True)
        (tmp_path / "tmdb" / "spool.sqlite").write_text("no database at all" * 99)
        assert checks_of(services)["spool"].state == "fail"
    settings = settings.model_copy(update={"enrichment_async_write_enable": False, "home": tmp_path / "other"})
    with closing(open_services(settings)) as services:
        assert "before the answers" in checks_of(services)["questions"].message
