"""The pages `/tmdb/`: found by how a name begins, facts, neighbours, series and ways, from the store alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from douban_pipeline.tmdb.pages.relations import Neighbour, way_between
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline_tests.stand_ins.tmdb_server import TmdbServer
from douban_pipeline_tests.tmdb.given import actor, answer, cast, crew, movie, title
from douban_pipeline_tests.tmdb.test_api import STOPPED, running

pytestmark = pytest.mark.postgres

SERIES = {"belongs_to_collection": {"id": 7, "name": "灯塔系列", "poster_path": None}}
LEE, LANG, LIN = 11, 12, 13
HOSTILE = '<img src=x onerror="alert(1)">'


@pytest.fixture
def pages(tmp_path: Path, store: PostgresTmdbStore, store_url: str) -> Iterator[httpx.Client]:
    lee, lang = cast(LEE, "a", name="李守灯"), cast(LANG, "b", name="郎望海")
    films = [
        movie(1, lee, lang, crew(LIN, "c", name="林导"), title="灯塔守夜人", original_title="Keeper", **SERIES),
        movie(2, cast(LANG, "d", name="郎望海"), title="灯塔守夜人2", release_date="2021-01-01", **SERIES),
        movie(3, title=HOSTILE, overview=HOSTILE),
        movie(4, title="重庆之夜"),
    ]
    people = [
        actor(LEE, title(1, "a", title="灯塔守夜人"), name="李守灯", also_known_as=["Lee the Keeper", "守灯李"]),
        actor(LANG, title(1, "b"), title(2, "d"), name="郎望海"),
    ]
    store.persist_payloads([answer("movie", film) for film in films] + [answer("person", one) for one in people])
    with TmdbServer() as tmdb, running(tmp_path, tmdb, url=store_url) as client:
        yield client


def found(pages: httpx.Client, words: str) -> list[str]:
    return [each["address"] for each in pages.get("/tmdb/search.json", params={"q": words}).json()]


@pytest.mark.parametrize(
    ("words", "addresses"),
    [
        ("灯塔守夜人", ["movie/1", "movie/2"]),
        ("灯塔守夜人2", ["movie/2"]),
        ("keep", ["movie/1"]),
        ("李", [f"person/{LEE}"]),
        ("守灯李", [f"person/{LEE}"]),
        ("守夜", []),
        ("dengtashouyer", ["movie/1", "movie/2"]),
        ("Deng ta shou ye ren 2", ["movie/2"]),
        ("dtsyr", ["movie/1", "movie/2"]),
        ("lsd", [f"person/{LEE}"]),
        ("chongqing", ["movie/4"]),
        ("d", []),
        ("%", []),
        ("_", []),
        ("\x00", []),
    ],
)
def test_names_are_found_by_how_they_or_their_pinyin_begin_and_other_names_of_people_as_a_whole(
    pages, words, addresses
):
    assert found(pages, words) == addresses
    page = pages.get("/tmdb/", params={"q": words})
    assert page.status_code == 200
    assert all(f'href="./{address}"' in page.text for address in addresses)


def test_a_film_has_its_facts_people_and_series_with_links_to_tmdb(pages):
    page = pages.get("/tmdb/movie/1").text
    for said in ("Keeper", "李守灯", "郎望海", "林导", "灯塔系列", "灯塔守夜人2", "未获 TMDB 认可", "logo.svg"):
        assert said in page
    for link in ("https://www.themoviedb.org/movie/1", "https://www.themoviedb.org/collection/7"):
        assert f'href="{link}"' in page
    assert pages.get("/tmdb/logo.svg").headers["content-type"] == "image/svg+xml"


def test_a_person_has_titles_and_those_who_were_there_too(pages):
    page = pages.get(f"/tmdb/person/{LEE}").text
    assert f'<a href="../person/{LANG}">郎望海</a> 1 部' in page
    assert "Lee the Keeper" in page


def test_a_person_of_whom_only_the_name_is_stored_has_the_stored_titles(pages):
    page = pages.get(f"/tmdb/person/{LIN}").text
    for said in ("林导", "灯塔守夜人", "只有库里已存的"):
        assert said in page
    assert pages.get("/tmdb/person/99").status_code == 404
    drawn = pages.get(f"/tmdb/graph/person/{LIN}.json").json()
    assert {node["id"] for node in drawn["nodes"]} == {f"person-{LIN}", "movie-1"}
    way = pages.get("/tmdb/way", params={"one": "林导", "other": "郎望海"}).text
    assert f'林导</a> — <a href="./movie/1">灯塔守夜人</a> — <a href="./person/{LANG}">郎望海</a>' in way


def test_the_drawing_has_the_entity_and_its_neighbours(pages):
    drawn = pages.get("/tmdb/graph/movie/1.json").json()
    assert {node["id"] for node in drawn["nodes"]} == {"movie-1", f"person-{LEE}", f"person-{LANG}", f"person-{LIN}"}
    assert all(edge["from"] == "movie-1" for edge in drawn["edges"])


def test_the_way_between_two_people_names_the_films_on_it(pages):
    page = pages.get("/tmdb/way", params={"one": "李守", "other": "郎望海"}).text
    assert f'{LEE}">李守灯</a> — <a href="./movie/1">灯塔守夜人</a> — <a href="./person/{LANG}">郎望海</a>' in page
    for other, said in (("李守灯", "两边是同一个人"), ("无此人", "库里没有名字以“无此人”开头的人")):
        assert said in pages.get("/tmdb/way", params={"one": "李守灯", "other": other}).text


def test_outside_text_is_shown_as_it_is(pages):
    page = pages.get("/tmdb/movie/3")
    assert HOSTILE not in page.text
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]


@pytest.mark.parametrize("path", ["movie/99", "movie/0", f"person/{2**31}", "files/secret", "graph/movie/99.json"])
def test_what_there_is_not_is_not_found(pages, path):
    assert pages.get(f"/tmdb/{path}").status_code == 404


def test_a_store_that_does_not_answer_is_no_empty_answer(tmp_path: Path):
    with TmdbServer() as tmdb, running(tmp_path, tmdb, url=STOPPED) as client:
        page = client.get("/tmdb/", params={"q": "灯塔"})
        assert (page.status_code, "暂时没有应答" in page.text) == (503, True)
        assert client.get("/tmdb/search.json", params={"q": "灯"}).status_code == 503


def test_a_way_goes_over_people_in_between():
    films = {1: movie(1, cast(1, "a"), cast(2, "b")), 2: movie(2, cast(2, "c"), cast(3, "d"))}
    people = {
        1: actor(1, title(1, "a")),
        2: actor(2, title(1, "b"), title(2, "c")),
        3: actor(3, title(2, "d")),
    }
    store = {"movie": films, "person": people, "tv": {}}

    def raws(entity, ids):
        return {each: store[entity.value][each] for each in ids if each in store[entity.value]}

    ends = [Neighbour(EntityKey(EntityType.PERSON, number), str(number)) for number in (1, 3)]
    way = way_between(*ends, raws)
    assert [(each.key.type.value, each.key.tmdb_id) for each in way] == [
        ("person", 1),
        ("movie", 1),
        ("person", 2),
        ("movie", 2),
        ("person", 3),
    ]
    del people[2], people[3]
    films.clear()
    assert way_between(*ends, raws) == []
