"""What a hit promises, what settles a search, and who may be it as well."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from douban_pipeline.matching import Kind, Promise, Subject, Video, compare, may_be_too, promise, settles
from douban_pipeline_tests.matching.cases import FILM, FILM_SUBJECT, SERIES, SERIES_SUBJECT, THIN, THIN_SUBJECT
from douban_pipeline_tests.matching.drawn import matches


@pytest.mark.parametrize(
    ("video", "hit", "expected"),
    [
        # Names alone.
        ({}, {}, Promise.NAMESAKE),
        ({"title": "白夜追凶 HD中字"}, {}, Promise.NAMESAKE),
        ({}, {"title": "Day and Night", "original_title": "白夜追凶"}, Promise.NAMESAKE),
        ({"aliases": ("夜行猎人",)}, {"title": "夜行猎人"}, Promise.NAMESAKE),
        ({}, {"title": "白夜追囚"}, Promise.ALIKE),
        ({}, {"title": "白夜追凶之破晓"}, Promise.ALIKE),
        ({}, {"title": "暗夜行者"}, Promise.GUESS),
        ({}, {"title": ""}, Promise.GUESS),
        # Years.
        ({}, {"year": 2017}, Promise.NAMESAKE),
        ({}, {"year": 2018}, Promise.NAMESAKE),
        ({}, {"year": 2019}, Promise.NEAR),
        ({}, {"year": 2020}, Promise.NONE),
        ({"year": None}, {"year": 1950}, Promise.NAMESAKE),
        ({"year": None, "title": "白夜追凶2019"}, {"year": 2019}, Promise.NAMESAKE),
        ({}, {"title": "白夜追囚", "year": 2018}, Promise.ALIKE),
        ({}, {"title": "白夜追囚", "year": 2019}, Promise.NONE),
        ({}, {"title": "暗夜行者", "year": 2018}, Promise.GUESS),
        ({}, {"title": "暗夜行者", "year": 2019}, Promise.NONE),
        ({"year": 2022}, {"year": 2017, "release_years": (2017, 2022)}, Promise.NAMESAKE),
        # Kinds: a hit says only that it has episodes.
        ({"kind": Kind.FILM}, {"serial": True}, Promise.NONE),
        ({"kind": Kind.SERIES}, {"serial": True}, Promise.NAMESAKE),
        ({"kind": Kind.ANIMATION}, {"serial": True}, Promise.NAMESAKE),
        ({"kind": Kind.SERIES}, {}, Promise.NAMESAKE),
        # Numbers.
        ({"title": "白夜追凶 第二季"}, {"title": "白夜追凶2"}, Promise.NAMESAKE),
        ({"title": "白夜追凶 第二季"}, {"title": "白夜追凶 第三季"}, Promise.NONE),
        ({}, {"title": "白夜追凶 第一季"}, Promise.NEAR),
        ({}, {"title": "白夜追凶 第二季"}, Promise.ALIKE),
        ({"title": "白夜追凶 第二季"}, {}, Promise.ALIKE),
        ({"title": "歌手2024"}, {"title": "歌手2025"}, Promise.NONE),
    ],
)
def test_what_a_hit_promises(video, hit, expected):
    subject = replace(THIN_SUBJECT, **{"year": None, "fetched": False, **hit})
    assert promise(replace(THIN, **video), subject) is expected


@pytest.mark.parametrize(
    ("video", "subject", "settled"),
    [
        (FILM, FILM_SUBJECT, True),
        (SERIES, SERIES_SUBJECT, True),
        (replace(FILM, directors=()), FILM_SUBJECT, True),
        (replace(FILM, actors=()), FILM_SUBJECT, True),
        (replace(FILM, directors=(), actors=()), FILM_SUBJECT, False),
        (replace(FILM, year=None), FILM_SUBJECT, True),
        (replace(FILM, year=2011), FILM_SUBJECT, False),
        (replace(FILM, regions=("美国",)), FILM_SUBJECT, False),
        (replace(FILM, title="让子弹飞一会儿", aliases=()), FILM_SUBJECT, False),
        (replace(SERIES, title="庆余年"), replace(SERIES_SUBJECT, title="庆余年 第一季", aliases=()), False),
        (THIN, THIN_SUBJECT, False),
    ],
)
def test_what_settles_a_search(video, subject, settled):
    assert settles(video, subject) is settled


@pytest.mark.parametrize(
    ("local", "settled", "other", "maybe"),
    [
        (None, 2010, 2018, True),
        (None, 2018, 2010, True),
        (None, 2010, 2019, False),
        (None, 2010, 2010, True),
        (None, None, 2010, False),
        (None, 2010, None, False),
        (2010, 2010, 2010, False),
    ],
)
def test_without_a_year_a_sequel_of_the_cast_may_be_it_too(local, settled, other, maybe):
    video = Video(1, "战狼", year=local)
    assert may_be_too(video, Subject(2, "战狼", year=settled), Subject(3, "战狼", year=other)) is maybe


@given(matches())
def test_what_promises_nothing_is_never_confirmed_material(match):
    """A hit that is not asked about would have been refused: by its year, its kind, its number or its name."""
    video, (subject, *_) = match
    if promise(video, subject) is not Promise.NONE:
        return
    found = compare(video, subject)
    assert found.rejects or not found.title.near_exact or found.title.numbers == "conflict"


@given(matches())
def test_what_settles_promises_most(match):
    video, (subject, *_) = match
    if settles(video, subject):
        assert promise(video, subject) is Promise.NAMESAKE
