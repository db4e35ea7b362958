"""The literal score, its items, and everything that speaks against a candidate."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given

from douban_pipeline.matching import (
    HARD_REJECTS,
    SENTENCES,
    Code,
    ItemOutcome,
    Kind,
    Thresholds,
    Video,
    Weights,
    compare,
)
from douban_pipeline.matching.codes import LABELS, code_of, labels_of
from douban_pipeline.matching.title_editions import DISTINCT_EDITIONS, edition_name
from douban_pipeline_tests.matching.cases import FILM, FILM_SUBJECT, SERIES, SERIES_SUBJECT
from douban_pipeline_tests.matching.drawn import SUBJECTS, VIDEOS


def test_a_perfect_candidate_earns_every_point():
    found = compare(FILM, FILM_SUBJECT)
    assert {item.name: item.points for item in found.items} == {
        "title": 45,
        "year": 15,
        "region": 10,
        "director": 12,
        "actors": 8,
        "genre": 5,
        "length": 5,
        "tie_break": 2,
    }
    assert found.score == found.earned == 100 == Weights().total, "a rating breaks ties and is part of no score"
    assert found.findings == ()
    assert set(found.facts) == {"year", "region", "director", "actors", "length"}


def test_unknown_fields_are_no_evidence_and_accuse_nobody():
    found = compare(Video(1, "让子弹飞"), replace(FILM_SUBJECT, rating=None))
    assert found.earned == 45
    assert found.score == 45 + 8 + 5 + 6 + 4 + 2, "the plan gives points for what is missing"
    assert found.rejects == found.conflicts == ()
    assert {item.outcome for item in found.items} == {ItemOutcome.AGREE, ItemOutcome.UNKNOWN}


@pytest.mark.parametrize(("gap", "points"), [(0, 15), (1, 10), (2, 5), (3, 0), (9, 0)])
@pytest.mark.parametrize("sign", [1, -1])
def test_year_points(gap, points, sign):
    found = compare(replace(FILM, year=2010 + sign * gap), FILM_SUBJECT)
    assert found.item("year").points == pytest.approx(points)
    assert (Code.YEAR_GAP in found.rejects) is (gap >= 3)
    assert (Code.YEAR_OFF in found.conflicts) is (gap in (1, 2))


def test_a_release_year_saves_from_the_reject_but_is_no_evidence():
    found = compare(replace(FILM, year=2018), replace(FILM_SUBJECT, release_years=(2010, 2018)))
    assert found.rejects == ()
    assert found.conflicts == (Code.YEAR_OF_RELEASE,)
    assert found.item("year").points == 5
    assert "year" not in found.facts


@pytest.mark.parametrize(
    ("video", "subject", "reject", "text"),
    [
        ({"title": "完全不同的电影"}, {}, Code.TITLE_TOO_FAR, "标题冲突：相似度 0.00"),
        ({"title": ""}, {}, Code.TITLE_TOO_FAR, "标题冲突：相似度 0.00"),
        ({"year": 2013}, {}, Code.YEAR_GAP, "年份冲突：差 3 年"),
        ({"title": "让我的子弹飞啊", "kind": Kind.SERIES}, {}, Code.KIND_CONFLICT, "类型冲突：本地 剧集 / 豆瓣 电影"),
        ({"regions": ("美国",)}, {}, Code.REGION_CONFLICT, "地区冲突：本地 美国 / 豆瓣 中国大陆、中国香港"),
        ({"directors": ("冯小刚",)}, {}, Code.DIRECTOR_CONFLICT, "导演冲突：本地 冯小刚 / 豆瓣 姜文"),
    ],
)
def test_every_hard_reject(video, subject, reject, text):
    found = compare(replace(FILM, aliases=(), **video), replace(FILM_SUBJECT, **subject))
    assert found.rejects == (reject,)
    assert found.to_json()["notes"][reject] == text


@pytest.mark.parametrize(
    ("title", "similarity", "rejected"),
    [
        ("让子弹飞", 1.0, False),
        # 让子弹 is in it: 2 · 3 / 7 = 0.86 of the letters.
        ("让子弹", 6 / 7, False),
        # 2 · 4 / 10 = 0.8.
        ("让子弹飞起来", 0.8, False),
        # 2 · 4 / 11 = 0.727, and no piece of it.
        ("让我的子弹飞啊", 8 / 11, True),
    ],
)
def test_film_and_series_reject_only_where_the_names_are_unlike(title, similarity, rejected):
    found = compare(replace(FILM, title=title, aliases=(), kind=Kind.SERIES), FILM_SUBJECT)
    assert found.title.similarity == pytest.approx(similarity)
    assert (found.rejects, found.conflicts[:1]) == (
        ((Code.KIND_CONFLICT,), ()) if rejected else ((), (Code.KIND_CONFLICT,))
    )
    assert [finding.code for finding in found.exclusions] == [Code.KIND_CONFLICT], "a doubt it is in any case"


@pytest.mark.parametrize(
    ("video", "subject"),
    [
        ({"year": None}, {"year": None, "release_years": ()}),
        ({"year": 2012}, {}),
        ({"kind": None}, {}),
        ({"kind": Kind.ANIMATION, "genres": ()}, {}),
        ({"kind": Kind.DOCUMENTARY}, {}),
        ({"kind": Kind.SHORT}, {}),
        ({"regions": ()}, {}),
        ({"regions": ("其它",)}, {}),
        ({"regions": ("欧美",)}, {}),
        ({"regions": ("海外",)}, {}),
        ({"regions": ("火星",)}, {}),
        ({"directors": ()}, {}),
        ({"directors": ("Jiang Wen",)}, {}),
        ({"directors": ("冯小刚",)}, {"directors": ()}),
    ],
)
def test_what_is_unknown_or_a_wildcard_never_rejects(video, subject):
    assert compare(replace(FILM, **video), replace(FILM_SUBJECT, **subject)).rejects == ()


def test_a_series_of_many_directors_has_no_director_conflict():
    many = replace(SERIES_SUBJECT, directors=("甲一", "乙二", "丙三"))
    assert compare(SERIES, many).rejects == ()
    assert compare(SERIES, replace(many, directors=("甲一", "乙二"))).rejects == (Code.DIRECTOR_CONFLICT,)
    film = replace(FILM_SUBJECT, directors=("甲一", "乙二", "丙三"))
    assert compare(FILM, film).rejects == (Code.DIRECTOR_CONFLICT,)


@pytest.mark.parametrize(
    ("mine", "theirs", "common", "outcome"),
    [
        ("安杰伊·茹瓦夫斯基", "安德烈·祖拉斯基", 3, "unknown"),
        ("安杰伊·茹瓦夫斯基", "安德烈·祖拉斯基", 2, "disagree"),
        ("安杰伊·茹瓦夫斯基", "安德烈·祖拉斯基", 0, "disagree"),
        # One letter of a short name is another person, however many actors they share.
        ("姜文", "姜武", 4, "disagree"),
    ],
)
def test_two_far_transliterations_may_be_one_director_of_a_common_cast(mine, theirs, common, outcome):
    cast = ("甲一", "乙二", "丙三", "丁四")
    video = replace(FILM, directors=(mine,), actors=cast)
    subject = replace(FILM_SUBJECT, directors=(theirs,), actors=(*cast[:common], "戊五", "己六"))
    found = compare(video, subject)
    assert found.item("director").outcome == outcome
    assert (Code.DIRECTOR_CONFLICT in found.rejects) is (outcome == "disagree")


@pytest.mark.parametrize(
    ("video", "subject", "code"),
    [
        ({"title": "庆余年 第三季"}, {}, Code.SEASON_CONFLICT),
        ({"title": "庆余年3"}, {}, Code.SEASON_CONFLICT),
        ({"title": "庆余年"}, {}, Code.SEASON_ONE_SIDED),
        ({}, {"title": "庆余年", "aliases": ()}, Code.SEASON_ONE_SIDED),
        ({"title": "庆余年"}, {"title": "庆余年 第一季", "aliases": ("庆余年",)}, Code.SEASON_ONE_SIDED),
        ({"title": "庆余年", "aliases": ("庆余年 第二季",)}, {"title": "庆余年", "aliases": ()}, Code.SEASON_ONE_SIDED),
        ({"title": "庆余年"}, {"title": "庆余年", "original_title": "Joy of Life Season 2"}, Code.SEASON_ONE_SIDED),
        ({"title": "庆余年 第二季 纯享版"}, {}, Code.EDITION_CONFLICT),
        ({}, {"title": "庆余年 第二季 特别篇"}, Code.EDITION_CONFLICT),
        ({"title": "庆余年 第1-3季"}, {}, Code.MERGED_RECORD),
        ({"title": "庆余年 第二季 1994版"}, {}, Code.YEAR_IN_TITLE),
        ({"kind": Kind.ANIMATION}, {}, Code.MEDIUM_CONFLICT),
        ({}, {"genres": ("动画",)}, Code.MEDIUM_CONFLICT),
        ({"actors": ("甲一", "乙二", "丙三")}, {}, Code.ACTORS_DISJOINT),
        ({"episodes": 12}, {}, Code.LENGTH_CONFLICT),
        ({"year": 2023}, {}, Code.YEAR_OFF),
        ({"aliases": ("경여년",)}, {"original_title": "다른이야기"}, Code.ORIGINALS_DIFFER),
    ],
)
def test_every_softer_conflict(video, subject, code):
    found = compare(replace(SERIES, **video), replace(SERIES_SUBJECT, **subject))
    assert code in found.conflicts
    assert found.rejects == ()


@pytest.mark.parametrize(
    ("mine", "theirs", "points", "outcome"),
    [
        (("甲一", "乙二", "丙三"), ("甲一", "乙二", "丙三", "丁四"), 8, "agree"),
        (("甲一", "乙二"), ("甲一", "乙二", "丙三"), 8, "agree"),
        (("甲一", "己六", "庚七"), ("甲一", "乙二", "丙三"), 8 / 3, "unknown"),
        (("甲一", "乙二", "庚七"), ("甲一", "乙二", "丙三"), 8, "agree"),
        (("甲一",), ("甲一", "乙二"), 8, "agree"),
        (("甲一", "乙二"), ("丙三", "丁四"), 0, "disagree"),
        ((), ("丙三",), 0, "unknown"),
    ],
)
def test_actors(mine, theirs, points, outcome):
    item = compare(replace(FILM, actors=mine), replace(FILM_SUBJECT, actors=theirs)).item("actors")
    assert item.points == pytest.approx(points)
    assert item.outcome == outcome


def test_weights_and_thresholds_can_be_set():
    heavy = Weights(title=10, year=0, region=0, director=0, actors=0, genre=0, length=0, tie_break=0)
    assert compare(FILM, FILM_SUBJECT, heavy).score == 10
    assert compare(Video(1, "让子弹飞"), FILM_SUBJECT, Weights(year=30)).plan_points[1] == 16, "8 of 15"
    strict = Thresholds(year_gap=1)
    assert compare(replace(FILM, year=2011), FILM_SUBJECT, thresholds=strict).rejects == (Code.YEAR_GAP,)


def test_every_edition_has_a_name_for_people():
    names = [edition_name(code) for code in sorted(DISTINCT_EDITIONS)]
    assert len(set(names)) == len(names)
    assert all(any(char > "\u4e00" for char in name) or name == "OVA" for name in names)
    assert not [name for name in names if "部分" in name], "left to the parts of a season"
    assert edition_name("part-2") == "第 2 部分"


def test_every_code_has_a_sentence_that_begins_with_its_label():
    assert set(SENTENCES) == set(Code)
    assert set(LABELS) >= HARD_REJECTS
    assert sorted(LABELS.values()) == sorted(
        ["标题冲突", "年份冲突", "地区冲突", "导演冲突", "类型冲突", "多候选接近", "锁定阻止"]
    )
    assert all(SENTENCES[code].startswith(f"{label}：") for code, label in LABELS.items())
    assert set(Code) >= HARD_REJECTS
    assert all(any(char > "\u4e00" for char in sentence) for sentence in SENTENCES.values())


def test_labels_and_codes_name_each_other():
    assert labels_of([Code.CONFLICT, Code.YEAR_GAP, Code.LEAD_TOO_SMALL]) == ("年份冲突", "多候选接近")
    assert [code_of(word) for word in ("年份冲突", " 锁定阻止 ", "YEAR_OFF", "无此标签")] == [
        "YEAR_GAP",
        "ID_LOCKED",
        "YEAR_OFF",
        "无此标签",
    ]


@given(VIDEOS, SUBJECTS)
def test_the_sums_stay_in_their_range_and_leave_the_rating_out(video, subject):
    found = compare(video, subject)
    *items, rating = found.items
    assert 0 <= found.score <= 100
    assert found.score == pytest.approx(sum(found.plan_points[:-1]), abs=0.005)
    assert found.earned == pytest.approx(sum(item.points for item in items), abs=0.005)
    pairs = zip(found.items, found.plan_points, strict=True)
    assert all(0 <= points <= item.weight for item, plan in pairs for points in (item.points, plan))
    assert (rating.name, rating.points) == ("tie_break", 0 if subject.rating is None else 2)
    assert json.dumps(found.to_json(), ensure_ascii=False)


@given(VIDEOS, SUBJECTS)
def test_a_disagreement_needs_both_sides_known(video, subject):
    found = compare(video, subject)
    for name in ("directors", "regions", "actors", "genres"):
        item = found.item({"directors": "director", "regions": "region", "genres": "genre"}.get(name, name))
        if not getattr(video, name) or not getattr(subject, name):
            assert item.outcome is ItemOutcome.UNKNOWN
