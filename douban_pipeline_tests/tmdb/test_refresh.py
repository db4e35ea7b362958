"""What always fails at TMDB holds back nothing else, and what has no translations is not asked for again and again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from douban_pipeline.core.errors import NotFound, SourceUnavailable
from douban_pipeline.tmdb import video_links
from douban_pipeline.tmdb.clients.api import TmdbClient
from douban_pipeline.tmdb.refresh import refresh, store_translations
from douban_pipeline.tmdb.services import TmdbServices, open_services
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store.entities import EntityAnswer
from douban_pipeline.tmdb.types import EntityKey
from douban_pipeline.tmdb.video_links import link_videos
from douban_pipeline_tests.harness.fixtures.library import build_library, video
from douban_pipeline_tests.tmdb.given import NOW, actor, answer, movie

pytestmark = pytest.mark.postgres


class Client:
    """A client whose requests about some entities, or for some names, always fail."""

    def __init__(self, failing: set[int | str]) -> None:
        self.failing = failing
        self.gone: set[int | str] = set()
        self.asked: list[int | str] = []

    def _fail(self, what: int | str) -> None:
        self.asked.append(what)
        if what in self.gone:
            raise NotFound("tmdb", "there is no such thing")
        if what in self.failing:
            raise SourceUnavailable("tmdb", "HTTP 500")

    def details(self, key: EntityKey) -> EntityAnswer:
        self._fail(key.tmdb_id)
        return EntityAnswer(key.type, movie(key.tmdb_id), "zh-CN", NOW)

    def search(self, _: object, query: str) -> Any:
        self._fail(query)
        return type("Page", (), {"results": [], "total_pages": 1})

    def translations(self, key: EntityKey) -> tuple[dict[str, Any], Any]:
        self._fail(key.tmdb_id)
        return {"id": key.tmdb_id, "translations": []}, NOW


def client_of(*failing: int | str) -> tuple[Client, TmdbClient]:
    made = Client(set(failing))
    return made, cast("TmdbClient", made)


@pytest.fixture
def services(store_url: str, tmp_path: Path) -> Iterator[TmdbServices]:
    library = f"sqlite:///{tmp_path / 'cms.sqlite'}"
    given = {"home": tmp_path, "database_url": store_url, "library_url": library, "api_key": "k"}
    opened = open_services(TmdbSettings(_env_file=None, **given))
    yield opened
    opened.close()


def execute(services: TmdbServices, statement: str) -> list[tuple[Any, ...]]:
    with services.store.transaction() as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def test_entities_that_always_fail_do_not_keep_others_from_being_fetched(services: TmdbServices) -> None:
    services.store.persist_payloads([answer("movie", movie(each)) for each in range(1, 55)])
    execute(services, "UPDATE tmdb.movies SET fetched_at = now() - make_interval(days => 179, mins => tmdb_id)")
    execute(services, "UPDATE tmdb.movies SET fetched_at = fetched_at + interval '1 day' WHERE tmdb_id > 50")
    _, client = client_of(*range(1, 51))
    ended = [refresh(services, client, most=100).ended for _ in range(12)]
    assert any(ended), "TMDB may be down for all that a run knows"
    due = execute(
        services, "SELECT count(*) FROM tmdb.movies WHERE tmdb_id > 50 AND fetched_at < now() - interval '9 d'"
    )
    assert due == [(0,)]


def test_videos_whose_search_always_fails_do_not_keep_others_from_being_searched(services: TmdbServices) -> None:
    videos = [video(each, vod_name=f"片子{each}", type_id=6) for each in range(1, 31)]
    url = services.settings.library_url.get_secret_value()
    with build_library(url, videos):
        made, client = client_of(*(f"片子{each}" for each in range(1, 26)))
        for _ in range(3):
            link_videos(services, client, most=100)
        execute(services, "UPDATE tmdb.vod_match SET looked_at = now() - interval '40 days'")
        execute(services, "UPDATE tmdb.vod_match SET state = 'review' WHERE vod_id = 1")
        made.asked.clear()
        for _ in range(2):
            link_videos(services, client, most=100)
    assert {f"片子{each}" for each in range(1, 31)} <= set(made.asked)
    assert execute(services, "SELECT state FROM tmdb.vod_match WHERE vod_id = 1") == [("review",)]


def test_an_answer_that_cannot_be_stored_does_not_end_the_run(
    services: TmdbServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(video_links, "suggest_queries", lambda video: [video.title])
    made, client = client_of()
    found = {"results": [{"id": 7}], "total_pages": 1}
    vars(made)["search"] = lambda *_: type("Page", (), found)
    vars(made)["details"] = lambda key: EntityAnswer(key.type, movie(7, budget=1e999), "zh-CN", NOW)
    with build_library(services.settings.library_url.get_secret_value(), [video(1, vod_name="片子", type_id=6)]):
        assert link_videos(services, client, most=9).states.total() == 1


def test_what_has_no_translations_is_asked_for_once(services: TmdbServices) -> None:
    services.store.persist_payloads([answer("person", actor(1))])
    made, client = client_of()
    for _ in range(2):
        store_translations(services, client, most=9)
    assert made.asked == [1]


def test_entities_whose_translations_always_fail_do_not_keep_others_from_getting_theirs(services: TmdbServices) -> None:
    services.store.persist_payloads([answer("person", actor(each, popularity=99.0 - each)) for each in range(1, 31)])
    made, client = client_of(*range(1, 25))
    made.gone = {25, 26}
    for _ in range(12):
        store_translations(services, client, most=99)
    stored = execute(services, "SELECT DISTINCT tmdb_person_id FROM tmdb.person_translations ORDER BY 1")
    assert stored == [(27,), (28,), (29,), (30,)]
    assert execute(services, "SELECT count(*) FROM tmdb.people WHERE gone_at IS NOT NULL") == [(2,)]


def test_translations_that_a_complete_answer_replaces_are_not_stored_again(services: TmdbServices) -> None:
    texts = {"translations": [{"iso_639_1": "en", "iso_3166_1": "US", "data": {"title": "X"}}]}
    store = services.store
    store.persist_payloads([answer("movie", movie(1, title="X"), "zh-CN")])
    store.persist_payloads([answer("movie", movie(1, title="Y"), "en-US")])
    new = answer("movie", movie(1, translations=texts))
    store.persist_payloads([EntityAnswer(new.entity, new.raw, new.language, NOW + timedelta(hours=1))])
    assert store_translations(services, None, most=9).split == 0
    execute(services, "DELETE FROM tmdb.movie_translations")
    assert [store_translations(services, None, most=9).split for _ in range(2)] == [1, 0]
