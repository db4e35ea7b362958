"""The literal score, its items, and everything that speaks against a candidate."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.matching import (
    HARD_REJECTS,
    SENTENCES,
    Code,
    Kind,
    Outcome,
    Subject,
    Thresholds,
    Video,
    Weights,
    compare,
)
from douban_pipeline.matching.similarity import NEAR_EXACT, match_titles, similarity
from douban_pipeline_tests.matching.cases import FILM, FILM_SUBJECT, SERIES, SERIES_SUBJECT


def titles(local: str, subject: str, **known):
    return match_titles(Video(1, local), Subject(1, subject, **known))


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
    assert found.score == 102 == Weights().total
    assert found.findings == ()
    assert set(found.facts) == {"year", "region", "director", "actors", "length"}


def test_unknown_fields_earn_nothing_and_accuse_nobody():
    found = compare(Video(1, "让子弹飞"), replace(FILM_SUBJECT, rating=None))
    assert found.score == 45
    assert found.rejects == found.conflicts == ()
    assert {item.outcome for item in found.items} == {Outcome.AGREE, Outcome.UNKNOWN}


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
        ({"title": "完全不同的电影"}, {}, Code.TITLE_TOO_FAR, "片名相差太远"),
        ({"year": 2013}, {}, Code.YEAR_GAP, "年份差 3 年"),
        ({"kind": Kind.SERIES}, {}, Code.KIND_CONFLICT, "本地 剧集 / 豆瓣 电影"),
        ({"kind": Kind.VARIETY}, {}, Code.KIND_CONFLICT, "本地 综艺 / 豆瓣 电影"),
        ({"regions": ("美国",)}, {}, Code.REGION_CONFLICT, "地区无交集"),
        ({"directors": ("冯小刚",)}, {}, Code.DIRECTOR_CONFLICT, "本地 冯小刚 / 豆瓣 姜文"),
    ],
)
def test_every_hard_reject(video, subject, reject, text):
    found = compare(replace(FILM, aliases=(), **video), replace(FILM_SUBJECT, **subject))
    assert found.rejects == (reject,)
    assert text in found.to_json()["notes"][reject]


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
        ({"title": "庆余年 第二季 1994版"}, {}, Code.YEAR_IN_TITLE),
        ({"kind": Kind.ANIMATION}, {}, Code.MEDIUM_CONFLICT),
        ({}, {"genres": ("动画",)}, Code.MEDIUM_CONFLICT),
        ({"actors": ("甲一", "乙二", "丙三")}, {}, Code.ACTORS_DISJOINT),
        ({"episodes": 12}, {}, Code.LENGTH_CONFLICT),
        ({"year": 2023}, {}, Code.YEAR_OFF),
    ],
)
def test_every_softer_conflict(video, subject, code):
    found = compare(replace(SERIES, **video), replace(SERIES_SUBJECT, **subject))
    assert code in found.conflicts
    assert found.rejects == ()


@pytest.mark.parametrize(
    ("local", "subject", "known", "numbers"),
    [
        ("庆余年2", "庆余年 第二季", {}, "agree"),
        ("战狼2", "战狼Ⅱ", {}, "agree"),
        (
            "哈利波特3：阿兹卡班的逃犯",
            "哈利·波特与阿兹卡班的囚徒",
            {"aliases": ("哈利波特3：阿兹卡班的逃犯(港/台)",)},
            "agree",
        ),
        ("庆余年", "庆余年", {}, "neither"),
        ("傲慢与偏见", "傲慢与偏见", {"aliases": ("傲慢与偏见2005",), "year": 2005}, "neither"),
        ("碟仙2019", "碟仙", {"year": 2019}, "neither"),
        ("歌手2024", "歌手2024", {"year": 2024}, "agree"),
        ("歌手2024", "歌手2025", {"year": 2025}, "conflict"),
        ("歌手", "歌手2024", {"year": 2024}, "one-sided"),
        ("歌手 第八季", "歌手2020", {"year": 2020}, "one-sided"),
        ("中餐厅 第九季", "中餐厅 第十季", {}, "conflict"),
        ("中餐厅", "中餐厅 第一季", {}, "one-sided"),
    ],
)
def test_numbers_of_both_sides(local, subject, known, numbers):
    assert titles(local, subject, **known).numbers == numbers


@pytest.mark.parametrize(
    ("local", "subject", "known"),
    [
        ("战狼", "战狼2", {}),
        ("战狼2", "战狼3", {}),
        ("庆余年", "庆余年 第二季", {}),
        ("中餐厅 第九季", "中餐厅 第十季", {}),
        ("红楼梦", "红楼梦之金玉良缘", {}),
        ("英雄", "英雄本色", {}),
        ("凡人修仙传", "凡人修仙传 第三季", {}),
        ("复仇者联盟3：无限战争", "复仇者联盟4：终局之战", {}),
        ("歌手2024", "歌手2025", {"year": 2025}),
        ("碟仙2019", "碟仙", {"year": 1980}),
        ("碟仙2019", "碟仙", {}),
        ("三生三世十里桃花", "十里桃花后传", {}),
        ("路人女主的养成方法♭", "路人女主的养成方法 Fine", {}),
    ],
)
def test_other_works_are_never_near_exact(local, subject, known):
    assert not titles(local, subject, **known).near_exact


@pytest.mark.parametrize(
    ("local", "subject", "known"),
    [
        ("戰狼2", "战狼Ⅱ", {}),
        ("庆余年第2季 更新至12集", "庆余年 第二季", {}),
        ("寻梦环游记 Coco", "寻梦环游记", {"original_title": "Coco"}),
        ("全面启动", "盗梦空间", {"aliases": ("全面启动(台)",)}),
        ("計程車司機", "出租车司机", {}),
        ("2019年惊悚《铤而走险》BD", "铤而走险", {}),
        ("碟仙2019", "碟仙", {"year": 2019}),
        ("Third Man, The", "第三人", {"original_title": "The Third Man"}),
        ("《调音师/调琴师》", "调琴师", {}),
    ],
)
def test_same_works_are_near_exact(local, subject, known):
    assert titles(local, subject, **known).near_exact


def test_a_title_is_preferred_to_an_alias():
    assert not titles("英雄", "英雄", aliases=("英雄",)).via_alias
    assert titles("全面启动", "盗梦空间", aliases=("全面启动",)).via_alias


def test_the_shorter_original_of_one_script_counts_as_an_alias():
    found = titles("赛德克·巴莱", "赛德克·巴莱(下)：彩虹桥", original_title="賽德克·巴萊")
    assert found.via_alias
    assert found.editions_subject == {"lower"}


def test_a_kind_says_what_an_edition_says():
    video = Video(1, "名侦探柯南 剧场版", kind=Kind.FILM)
    assert match_titles(video, Subject(1, "名侦探柯南", kind=Kind.FILM)).editions_local == frozenset()
    assert match_titles(video, Subject(1, "名侦探柯南", kind=Kind.SERIES)).editions_local == {"movie"}


@given(st.text("战狼英雄本色二2三", min_size=1, max_size=8), st.text("战狼英雄本色二2三", min_size=1, max_size=8))
def test_similarity_is_symmetric_and_containment_alone_is_never_near_exact(a, b):
    value = similarity(a, b)
    assert value == pytest.approx(similarity(b, a))
    assert 0 <= value <= 1
    if a != b and (a in b or b in a):
        assert value < NEAR_EXACT


@pytest.mark.parametrize(
    ("mine", "theirs", "points", "outcome"),
    [
        (("甲一", "乙二", "丙三"), ("甲一", "乙二", "丙三", "丁四"), 8, "agree"),
        (("甲一", "乙二"), ("甲一", "乙二", "丙三"), 8, "agree"),
        (("甲一", "己六", "庚七"), ("甲一", "乙二", "丙三"), 8 / 3, "unknown"),
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
    strict = Thresholds(year_gap=1)
    assert compare(replace(FILM, year=2011), FILM_SUBJECT, thresholds=strict).rejects == (Code.YEAR_GAP,)


def test_items_are_asked_for_by_name():
    with pytest.raises(KeyError):
        compare(FILM, FILM_SUBJECT).item("colour")


def test_a_comparison_is_stored_as_json():
    stored = json.loads(
        json.dumps(compare(SERIES, replace(SERIES_SUBJECT, title="庆余年 第三季", aliases=())).to_json())
    )
    assert stored["score"] == round(sum(item["points"] for item in stored["items"]), 2)
    assert stored["conflicts"] == ["SEASON_CONFLICT"]
    assert stored["notes"]["SEASON_CONFLICT"] == "季数不一致：本地第 2 季 / 豆瓣第 3 季"


def test_every_code_has_a_sentence():
    assert set(SENTENCES) == set(Code)
    assert set(Code) >= HARD_REJECTS


WORDS = st.sampled_from(["战狼", "战狼2", "英雄", "庆余年 第二季", "2046", "歌手2024", "碟仙2019", "？？", "A", ""])
NAMES = st.lists(st.sampled_from(["姜文", "李安", "让-吕克·戈达尔", "Ang Lee", "岩井俊二"]), max_size=4).map(tuple)
KNOWN = {
    "title": WORDS,
    "aliases": st.lists(WORDS, max_size=2).map(tuple),
    "year": st.none() | st.integers(1900, 2030),
    "kind": st.none() | st.sampled_from(Kind),
    "regions": st.lists(st.sampled_from(["大陆", "香港", "美国", "其它", "欧美", "火星"]), max_size=3).map(tuple),
    "directors": NAMES,
    "actors": NAMES,
    "genres": st.lists(st.sampled_from(["剧情", "动作片", "动漫", "国产"]), max_size=3).map(tuple),
    "duration_minutes": st.none() | st.integers(1, 300),
    "episodes": st.none() | st.integers(1, 100),
}
VIDEOS = st.builds(Video, vod_id=st.just(1), **KNOWN)
SUBJECTS = st.builds(
    Subject,
    douban_id=st.integers(1, 9),
    original_title=WORDS,
    release_years=st.lists(st.integers(1900, 2030), max_size=2).map(tuple),
    rating=st.none() | st.floats(0, 10),
    **KNOWN,
)


@given(VIDEOS, SUBJECTS)
def test_the_score_stays_in_its_range_and_is_the_sum_of_its_items(video, subject):
    found = compare(video, subject)
    assert 0 <= found.score <= 102
    assert all(0 <= item.points <= item.weight for item in found.items)
    assert json.dumps(found.to_json(), ensure_ascii=False)


@given(VIDEOS, SUBJECTS)
def test_a_disagreement_needs_both_sides_known(video, subject):
    found = compare(video, subject)
    for name in ("directors", "regions", "actors", "genres"):
        item = found.item({"directors": "director", "regions": "region", "genres": "genre"}.get(name, name))
        if not getattr(video, name) or not getattr(subject, name):
            assert item.outcome is Outcome.UNKNOWN
