"""What TMDB may add to a video: further names, and people or a year where the site has none; never against its word."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest

from douban_pipeline.douban.evidence.added_facts import (
    EVIDENCE,
    MOST_ACTORS,
    MOST_ALIASES,
    Added,
    TitleFacts,
    add_evidence,
    judge_with_evidence,
    stored_facts,
    with_added,
    without_added,
)
from douban_pipeline.douban.store.verdict_facts import video_of
from douban_pipeline.matching import Kind, Status, Subject, Video, judge
from douban_pipeline.matching.profiles import make_profile

FILM = TitleFacts(
    "movie/7", ("蓝鲸与灯塔守望者", "The Whale Keeper"), 2022, ("蓝鲸导",), ("蓝鲸甲", "蓝鲸乙", "蓝鲸丙"), "tt0000007"
)
SERIES = TitleFacts("tv/8", ("雪线以上的村庄", "Above the Snow"), 2015, seasons={1: 2015, 2: 2018})
BARE = Video(1, "The Whale Keeper")
PROFILE = make_profile("calibrated")


def added_to(video, facts=FILM):
    return add_evidence(video, facts)[1]


@pytest.mark.parametrize(
    ("video", "facts", "names"),
    [
        (BARE, FILM, ("蓝鲸与灯塔守望者",)),
        (replace(BARE, aliases=("蓝鲸与灯塔守望者",)), FILM, ()),
        (Video(1, "藍鯨與燈塔守望者"), FILM, ("The Whale Keeper",)),
        (Video(1, "The Whale Keeper 2"), FILM, ()),
        (BARE, replace(FILM, names=("蓝鲸与灯塔守望者2", BARE.title)), ()),
        (BARE, replace(FILM, names=("蓝鲸与灯塔守望者 导演剪辑版 OVA", BARE.title)), ()),
        (BARE, replace(FILM, names=("蓝鲸2022", BARE.title)), ()),
        (BARE, replace(FILM, names=(BARE.title, "蓝鲸", "鲸", "Abc", "クジラ", "고래의 밤", "Кит")), ("蓝鲸",)),
        (Video(1, "The Whale Keeper 合集"), FILM, ()),
        (Video(1, "Above the Snow 第二季"), SERIES, ("雪线以上的村庄 第2季",)),
        (Video(1, "Above the Snow 第三季"), SERIES, ()),
        (Video(1, "Above the Snow"), SERIES, ("雪线以上的村庄",)),
    ],
)
def test_names_are_added_that_say_of_numbers_and_editions_what_the_title_says(video, facts, names):
    added = added_to(video, facts)
    assert (added.aliases if added else ()) == names


def test_names_and_actors_have_a_limit():
    many = replace(
        FILM,
        names=(BARE.title, *(f"蓝鲸{each}夜" for each in "甲乙丙丁戊己庚辛")),
        actors=tuple("甲乙丙丁戊己庚辛壬癸子丑"),
    )
    added = added_to(BARE, many)
    assert (len(added.aliases), len(added.actors)) == (MOST_ALIASES, MOST_ACTORS)


@pytest.mark.parametrize(
    ("video", "directors", "actors"),
    [
        (BARE, FILM.directors, FILM.actors),
        (replace(BARE, directors=("别人",)), (), ()),
        (replace(BARE, actors=("别人",)), (), ()),
    ],
)
def test_people_are_added_where_the_site_names_nobody(video, directors, actors):
    added = added_to(video)
    assert (added.directors, added.actors) == (directors, actors)


@pytest.mark.parametrize(
    ("video", "facts", "year"),
    [
        (BARE, FILM, 2022),
        (replace(BARE, year=2022), FILM, None),
        (replace(BARE, year=2021), FILM, None),
        (replace(BARE, title="The Whale Keeper (2021)"), FILM, None),
        (replace(BARE, aliases=("灯塔 (2021)",)), FILM, None),
        (Video(1, "Above the Snow"), SERIES, None),
        (Video(1, "Above the Snow 第二季"), SERIES, 2018),
        (Video(1, "Above the Snow"), replace(SERIES, seasons={1: 2015}), 2015),
    ],
)
def test_a_year_is_added_where_the_site_states_none(video, facts, year):
    assert added_to(video, facts).year == year


@pytest.mark.parametrize(
    ("video", "facts"),
    [
        (replace(BARE, year=2010), FILM),
        (replace(BARE, kind=Kind.SERIES), FILM),
        (replace(BARE, kind=Kind.VARIETY), FILM),
        (Video(1, "Above the Snow", kind=Kind.FILM), SERIES),
        (BARE, TitleFacts("movie/7", ("The Whale Keeper",))),
        (replace(BARE, title="The Whale Keepers"), FILM),
    ],
)
def test_nothing_is_added_where_the_site_says_otherwise_or_nothing_is_new(video, facts):
    assert add_evidence(video, facts) == (video, None)


def test_what_was_added_can_be_stored_read_added_again_and_taken_away():
    video, added = add_evidence(BARE, FILM)
    facts = stored_facts(video, added)
    assert video_of(facts) == video
    assert Added.of_facts(facts) == added
    assert without_added(video, added) == BARE
    assert with_added(BARE, added) == video
    assert with_added(replace(BARE, year=2001, actors=("别人",)), added).year == 2001
    assert EVIDENCE not in stored_facts(BARE, None)
    assert Added.of_facts(stored_facts(BARE, None)) is None
    assert added.sentence == "（参考 TMDB movie/7，IMDb tt0000007：别名、年份、导演、主演）"
    assert added.shown["主演"] == ["蓝鲸甲", "蓝鲸乙", "蓝鲸丙"]


def test_what_is_left_of_expired_facts_says_what_there_was_and_adds_nothing():
    video, added = add_evidence(BARE, replace(FILM, said_at=datetime(2026, 11, 1, tzinfo=UTC)))
    assert added.said_at == "2026-11-01T00:00:00+00:00"
    left = added.left()
    assert (left.sentence, left.shown, with_added(BARE, left)) == (added.sentence, {}, BARE)
    facts = stored_facts(BARE, left)
    assert Added.of_facts(facts) == left
    assert EVIDENCE not in facts
    assert not any(name in str(facts) for name in ("蓝鲸", "2022", "2026"))
    assert added.left().left() == left
    assert video != BARE


def test_no_text_repeats_what_tmdb_says():
    other = Subject(5, "蓝鲸与灯塔守望者", year=1999, directors=("别人",), actors=("子", "丑", "寅"))
    video, added = add_evidence(BARE, FILM)
    judged = partial(judge, subjects=[other], profile=PROFILE)
    assert any(name in judged(video).explanation for name in ("蓝鲸导", "蓝鲸甲")), "the matcher's own text does"
    verdict = judge_with_evidence(video, added, judged, PROFILE)
    notes = [item.note for item in verdict.best.items] + [each.text for each in verdict.best.comparison.findings]
    for text in (verdict.explanation, *map(added.without_values, notes)):
        assert not any(name in text for name in ("本地《蓝鲸", "蓝鲸导", "蓝鲸甲", "2022")), text
    assert "TMDB 的资料 / 豆瓣 别人" in verdict.explanation


WHALE = Subject(
    90,
    "蓝鲸与灯塔守望者",
    year=2022,
    kind=Kind.FILM,
    regions=("中国大陆",),
    directors=FILM.directors,
    actors=FILM.actors,
    genres=("剧情",),
    duration_minutes=118,
)


@pytest.mark.parametrize(
    ("site", "status", "code"),
    [
        ({}, Status.CONFIRMED, ""),
        ({"regions": ("美国",)}, Status.REVIEW, "REGION_CONFLICT"),
        ({"duration_minutes": 45}, Status.REVIEW, "LENGTH_CONFLICT"),
        ({"year": 2021}, Status.REVIEW, "YEAR_OFF"),
        ({"kind": Kind.ANIMATION, "genres": ("动画",)}, Status.REVIEW, "MEDIUM_CONFLICT"),
    ],
)
def test_what_the_site_says_against_a_subject_is_not_outweighed(site, status, code):
    video, added = add_evidence(replace(BARE, **{"kind": Kind.FILM, "year": 2022, **site}), FILM)
    verdict = judge_with_evidence(video, added, partial(judge, subjects=[WHALE], profile=PROFILE), PROFILE)
    assert verdict.status is status
    assert (verdict.douban_id == 90) is (status is Status.CONFIRMED)
    assert not code or code in verdict.codes


SNOW = Subject(80, "雪线以上的村庄 第一季", year=2015, kind=Kind.SERIES, regions=("中国大陆",), actors=("雪甲", "雪乙"))
LATER = replace(SNOW, douban_id=81, title="雪线以上的村庄 第二季", year=2018)


@pytest.mark.parametrize(
    ("title", "facts"),
    [
        ("雪线以上的村庄", SERIES),
        ("雪线以上的村庄", replace(SERIES, seasons={1: 2015})),
        ("雪线以上的村庄 第一季", SERIES),
    ],
)
def test_a_first_season_that_the_site_confirms_stays_confirmed(title, facts):
    site = Video(1, title, year=2015, kind=Kind.SERIES, actors=SNOW.actors)
    judged = partial(judge, subjects=[SNOW, LATER], profile=PROFILE)
    assert judged(site).douban_id == SNOW.douban_id
    video, added = add_evidence(site, facts)
    assert added is not None
    assert judge_with_evidence(video, added, judged, PROFILE).douban_id == SNOW.douban_id


OTHER = replace(WHALE, douban_id=91, title="另一头鲸")


@pytest.mark.parametrize(
    ("alone", "together", "linked"),
    [
        ((Status.CONFIRMED, WHALE), (Status.CONFIRMED, WHALE), 90),
        ((Status.CONFIRMED, WHALE), (Status.REVIEW, WHALE), 90),
        ((Status.CONFIRMED, WHALE), (Status.NOT_FOUND, None), 90),
        ((Status.CONFIRMED, WHALE), (Status.CONFIRMED, OTHER), None),
        ((Status.CONFIRMED, WHALE), (Status.REVIEW, OTHER), None),
        ((Status.REVIEW, WHALE), (Status.REVIEW, WHALE), None),
    ],
)
def test_what_the_site_confirms_stays_unless_the_evidence_names_another_subject(alone, together, linked):
    video, added = add_evidence(replace(BARE, kind=Kind.FILM), FILM)
    verdicts = {video: made(*together), without_added(video, added): made(*alone)}
    verdict = judge_with_evidence(video, added, verdicts.__getitem__, PROFILE)
    assert verdict.douban_id == linked
    assert verdict.status is (Status.CONFIRMED if linked else Status.REVIEW)
    if together[1] is OTHER:
        assert "指向 蓝鲸与灯塔守望者（90），加上 TMDB 的资料则更像 另一头鲸（91）" in verdict.explanation


def made(status, subject):
    """Return a verdict on a subject, as if judged."""
    subjects = [subject] if subject else []
    verdict = judge(Video(1, subject.title if subject else ""), subjects, profile=PROFILE)
    return replace(verdict, status=status, douban_id=subject.douban_id if status is Status.CONFIRMED else None)
