"""What is asked about a video."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from douban_pipeline.matching import Kind, Video, search_queries, suggest_queries
from douban_pipeline.matching.queries import MOST_SUGGESTIONS
from douban_pipeline_tests.matching.cases import FILM, SERIES
from douban_pipeline_tests.matching.drawn import VIDEOS


@pytest.mark.parametrize(
    ("video", "expected"),
    [
        (
            replace(SERIES, title="庆余年 第二季 更新至12集"),
            (
                "庆余年 第二季 豆瓣",
                "庆余年 第二季 2024 site:movie.douban.com/subject",
                "庆余年 第二季 孙皓 豆瓣 subject",
            ),
        ),
        (
            replace(FILM, directors=(), year=None),
            ("让子弹飞 豆瓣", "让子弹飞 site:movie.douban.com/subject", "让子弹飞 姜文 豆瓣 subject"),
        ),
        (
            Video(1, "2019年惊悚《碟仙》BD", kind=Kind.FILM),
            ("碟仙 豆瓣", "碟仙 2019 site:movie.douban.com/subject", "碟仙 电影 豆瓣 subject"),
        ),
        (Video(1, "碟仙"), ("碟仙 豆瓣", "碟仙 site:movie.douban.com/subject", "碟仙 豆瓣 subject")),
    ],
)
def test_search_queries(video, expected):
    assert search_queries(video) == expected


@pytest.mark.parametrize(
    ("video", "expected"),
    [
        (Video(1, "庆余年 第二季 HD"), ("庆余年 第二季", "庆余年")),
        (Video(1, "战狼2"), ("战狼2", "战狼")),
        (Video(1, "2018年悬疑《调音师/调琴师》BD中字"), ("调音师", "调琴师")),
        (Video(1, "計程車司機"), ("计程车司机", "計程車司機", "出租车司机")),
        (Video(1, "盗梦空间", aliases=("Inception",)), ("盗梦空间", "Inception")),
        (Video(1, "碟仙2019"), ("碟仙2019", "碟仙")),
        # Further aliases come last, Chinese ones first, each in one spelling; what says a season only is no title.
        (
            Video(1, "GIRLS CRY", aliases=("ガールズ", "Part 2", "The Band", "少女的吶喊", "少女的呐喊", "少哭")),
            ("GIRLS CRY", "ガールズ", "少女的呐喊", "少哭"),
        ),
    ],
)
def test_suggest_queries(video, expected):
    assert suggest_queries(video) == expected


@pytest.mark.parametrize(
    ("video", "expected"),
    [
        # What a site adds may hide the family: the last resort leaves words out.
        (Video(1, "终极蜘蛛侠 第三季：蛛网勇士"), "终极蜘蛛侠"),
        (Video(1, "寻梦环游记 Coco"), "寻梦环游记"),
    ],
)
def test_suggestions_are_asked_for_less_than_the_whole_title_too(video, expected):
    assert any(query.startswith(expected) and query != video.title for query in suggest_queries(video))


@given(VIDEOS)
def test_no_more_queries_than_allowed_each_once_and_none_empty(video):
    for queries, most in ((search_queries(video), 3), (suggest_queries(video), MOST_SUGGESTIONS)):
        assert len(queries) <= most
        assert len(set(queries)) == len(queries)
        assert all(query == query.strip() and query for query in queries)
