"""Names that are almost the same: another part of the year is another work, a mistyped letter is not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.matching import Code, Kind, Status, Subject, Verdict, Video, judge, make_profile
from douban_pipeline.matching.strata import opening_of
from douban_pipeline.matching.subtitles import is_misspelt
from douban_pipeline.matching.titles import parse_title

PEOPLE = {"year": 2016, "directors": ("王昕",), "actors": ("杨天翔", "刘校妤", "小林裕介")}
NAMES = st.text(st.sampled_from("春秋红白男女他她天翔上下里理莉的之：2aAé "), max_size=8)


def verdict(title: str, candidate: str, *others: str, names: tuple[str, ...] = (), **known: Any) -> Verdict:
    """Judge a video against a candidate of its year and with its people, where its own entry was not found."""
    video = Video(1, title, aliases=names, kind=Kind.SERIES, **PEOPLE)
    found = [Subject(2, candidate, kind=Kind.SERIES, **PEOPLE, **known)]
    found += [Subject(place, other, kind=Kind.SERIES, **PEOPLE) for place, other in enumerate(others, start=3)]
    return judge(video, found, profile=make_profile("calibrated"))


@pytest.mark.parametrize(
    ("title", "candidate"),
    [
        ("狐妖小红娘 尾生篇", "狐妖小红娘 竹业篇"),
        ("狐妖小红娘 月红篇", "狐妖小红娘 千颜篇"),
        ("Re：从零开始的异世界生活 第四季 夺还篇", "Re：从零开始的异世界生活 第四季 丧失篇"),
        ("咒术回战 死灭回游 后篇", "咒术回战 死灭回游 前篇"),
        ("蓝白红三部曲之白", "蓝白红三部曲之红"),
        ("攻壳机动队SSS", "攻壳机动队SAC"),
        ("火线追凶之死亡地带", "火线追凶之突然死亡"),
        ("超兽武装之勇者无惧", "超兽武装之仁者无敌"),
        ("SPEC：天", "SPEC：翔"),
        ("四叠半神话大系：恋爱与垂钓之地面潜航艇", "四叠半神话大系：地面潜航艇，前往南极"),
        ("花牌情缘 上之句", "花牌情缘 下之句"),
        ("行骗天下JP：浪漫篇", "行骗天下JP：运势篇"),
        ("辅佐官2：改变世界的人们", "辅佐官：改变世界的人们"),
        ("辅佐官：改变世界的人们", "辅佐官2：改变世界的人们"),
        ("无头骑士异闻录 第二季：转", "无头骑士异闻录 第二季：承"),
        ("他和她的孤独情事：他", "他和她的孤独情事：她"),
        ("灯塔来信：她的夏天", "灯塔来信：他的夏天"),
        ("灯塔来信：我的父亲", "灯塔来信：我的母亲"),
        ("寄往灯塔的红玫瑰", "寄往灯塔的白玫瑰"),
        ("灯塔守夜人前传", "灯塔守夜人传"),
        ("新灯塔上的守夜人们", "灯塔上的守夜人们"),
        ("The Lighthouse Letters: Summer", "The Lighthouse Letters: Simmer"),
        ("在很久很久以前的那座海边灯塔上守夜的男孩", "在很久很久以前的那座海边灯塔上守夜的女孩"),
    ],
)
def test_another_part_of_the_year_with_the_same_people_is_a_question(title: str, candidate: str) -> None:
    assert verdict(title, candidate).status is Status.REVIEW


@pytest.mark.parametrize("part", ["竹业篇", "之竹业", "：竹"])
def test_no_person_opens_a_stratum_of_other_parts(part: str) -> None:
    opened = verdict("狐妖小红娘" + part.replace("竹", "月").replace("业", "红"), f"狐妖小红娘{part}")
    assert (Code.PART_DIFFERS in opened.codes, opening_of(opened.codes)) == (True, "")


@pytest.mark.parametrize(
    ("title", "candidate"),
    [
        ("全城热恋热辣辣", "全城热恋热辣拉"),
        ("九品芝麻官之白面包靑天", "九品芝麻官之白面包青天"),
        ("牒血街头", "喋血街头"),
        ("狗脸岁月", "狗脸的岁月"),
        ("一本漫画天涯", "一本漫画闯天涯"),
        ("My Neighbour Totoro", "My Neighbor Totoro"),
    ],
)
def test_a_mistyped_letter_is_the_same_name(title: str, candidate: str) -> None:
    assert verdict(title, candidate).status is Status.CONFIRMED
    assert verdict(candidate, title).status is Status.CONFIRMED


def test_a_sibling_among_the_candidates_makes_a_mistyped_letter_doubtful() -> None:
    assert verdict("狐妖小红娘 尾声篇", "狐妖小红娘 尾生篇").status is Status.CONFIRMED
    assert verdict("狐妖小红娘 尾声篇", "狐妖小红娘 尾生篇", "狐妖小红娘 竹业篇").status is Status.REVIEW


SEASON = "Re：从零开始的异世界生活 第四季"
ORIGINAL = "Re:ゼロから始める異世界生活 4th season"


@pytest.mark.parametrize(
    ("title", "candidate", "common", "known"),
    [
        (f"{SEASON} 夺还篇", f"{SEASON} 丧失篇", SEASON, {"aliases": (SEASON,)}),
        (f"{SEASON} 夺还篇", f"{SEASON} 丧失篇", ORIGINAL, {"original_title": ORIGINAL}),
        ("花牌情缘 上之句", "花牌情缘 下之句", "ちはやふる", {"original_title": "ちはやふる"}),
        ("灯塔守夜人 男生的夏天篇", "灯塔守夜人 女生的夏天篇", "灯塔守夜人", {"aliases": ("灯塔守夜人",)}),
        ("灯塔守夜人黄昏", "灯塔守夜人黎明", "灯塔守夜人", {"aliases": ("灯塔守夜人",)}),
    ],
)
def test_the_name_of_the_whole_makes_no_part_another(title: str, candidate: str, common: str, known: dict) -> None:
    found = verdict(title, candidate, names=(common,), **known)
    assert (found.status, found.codes) == (Status.REVIEW, (Code.PART_DIFFERS,))
    # A title that says nothing of parts is the work by any of its names.
    assert verdict("守夜", candidate, names=(common,), **known).status is Status.CONFIRMED


@given(NAMES, NAMES)
def test_a_mistyped_letter_is_one_from_either_side_and_no_name_is_its_own_mistake(one: str, other: str) -> None:
    mine, theirs = parse_title(one), parse_title(other)
    assert is_misspelt(mine, theirs) == is_misspelt(theirs, mine)
    assert not is_misspelt(mine, mine)


@given(NAMES, st.sampled_from("春秋红白天翔她里"), st.sampled_from("冬东虹百添香他理"))
def test_a_part_of_one_letter_is_never_mistyped(name: str, one: str, other: str) -> None:
    assert not is_misspelt(parse_title(f"{name}灯塔：{one}"), parse_title(f"{name}灯塔：{other}"))
