"""What the CMS's own collector brings, and which of it becomes a second video."""

from __future__ import annotations

from typing import Any

import pytest

from douban_pipeline.douban.reports.lists.duplicates import duplicates_list
from douban_pipeline.douban.reports.lists.keyset import ListFilter
from douban_pipeline.douban.reports.lists.spec import rows_of
from douban_pipeline_tests.harness.fixtures.resource_site import SERIES, offered
from douban_pipeline_tests.harness.fixtures.scenario import row_of, subject
from douban_pipeline_tests.live_cms.live_site import FLAG, Film, LiveSite


@pytest.mark.parametrize(
    ("number", "title", "regions", "area"),
    [
        (1, "岛上的守塔人", ["马耳他", "美国"], "美国"),
        (2, "群山回响之外", ["马耳他"], ""),
        (3, "码头工人之歌", ["中国香港", "中国大陆"], "香港"),
        (4, "红土路口", ["英国", "法国"], "英国"),
    ],
)
def test_the_area_is_the_first_country_that_the_sites_list_names(
    site: LiveSite, number: int, title: str, regions: list[str], area: str
) -> None:
    film = site.film(subject(90_220_000 + number, title, regions=regions), vod_area="")
    columns = site.columns(film)
    assert (columns["vod_douban_id"], columns["vod_area"]) == (film.subject["id"], area)


def offer(site: LiveSite, film: Film, **columns: Any) -> list[int]:
    """Let the source offer a film anew, with ``columns`` changed; return the videos that came in."""
    last = newest(site)
    site.collect_again(film, **columns)
    return [row["vod_id"] for row in site.library.query("SELECT vod_id FROM mac_vod WHERE vod_id > :last", last=last)]


def newest(site: LiveSite) -> int:
    return int(site.library.query("SELECT MAX(vod_id) AS vod_id FROM mac_vod")[0]["vod_id"])


def test_by_the_shipped_rule_another_film_of_the_same_actor_is_the_same_video(site: LiveSite) -> None:
    film = site.film(subject(90_220_010, "琴房外的雨声"))
    assert offer(site, film, vod_name="琴房里的另一部片", vod_director="", vod_actor="琴房甲") == []
    site.look()
    site.make_due(film)
    site.judge(film)
    assert (site.changed(film), site.written(film), site.said(film)) == ({}, [], set())


def test_what_a_person_changed_makes_the_collector_bring_it_twice_and_both_are_reported(site: LiveSite) -> None:
    film = site.film(subject(90_220_011, "松涛镇纪事"))
    people = {"vod_director": "松涛导演", "vod_actor": "另有其人"}
    site.cms.admin.save(site.cms.admin.open(film.vod_id), **people)
    [twin] = offer(site, film, vod_actor="松涛丙")  # whom it found by the others the CMS remembers for a while
    site.look()
    both = [Film(film.subject, vod_id, film.number, {}) for vod_id in (film.vod_id, twin)]
    for each in both:
        site.judge(each)
    site.pass_time(minutes=5)
    assert [site.state(each)["vod_douban_id"] for each in both] == [film.subject["id"]] * 2
    rows = rows_of(site.library.services, duplicates_list(site.library.services), ListFilter())
    assert {row["vod_id"] for row in rows if row["douban_id"] == 90_220_011} == {film.vod_id, twin}


def test_a_series_is_put_where_the_admin_said(site: LiveSite) -> None:
    series = subject(90_220_012, "海关大楼十二年", kind="tv", episodes=24)
    site.told(series)
    site.source.videos = [offered(next(site.numbers), row_of(series, 1), SERIES)]
    site.cms.collect(FLAG, site.source.address)
    film = Film(series, newest(site), 0, {})
    site.look()
    site.judge(film)
    columns = site.columns(film)
    assert (columns["type_id"], columns["type_id_1"], columns["vod_total"]) == (13, 2, 24)
    assert columns["vod_douban_id"] == series["id"]
