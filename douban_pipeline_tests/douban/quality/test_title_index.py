"""The small search engine: forgiving, ranked, always the same answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.demo.stand_ins.title_index import TitleIndex


def subject(number, title, year, **more):
    return {"id": number, "title": title, "original_title": title, "aka": [], "year": year, **more}


FAREWELL = subject(1291546, "霸王别姬", 1993, aka=["再见，我的妾", "Farewell My Concubine"])
JOY = subject(25853071, "庆余年", 2019)
JOY2 = subject(34937650, "庆余年 第二季", 2024, aka=["庆余年2"])


@pytest.mark.parametrize(
    ("title", "query"),
    [
        ("我", "我 2016 豆瓣"),
        ("歌手2025", "歌手 2025 豆瓣"),
        ("琅琊榜", "琅邪榜 豆瓣"),
        ("X", "x 豆瓣"),
        ("2012", "2012 2009 site:movie.douban.com/subject"),
        ("鍾馗捉妖記", "钟馗捉妖记 豆瓣"),
        ("Ｄｒ．ＳＴＯＮＥ", "dr.stone 豆瓣"),
    ],
)
def test_titles_that_are_hard_to_find(title, query):
    wanted = subject(5, title, 2016)
    assert TitleIndex([FAREWELL, JOY, wanted]).find(query, 5) == [wanted]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("farewell my concubine", [FAREWELL]),
        ("再见我的妾", [FAREWELL]),
        ("庆余年", [JOY, JOY2]),
        ("庆余年2", [JOY2, JOY]),
        ("庆余年 第二季", [JOY2, JOY]),
        ("毫不相干", []),
        ("豆瓣", []),
        ("", []),
        ("site:movie.douban.com/subject", []),
    ],
)
def test_aliases_families_and_nothing(query, expected):
    assert TitleIndex([FAREWELL, JOY, JOY2]).find(query, 5) == expected


TITLES = st.text("庆余年霸王别姬2第季 a", min_size=1, max_size=6)


@given(st.lists(TITLES, min_size=1, max_size=6), TITLES)
def test_a_title_finds_itself_and_the_order_of_the_subjects_does_not_matter(titles, query):
    subjects = [subject(number, title, 2000) for number, title in enumerate(titles)]
    index = TitleIndex(subjects)
    for each in subjects:
        assert not each["title"].strip() or each in index.find(each["title"], len(subjects))
    found = [each["id"] for each in index.find(query, 9)]
    assert found == [each["id"] for each in TitleIndex(subjects[::-1]).find(query, 9)]
    assert len(set(found)) == len(found)
