"""How likely a hit is the video's subject, what ends a search, and which other subject may match too."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from douban_pipeline.matching import Kind, Likeness, Subject, Video, compare, ends_search, likeness, may_match_too
from douban_pipeline_tests.matching.cases import FILM, FILM_SUBJECT, SERIES, SERIES_SUBJECT, THIN, THIN_SUBJECT
from douban_pipeline_tests.matching.drawn import matches


@pytest.mark.parametrize(
    ("video", "hit", "expected"),
    [
        # Names alone.
        ({}, {}, Likeness.NAMESAKE),
        ({"title": "白夜追凶 HD中字"}, {}, Likeness.NAMESAKE),
        ({}, {"title": "Day and Night", "original_title": "白夜追凶"}, Likeness.NAMESAKE),
        ({"aliases": ("夜行猎人",)}, {"title": "夜行猎人"}, Likeness.NAMESAKE),
        ({}, {"title": "白夜追囚"}, Likeness.ALIKE),
        ({}, {"title": "白夜追凶之破晓"}, Likeness.ALIKE),
        ({}, {"title": "暗夜行者"}, Likeness.GUESS),
        ({}, {"title": ""}, Likeness.GUESS),
        # Years.
        ({}, {"year": 2017}, Likeness.NAMESAKE),
        ({}, {"year": 2018}, Likeness.NAMESAKE),
        ({}, {"year": 2019}, Likeness.NEAR),
        ({}, {"year": 2020}, Likeness.RULED_OUT),
        ({"year": None}, {"year": 1950}, Likeness.NAMESAKE),
        ({"year": None, "title": "白夜追凶2019"}, {"year": 2019}, Likeness.NAMESAKE),
        ({}, {"title": "白夜追囚", "year": 2018}, Likeness.ALIKE),
        ({}, {"title": "白夜追囚", "year": 2019}, Likeness.RULED_OUT),
        ({}, {"title": "暗夜行者", "year": 2018}, Likeness.GUESS),
        ({}, {"title": "暗夜行者", "year": 2019}, Likeness.RULED_OUT),
        ({"year": 2022}, {"year": 2017, "release_years": (2017, 2022)}, Likeness.NAMESAKE),
        # Kinds: a hit says only that it has episodes.
        ({"kind": Kind.FILM}, {"serial": True}, Likeness.RULED_OUT),
        ({"kind": Kind.SERIES}, {"serial": True}, Likeness.NAMESAKE),
        ({"kind": Kind.ANIMATION}, {"serial": True}, Likeness.NAMESAKE),
        ({"kind": Kind.SERIES}, {}, Likeness.NAMESAKE),
        # Numbers.
        ({"title": "白夜追凶 第二季"}, {"title": "白夜追凶2"}, Likeness.NAMESAKE),
        ({"title": "白夜追凶 第二季"}, {"title": "白夜追凶 第三季"}, Likeness.RULED_OUT),
        ({}, {"title": "白夜追凶 第一季"}, Likeness.NEAR),
        ({}, {"title": "白夜追凶 第一季", "year": 2017}, Likeness.FIRST_SEASON),
        ({"title": "白夜追凶 第一季"}, {"year": 2017}, Likeness.FIRST_SEASON),
        ({}, {"title": "白夜追凶 第一季", "year": 2018}, Likeness.NEAR),
        ({}, {"title": "白夜追凶 第二季", "year": 2017}, Likeness.ALIKE),
        ({}, {"title": "白夜追凶 第二季"}, Likeness.ALIKE),
        ({"title": "白夜追凶 第二季"}, {}, Likeness.ALIKE),
        ({"title": "歌手2024"}, {"title": "歌手2025"}, Likeness.RULED_OUT),
    ],
)
def test_how_likely_a_hit_is(video, hit, expected):
    subject = replace(THIN_SUBJECT, **{"year": None, "fetched": False, **hit})
    assert likeness(replace(THIN, **video), subject) is expected


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
def test_what_ends_a_search(video, subject, settled):
    assert ends_search(video, subject) is settled


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
def test_without_a_year_a_sequel_of_the_cast_may_match_too(local, settled, other, maybe):
    video = Video(1, "战狼", year=local)
    assert may_match_too(video, Subject(2, "战狼", year=settled), Subject(3, "战狼", year=other)) is maybe


@given(matches())
def test_what_is_ruled_out_is_never_confirmed(match):
    """A hit that is not asked about would have been refused: by its year, its kind, its number or its name."""
    video, (subject, *_) = match
    if likeness(video, subject) is not Likeness.RULED_OUT:
        return
    found = compare(video, subject)
    assert found.exclusions or not found.title.near_exact or found.title.numbers == "conflict"


@given(matches())
def test_what_ends_a_search_is_a_namesake(match):
    video, (subject, *_) = match
    if ends_search(video, subject):
        assert likeness(video, subject) is Likeness.NAMESAKE
