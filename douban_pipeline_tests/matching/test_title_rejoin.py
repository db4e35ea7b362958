"""Douban's joined names put back together, and names that are left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.matching.title_rejoin import rejoin


@pytest.mark.parametrize(
    ("title", "original", "whole", "rest"),
    [
        (
            "空之境界",
            "俯瞰风景 劇場版 空の境界 第一章 俯瞰風景",
            "空之境界 俯瞰风景",
            "劇場版 空の境界 第一章 俯瞰風景",
        ),
        (
            "名侦探柯南",
            "引爆摩天楼 名探偵コナン 時計じかけの摩天楼",
            "名侦探柯南 引爆摩天楼",
            "名探偵コナン 時計じかけの摩天楼",
        ),
        ("鬼灭之刃", "无限列车篇 鬼滅の刃 無限列車編", "鬼灭之刃 无限列车篇", "鬼滅の刃 無限列車編"),
        ("神探夏洛克", "第二季 Sherlock Season 2", "神探夏洛克 第二季", "Sherlock Season 2"),
        ("请回答", "特别篇 응답하라 스페셜", "请回答 特别篇", "응답하라 스페셜"),
        ("剧场版", "extra chorus 空の境界 extra chorus", "剧场版 extra chorus", "空の境界 extra chorus"),
    ],
)
def test_names_cut_at_their_first_space_are_put_together(title, original, whole, rest):
    assert rejoin(title, original) == (whole, rest)


@pytest.mark.parametrize(
    ("title", "original"),
    [
        pytest.param("盗梦空间", "Inception", id="one word"),
        pytest.param("盗梦空间", "", id="none"),
        pytest.param("霸王别姬", "霸王別姬 再版", id="no other script follows"),
        pytest.param("神探夏洛克", "Sherlock Season 2", id="no Chinese word"),
        pytest.param("千与千寻", "千と千尋の神隠し", id="kana from the start"),
        pytest.param("七武士", "映画 七人の侍", id="a Japanese word written like a Chinese one"),
        pytest.param("空之境界", "劇場版 空の境界", id="another"),
        pytest.param("教父", "教父 The Godfather", id="the word repeats the title"),
        pytest.param("无间道", "無間道 Infernal Affairs", id="traditional: a name of its own"),
        pytest.param("花样年华", "花樣年華 In the Mood for Love", id="traditional and Latin"),
        pytest.param("请回答1988", "응답하라 1988", id="hangul from the start"),
        pytest.param("爱乐之城", "La La Land", id="Latin words"),
    ],
)
def test_names_that_are_whole_are_left_alone(title, original):
    assert rejoin(title, original) == (title, original)


@given(st.text("空之境界の劇場版 abXYZ第二季", max_size=12), st.text("空之境界の劇場版 abXYZ第二季", max_size=20))
def test_nothing_is_lost_or_made_up(title, original):
    whole, rest = rejoin(title, original)
    assert whole.startswith(title)
    assert f"{whole} {rest}".split() == f"{title} {original}".split()
    assert rest or not original
