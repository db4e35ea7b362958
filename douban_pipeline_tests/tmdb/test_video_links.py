"""The library's videos and TMDB's titles: seasons are told apart, and a library that does not answer ends the run."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path

import pytest

from douban_pipeline.core.other_databases import OtherDatabases
from douban_pipeline.matching import Kind, Video, judge
from douban_pipeline.matching.profiles import make_profile
from douban_pipeline.tmdb.services import open_services
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.subjects import key_of_subject, subjects_of
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline.tmdb.video_links import link_videos
from douban_pipeline_tests.tmdb.given import crew, show


def test_a_season_of_a_series_is_told_from_the_others() -> None:
    seasons = [
        {"season_number": number, "air_date": f"{2009 + number}-01-01", "episode_count": 10} for number in (0, 1, 2)
    ]
    raw = show(7, crew(1, "c", name="张三"), name="长街", original_name="长街", seasons=seasons, created_by=[])
    found = [*subjects_of(EntityType.TV, raw)]
    assert [(each.title, each.year, each.episodes) for each in found] == [
        ("长街 第1季", 2010, 10),
        ("长街 第2季", 2011, 10),
    ]
    assert [key_of_subject(each.douban_id)[1] for each in found] == [1, 2]
    second = Video(1, "长街第二季", year=2011, kind=Kind.SERIES, directors=("张三",), episodes=10)
    best = judge(second, found, profile=make_profile("calibrated")).candidates[0]
    assert key_of_subject(best.subject.douban_id) == (EntityKey(EntityType.TV, 7), 2)


@pytest.mark.postgres
def test_a_library_that_does_not_answer_ends_the_run_and_is_named(store_url: str, tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"mysql+pymysql://nobody:geheim@127.0.0.1:{silent.getsockname()[1]}/cms"
        given = {"home": tmp_path, "database_url": store_url, "library_url": url, "api_key": "a-key"}
        services = open_services(TmdbSettings(_env_file=None, **{**given, "api_url": "http://127.0.0.1:9"}))
        assert isinstance(services.others, OtherDatabases)
        vars(services)["others"] = OtherDatabases(services.engine, seconds=0.2)
        with services.client() as client:
            report = link_videos(services, client, most=10)
        services.close()
    assert "DOUBAN_PIPELINE_DATABASE_URL" in report.ended
    assert "geheim" not in report.ended
    assert (report.states.total(), report.failed) == (0, 0)
