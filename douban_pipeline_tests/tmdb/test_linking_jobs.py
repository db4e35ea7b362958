"""The library's videos in Dagster: linked by the gate; what is in doubt goes to a person."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pydantic import SecretStr

from douban_pipeline.dagster_kit.launchpad import RefusedConfigError
from douban_pipeline.matching import Video
from douban_pipeline.tmdb import video_links
from douban_pipeline.tmdb.clients.api import TmdbClient
from douban_pipeline.tmdb.services import TmdbServices, open_services
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store.links import Match
from douban_pipeline.tmdb.video_links import link_videos, look_for
from douban_pipeline_tests.harness.fixtures.library import build_library, video
from douban_pipeline_tests.stand_ins.tmdb_server import TmdbServer
from douban_pipeline_tests.tmdb.given import KEY
from douban_pipeline_tests.tmdb.location import exchange, execute, metadata, run

pytestmark = pytest.mark.postgres


def detail(tmdb_id: int, title: str, year: int, **more: Any) -> dict[str, Any]:
    named = {"title": title, "original_title": title, "release_date": f"{year}-05-01", "runtime": 100}
    directed = [{"id": tmdb_id + 100, "name": f"{title}导演", "job": "Director", "credit_id": f"d{tmdb_id}"}]
    played = [{"id": tmdb_id + 200, "name": f"{title}主演", "character": "他", "credit_id": f"a{tmdb_id}"}]
    people = {"credits": {"cast": played, "crew": directed}}
    return {"id": tmdb_id, **named, "genres": [{"id": 18, "name": "剧情"}], "popularity": 3.0, **people, **more}


LIBRARY = [detail(11, "远方的灯塔", 2015), detail(12, "夜航船", 1999), detail(13, "夜航船", 2019)]


@pytest.fixture
def with_library(settings: TmdbSettings, tmp_path: Path) -> Iterator[TmdbServices]:
    url = f"sqlite:///{tmp_path / 'cms.sqlite'}"
    lighthouse = {"vod_director": "远方的灯塔导演", "vod_actor": "远方的灯塔主演", "vod_year": "2015"}
    videos = [
        video(1, vod_name="远方的灯塔 HD国语", type_id=6, **lighthouse),
        video(2, vod_name="夜航船", type_id=6, vod_year="", vod_director="", vod_actor=""),
        video(3, vod_name="没有人拍过的片子", type_id=6, vod_year="2020"),
    ]
    server = TmdbServer([exchange(f"/3/movie/{each['id']}", each) for each in LIBRARY], key=KEY)
    with build_library(url, videos), server:
        given = {"library_url": SecretStr(url), "api_url": server.api_url}
        opened = open_services(settings.model_copy(update=given))
        yield opened
        opened.close()


def test_videos_are_linked_by_the_gate_and_doubt_goes_to_a_person(
    with_library: TmdbServices, instance: dg.DagsterInstance
) -> None:
    services, store = with_library, with_library.store
    states = "SELECT vod_id, state FROM tmdb.vod_match ORDER BY 1"
    found = metadata(run(services, instance, "match_tmdb_videos"))
    assert execute(store, states) == [(1, "confirmed"), (2, "review"), (3, "none")]
    assert (found["confirmed_now"], found["review_now"], found["none_now"]) == (1, 1, 1)
    assert "movie/12" in found["doubtful"]
    assert "movie/13" in found["doubtful"]
    links = "SELECT vod_id, media_type, tmdb_id, state FROM tmdb.vod_link ORDER BY 1"
    assert execute(store, links)[0] == (1, "movie", 11, "confirmed")
    assert execute(store, "SELECT count(*) FROM tmdb.movies WHERE data_state = 'full'") == [(3,)]

    again = metadata(run(services, instance, "match_tmdb_videos"))
    assert again["confirmed_now"] + again["review_now"] + again["none_now"] == 0, "looked at a moment ago"
    chosen = {"vod_id": 2, "media_type": "movie", "tmdb_id": 13}
    given = {"reviewer": "小王", "decisions": [chosen]}
    assert run(services, instance, "decide_tmdb_matches", decide_links=given).success
    assert execute(store, links)[1][3] == "review", "a dry run keeps nothing"
    with pytest.raises(RefusedConfigError, match="reviewer: 不能为空"):
        run(services, instance, "decide_tmdb_matches", decide_links={"dry_run": False})
    stranger = {**given, "dry_run": False, "decisions": [{**chosen, "vod_id": 99}]}
    assert not run(services, instance, "decide_tmdb_matches", decide_links=stranger).success
    assert run(services, instance, "decide_tmdb_matches", decide_links={**given, "dry_run": False}).success
    assert execute(store, links)[1] == (2, "movie", 13, "confirmed")
    execute(store, "UPDATE tmdb.vod_match SET looked_at = now() - interval '40 days'")
    later = metadata(run(services, instance, "match_tmdb_videos"))
    assert (later["none_now"], later["review_now"]) == (1, 0), "what a person decided is not searched again"
    assert execute(store, links)[1] == (2, "movie", 13, "confirmed")


def test_videos_that_the_library_deleted_do_not_keep_others_from_being_searched_again(
    with_library: TmdbServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, store = with_library, with_library.store
    searched: list[int] = []

    def noted(given: TmdbServices, client: TmdbClient, video: Video) -> Match:
        searched.append(video.vod_id)
        return look_for(given, client, video)

    with services.client() as client:
        link_videos(services, client, most=10)
        execute(store, "UPDATE tmdb.vod_match SET looked_at = now() - make_interval(days => 50 - vod_id::int)")
        with services.library.begin() as connection:
            connection.exec_driver_sql("DELETE FROM mac_vod WHERE vod_id = 2")
        monkeypatch.setattr(video_links, "look_for", noted)
        for _ in range(2):
            link_videos(services, client, most=1)
    assert searched == [3]
