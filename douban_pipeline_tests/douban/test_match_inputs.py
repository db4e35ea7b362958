"""What the matcher is given is what the site and Douban mean, whatever dirt the columns hold."""

from __future__ import annotations

from typing import Any, get_args

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.cms.maccms import Category, Cms
from douban_pipeline.core.shared_settings import CategoryKind
from douban_pipeline.douban.match_inputs import glimpsed_facts, subject_facts
from douban_pipeline.douban.sources.douban_php import SubjectRecord
from douban_pipeline.douban.sources.search import Hit
from douban_pipeline.matching import Kind
from douban_pipeline.matching.fields import compare_regions
from douban_pipeline.matching.site_videos import facts_of_values, kind_of_category, video_facts

METADATA = sa.MetaData()
WIDTHS = {"vod_sub": 255, "vod_director": 12, "vod_actor": 255, "vod_class": 20}
CMS = Cms(sa.Table("vod", METADATA), sa.Table("type", METADATA), WIDTHS, frozenset())

TREE = {
    category.type_id: category
    for category in (
        Category(1, 0, "电影", ""),
        Category(2, 0, "连续剧", ""),
        Category(3, 0, "综艺", ""),
        Category(4, 0, "动漫", ""),
        Category(6, 1, "动作片", ""),
        Category(13, 2, "国产剧", ""),
        Category(19, 1, "纪录片", ""),
        Category(21, 1, "动画片", ""),
        Category(24, 2, "短剧", ""),
        Category(30, 1, "4K 专区", ""),
        Category(31, 30, "杜比", ""),
        Category(32, 99, "午夜", ""),
        Category(33, 33, "环", ""),
        Category(34, 35, "甲", ""),
        Category(35, 34, "乙", ""),
        Category(36, 0, "热门", ""),
        Category(37, 2, "大陆综艺", ""),
        Category(38, 3, "日韩", ""),
        Category(39, 0, "少儿番剧", ""),
        Category(40, 0, "记录片", ""),
        Category(41, 0, "分类1", "", "film"),
        Category(42, 41, "子类1", ""),
        Category(43, 41, "动漫", ""),
    )
}


def facts(**columns: Any):
    plain = {
        "vod_id": 7,
        "type_id": 6,
        "vod_name": "片",
        "vod_sub": "",
        "vod_year": "",
        "vod_area": "",
        "vod_lang": "",
        "vod_director": "",
        "vod_actor": "",
        "vod_class": "",
        "vod_duration": "",
        "vod_total": 0,
        "vod_remarks": "",
    }
    return video_facts(plain | columns, CMS, TREE)


@pytest.mark.parametrize(
    ("columns", "name", "expected"),
    [
        ({"vod_name": "Ocean&#039;s &lt;11&gt;"}, "title", "Ocean's <11>"),
        ({"vod_name": "Tom &amp;amp; Jerry "}, "title", "Tom & Jerry"),
        ({"vod_sub": "再见，我的妾 / Farewell My Concubine"}, "aliases", ("再见，我的妾", "Farewell My Concubine")),
        ({"vod_sub": "阿&amp;乙,丙（2018）"}, "aliases", ("阿&乙", "丙")),
        ({"vod_sub": "暂无"}, "aliases", ()),
        ({"vod_year": "2021-05-01(中国大陆)"}, "year", 2021),
        ({"vod_year": "0"}, "year", None),
        ({"vod_year": "未知"}, "year", None),
        ({"vod_actor": "张三,李四/王五、赵六|张三"}, "actors", ("张三", "李四", "王五", "赵六")),
        ({"vod_actor": "内详"}, "actors", ()),
        ({"vod_actor": "未知,张三,N/A"}, "actors", ("张三",)),
        ({"vod_actor": "Dean O&#039;Gorman,Zo&euml; Bell"}, "actors", ("Dean O'Gorman", "Zoë Bell")),
        ({"vod_actor": "路飞：田中真弓"}, "actors", ("田中真弓",)),
        ({"vod_director": "史蒂文·斯皮尔"}, "directors", ("史蒂文·斯皮尔",)),
        # A list that fills its column was cut, maybe within a name: the last one is not believed.
        ({"vod_director": "甲乙丙,丁戊己,庚辛壬癸"}, "directors", ("甲乙丙", "丁戊己")),
        ({"vod_class": "剧情,喜剧"}, "genres", ("剧情", "喜剧")),
        ({"vod_lang": "国语/粤语"}, "languages", ("国语", "粤语")),
        ({"vod_area": "中国大陆,中国香港"}, "regions", ("中国大陆,中国香港",)),
        ({"vod_area": ""}, "regions", ()),
        ({"vod_duration": "1小时58分"}, "duration_minutes", 118),
        ({"vod_duration": "0"}, "duration_minutes", None),
        ({"vod_total": 24, "vod_remarks": "全30集"}, "episodes", 24),
        ({"vod_remarks": "全30集"}, "episodes", 30),
        ({"vod_remarks": "更新至41集"}, "episodes", None),
        ({"vod_remarks": "HD&amp;BD"}, "remarks", "HD&BD"),
    ],
)
def test_a_row_is_read_as_it_is_meant(columns, name, expected):
    assert getattr(facts(**columns), name) == expected


@pytest.mark.parametrize("word", ["其它", "其他", "海外", "某处"])
def test_a_region_that_names_none_contradicts_none(word):
    video = facts(vod_area=word)
    assert compare_regions(video.regions, ("美国",)).agree is not False
    assert compare_regions(facts(vod_area="日本").regions, ("美国",)).agree is False


@given(st.dictionaries(st.sampled_from(["vod_name", "vod_sub", "vod_actor", "vod_class", "vod_area"]), st.text()))
def test_no_text_breaks_the_reading(columns):
    read = facts(**columns)
    assert all(name.strip() == name and name for name in (*read.aliases, *read.actors, *read.genres))


@pytest.mark.parametrize(
    ("type_id", "kind"),
    [
        (1, Kind.FILM),
        (6, Kind.FILM),
        (2, Kind.SERIES),
        (13, Kind.SERIES),
        (3, Kind.VARIETY),
        (4, Kind.ANIMATION),
        # A child says more than its parent.
        (19, Kind.DOCUMENTARY),
        (21, Kind.ANIMATION),
        (24, Kind.SHORT),
        (37, Kind.VARIETY),
        # A child that says nothing is what its ancestors are.
        (30, Kind.FILM),
        (31, Kind.FILM),
        (38, Kind.VARIETY),
        (39, Kind.ANIMATION),
        (40, Kind.DOCUMENTARY),
        # What the site's owner says, of the category or of an ancestor whose children's names say nothing.
        (41, Kind.FILM),
        (42, Kind.FILM),
        (43, Kind.ANIMATION),
        # Nobody says: unknown, and a loop of parents ends.
        (36, None),
        (32, None),
        (33, None),
        (34, None),
        (0, None),
        (12345, None),
    ],
)
def test_the_kind_is_read_from_the_category_tree(type_id, kind):
    assert kind_of_category(TREE, type_id) is kind
    assert facts(type_id=type_id).kind is kind


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        ({"genres": ("真人秀", "音乐"), "episodes": 12}, Kind.VARIETY),
        ({"genres": ("脱口秀",)}, Kind.VARIETY),
        ({"genres": ("动画", "短片")}, Kind.ANIMATION),
        ({"genres": ("纪录片",), "episodes": 8}, Kind.DOCUMENTARY),
        ({"genres": ("剧情",), "episodes": 24, "duration_minutes": 75}, Kind.SERIES),
        ({"genres": ("剧情", "短片"), "duration_minutes": 90}, Kind.SHORT),
        ({"genres": ("剧情",), "duration_minutes": 60}, Kind.FILM),
        ({"genres": ("剧情",), "episodes": 1, "duration_minutes": 90}, Kind.FILM),
        ({"genres": ("剧情",), "duration_minutes": 59}, None),
        ({"genres": ("剧情",)}, None),
        ({}, None),
    ],
)
def test_the_kind_of_a_subject_is_only_said_where_it_is_known(record, kind):
    assert subject_facts(SubjectRecord(90_000_001, "片", **record)).kind is kind


def test_a_subject_keeps_all_its_facts():
    record = SubjectRecord(
        90_000_001,
        "片",
        original_title="Film",
        aliases=("别名",),
        year=2018,
        release_dates=("2018-05-11(中国大陆)", "2018-06-01(美国)", "2019(日本)", "待定"),
        regions=("中国大陆",),
        languages=("汉语普通话",),
        genres=("剧情",),
        directors=("导",),
        actors=("甲",),
        duration_minutes=118,
        rating=7.9,
    )
    read = subject_facts(record)
    assert read.release_years == (2018, 2019)
    same = ("douban_id", "title", "original_title", "aliases", "year", "regions", "languages", "genres", "directors")
    for name in (*same, "actors", "duration_minutes", "episodes", "rating"):
        assert getattr(read, name) == getattr(record, name), name
    assert (read.fetched, read.serial) == (True, None)


def test_the_search_says_what_douban_has_no_field_for():
    read = subject_facts(SubjectRecord(90_000_001, "片"), "tv")
    assert (read.serial, read.kind) == (True, Kind.SERIES)
    long_episodes = subject_facts(SubjectRecord(90_000_001, "片", duration_minutes=90), "tv")
    assert (long_episodes.serial, long_episodes.kind) == (True, Kind.SERIES)
    assert subject_facts(SubjectRecord(90_000_001, "片"), "movie").serial is None, "it is said of everything"


def test_joined_names_are_put_together():
    names = ("空之境界", "俯瞰风景 劇場版 空の境界 第一章 俯瞰風景")
    whole = ("空之境界 俯瞰风景", "劇場版 空の境界 第一章 俯瞰風景")
    fetched = subject_facts(SubjectRecord(90_000_001, names[0], original_title=names[1]))
    glimpsed = glimpsed_facts(Hit(90_000_001, names[0], "", original_title=names[1]))
    assert (fetched.title, fetched.original_title) == whole
    assert (glimpsed.title, glimpsed.original_title) == whole


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("长河落日记事", "长河落日记事"),
        ("长河落日记事 (豆瓣)", "长河落日记事"),
        ("长河落日记事（豆瓣）", "长河落日记事"),
        ("长河落日记事 - 电影 - 豆瓣", "长河落日记事"),
        ("长河落日记事 - 豆瓣电影", "长河落日记事"),
        ("长河落日记事_电影_豆瓣", "长河落日记事"),
        ("豆瓣酱的一生", "豆瓣酱的一生"),
        ("", ""),
    ],
)
def test_the_sites_name_is_no_part_of_a_title(title, expected):
    read = glimpsed_facts(Hit(90_000_001, title, "", year=2021, kind="tv", episodes=12))
    assert read.title == expected
    assert (read.fetched, read.year, read.kind, read.serial, read.episodes) == (False, 2021, Kind.SERIES, True, 12)
    film = glimpsed_facts(Hit(90_000_001, title, "", kind="movie"))
    assert (film.kind, film.serial, film.year) == (None, None, None)


def test_values_without_a_database_are_read_alike():
    read = facts_of_values(
        {"vod_name": "Tom &amp; Jerry", "vod_year": "2021", "vod_actor": "内详"}, vod_id=3, kind=None
    )
    assert (read.vod_id, read.title, read.year, read.actors, read.regions) == (3, "Tom & Jerry", 2021, (), ())
    row = {
        "vod_name": "片",
        "vod_area": "大陆",
        "vod_actor": "张三,李四",
        "vod_duration": "90",
        "vod_remarks": "全30集",
    }
    assert facts_of_values(row, vod_id=7, kind=Kind.FILM) == facts(**row)
    with pytest.raises(KeyError):
        facts_of_values({"vod_year": "2021"}, vod_id=3, kind=None)


def test_the_setting_of_categories_names_every_kind():
    assert get_args(CategoryKind) == tuple(Kind)
