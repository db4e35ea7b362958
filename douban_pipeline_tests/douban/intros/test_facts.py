"""The fact sheet joins what Douban and the site know, and says the same thing twice the same way."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.douban.intros.facts import FactSheet, fact_sheet
from douban_pipeline.douban.sources.douban_php import SubjectRecord
from douban_pipeline.matching import Kind, Video
from douban_pipeline_tests.douban.intros.sheets import BARE, FILM

LOCAL = Video(
    vod_id=7,
    title="霸王别姬 国语版 HD",
    aliases=("Farewell My Concubine", "霸王別姬"),
    year=1992,
    kind=Kind.FILM,
    regions=("大陆,香港,其它",),
    directors=("陳凱歌",),
    actors=("张国荣", "蒋雯丽"),
    genres=("剧情片",),
    duration_minutes=170,
)
RECORD = SubjectRecord(
    douban_id=1291546,
    title="霸王别姬",
    original_title="霸王别姬",
    aliases=("再见，我的妾", "Farewell My Concubine"),
    year=1993,
    regions=("中国大陆", "中国香港"),
    genres=("剧情", "爱情"),
    directors=("陈凯歌",),
    writers=("芦苇", "李碧华"),
    actors=("张国荣", "张丰毅"),
    duration_minutes=171,
    episodes=1,
    summary="段小楼与程蝶衣自小在戏班学艺。",
)


class TestWhereTheFactsComeFrom:
    def test_douban_is_believed_and_the_sites_own_people_and_titles_are_added(self):
        assert fact_sheet(LOCAL, RECORD, 1291546) == FactSheet(
            title="霸王别姬",
            year=1993,
            douban_id=1291546,
            url="https://movie.douban.com/subject/1291546/",
            aliases=("再见，我的妾", "Farewell My Concubine"),
            genres=("剧情", "爱情"),
            regions=("中国大陆", "中国香港"),
            directors=("陈凯歌",),
            writers=("芦苇", "李碧华"),
            actors=("张国荣", "张丰毅", "蒋雯丽"),
            kind="film",
            duration_minutes=171,
            synopsis="段小楼与程蝶衣自小在戏班学艺。",
        )

    def test_without_an_answer_the_site_is_all_there_is_and_its_synopsis_is_none(self):
        assert fact_sheet(LOCAL, None, 0) == FactSheet(
            title="霸王别姬",
            year=1992,
            aliases=("Farewell My Concubine",),
            genres=("剧情片",),
            regions=("大陆", "香港"),
            directors=("陳凱歌",),
            actors=("张国荣", "蒋雯丽"),
            kind="film",
            duration_minutes=170,
        )

    def test_two_spellings_of_one_person_are_one(self):
        record = dataclasses.replace(RECORD, directors=("弗兰克·德拉邦特",))
        local = dataclasses.replace(LOCAL, directors=("弗兰克·达拉邦特",))
        assert fact_sheet(local, record, 1291546).directors == ("弗兰克·德拉邦特",)

    def test_a_single_piece_has_no_episodes_and_a_series_has_them(self):
        assert fact_sheet(LOCAL, RECORD, 1291546).episodes is None
        series = dataclasses.replace(RECORD, episodes=36)
        assert fact_sheet(LOCAL, series, 1291546).episodes == 36

    def test_an_original_title_of_another_name_is_kept(self):
        record = dataclasses.replace(RECORD, title="肖申克的救赎", original_title="The Shawshank Redemption")
        sheet = fact_sheet(LOCAL, record, 1292052)
        assert (sheet.title, sheet.original_title) == ("肖申克的救赎", "The Shawshank Redemption")
        assert "霸王别姬" in sheet.aliases


@pytest.mark.parametrize(
    ("sheet", "enough"),
    [
        (FactSheet(title="霸王别姬", genres=("剧情",)), True),
        (FactSheet(title="霸王别姬"), False),
        (FactSheet(title="", genres=("剧情",)), False),
        (FactSheet(title=" ", genres=("剧情",)), False),
        (BARE, True),
    ],
)
def test_a_title_and_a_genre_are_enough(sheet, enough):
    assert sheet.enough is enough


class TestThePayload:
    @given(
        st.builds(
            FactSheet,
            title=st.text(min_size=1),
            year=st.none() | st.integers(1880, 2100),
            douban_id=st.integers(0, 10**10),
            aliases=st.lists(st.text(min_size=1)).map(tuple),
            actors=st.lists(st.text(min_size=1)).map(tuple),
            episodes=st.none() | st.integers(1, 2000),
            synopsis=st.text(),
        )
    )
    def test_any_sheet_is_read_back_as_it_was(self, sheet):
        assert FactSheet.from_payload(json.loads(json.dumps(sheet.to_payload()))) == sheet


class TestTheHash:
    def test_it_changes_with_every_fact(self):
        others = [
            dataclasses.replace(FILM, year=1994),
            dataclasses.replace(FILM, actors=FILM.actors[:-1]),
            dataclasses.replace(FILM, synopsis=FILM.synopsis + "。"),
            dataclasses.replace(FILM, directors=(), writers=FILM.directors + FILM.writers),
        ]
        assert len({FILM.hash, *(other.hash for other in others)}) == 5

    def test_it_is_the_same_in_every_process(self):
        """It is stored, so it must not change with the release either."""
        assert BARE.hash == "097b908f0421fef6a855b62c40828cab8d505d74b81cd6ec9bae23374a9cd56a"
