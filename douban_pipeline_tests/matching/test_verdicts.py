"""Verdicts, every condition of the acceptance gate failing once, the guard, and the queries."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.matching import (
    Code,
    Kind,
    Status,
    Subject,
    Thresholds,
    Video,
    judge,
    search_queries,
    suggest_queries,
    violations,
)
from douban_pipeline.matching import guard as guards
from douban_pipeline.matching.acceptance import Case, refusals
from douban_pipeline.matching.scoring import compare
from douban_pipeline_tests.matching.cases import FILM, FILM_SUBJECT, SERIES, SERIES_SUBJECT
from douban_pipeline_tests.matching.test_scoring import SUBJECTS, VIDEOS

OTHER = Subject(99, "让子弹飞一会儿", year=2010, kind=Kind.FILM)


def test_a_perfect_candidate_is_confirmed():
    verdict = judge(FILM, [OTHER, FILM_SUBJECT])
    assert verdict.status is Status.CONFIRMED
    assert verdict.douban_id == FILM_SUBJECT.douban_id
    assert verdict.codes == ()
    assert verdict.lead >= 8
    assert [candidate.rank for candidate in verdict.candidates] == [1, 2]
    assert "导演" in verdict.explanation
    assert "得分 102.0" in verdict.explanation


def test_a_season_is_confirmed_beside_its_sisters():
    sister = replace(SERIES_SUBJECT, douban_id=5, title="庆余年 第一季", aliases=("庆余年",), year=2019, episodes=46)
    verdict = judge(SERIES, [sister, SERIES_SUBJECT])
    assert (verdict.status, verdict.douban_id) == (Status.CONFIRMED, SERIES_SUBJECT.douban_id)


@pytest.mark.parametrize(
    ("video", "subject", "options", "code"),
    [
        ({"title": "庆余年 第三季", "year": 2024}, {}, {}, Code.SEASON_CONFLICT),
        ({"title": "庆余年"}, {"title": "庆余年 第一季", "aliases": ("庆余年",)}, {}, Code.SEASON_ONE_SIDED),
        ({"title": "庆余年 第二季 纯享版"}, {}, {}, Code.EDITION_CONFLICT),
        ({"kind": Kind.ANIMATION}, {}, {}, Code.MEDIUM_CONFLICT),
        ({"year": 2026}, {"release_years": (2024, 2026), "year": 2020}, {}, Code.YEAR_OF_RELEASE),
        ({"title": "庆余年 第二季(1994)"}, {}, {}, Code.YEAR_IN_TITLE),
        ({"actors": ("甲一", "乙二", "丙三"), "directors": ()}, {}, {}, Code.ACTORS_DISJOINT),
        ({"episodes": 12}, {}, {}, Code.LENGTH_CONFLICT),
        ({"title": "庆余年传 第二季"}, {}, {}, Code.TITLE_NOT_EXACT),
        ({"title": "范闲传", "directors": ()}, {"aliases": ("范闲传",), "title": "庆余年"}, {}, Code.ALIAS_UNBACKED),
        ({"year": None, "directors": ()}, {}, {}, Code.YEAR_UNCONFIRMED),
        ({"regions": (), "actors": (), "episodes": None, "directors": ()}, {}, {}, Code.TOO_FEW_FACTS),
        ({"directors": (), "actors": (), "episodes": None}, {}, {}, Code.UNCORROBORATED),
        ({}, {}, {"complete": False}, Code.INCOMPLETE),
        ({}, {}, {"reverted": frozenset({SERIES_SUBJECT.douban_id})}, Code.REVERTED_BEFORE),
    ],
)
def test_every_condition_of_the_gate_fails_once(video, subject, options, code):
    lax = Thresholds(confirm=40.0, review=30.0)
    before = judge(SERIES, [SERIES_SUBJECT], thresholds=lax)
    assert before.status is Status.CONFIRMED
    verdict = judge(replace(SERIES, **video), [replace(SERIES_SUBJECT, **subject)], thresholds=lax, **options)
    assert verdict.status is Status.REVIEW
    assert code in verdict.codes
    assert verdict.douban_id is None


def test_marks_alone_matter_beside_a_rival():
    video = replace(SERIES, title="工作细胞！！")
    one = replace(SERIES_SUBJECT, title="工作细胞", aliases=())
    assert judge(video, [one]).status is Status.CONFIRMED
    rival = Subject(7, "工作细胞？")
    assert Code.MARKS_DIFFER in judge(video, [one, rival]).codes


def test_a_kind_conflict_is_refused_by_the_gate_too():
    found = compare(replace(FILM, kind=Kind.SERIES), FILM_SUBJECT)
    assert Code.KIND_CONFLICT in refusals(Case(FILM, FILM_SUBJECT, found))


@pytest.mark.parametrize(
    ("title", "rivals", "siblings", "code"),
    [
        ("琅琊榜", [], False, True),
        ("白夜追凶", [], False, False),
        ("白夜追凶", [], True, True),
        ("白夜追凶", [Subject(7, "白夜追凶")], False, True),
        ("白夜追凶", [Subject(7, "白夜追凶2")], False, True),
        ("白夜追凶", [Subject(7, "白夜追凶之破晓")], False, True),
        ("白夜追凶", [Subject(7, "白日焰火")], False, False),
    ],
)
def test_short_names_and_families_need_corroboration(title, rivals, siblings, code):
    lax = Thresholds(confirm=60.0, review=30.0)
    video = Video(1, title, year=2017, regions=("大陆",))
    subject = Subject(5, title, year=2017, regions=("中国大陆",))
    verdict = judge(video, [subject, *rivals], thresholds=lax, has_siblings=siblings)
    assert (Code.UNCORROBORATED in verdict.codes) is code
    backed = judge(
        replace(video, directors=("孔笙",)),
        [replace(subject, directors=("孔笙",)), *rivals],
        thresholds=lax,
        has_siblings=siblings,
    )
    assert backed.status is Status.CONFIRMED


def test_a_small_lead_goes_to_a_person():
    twin = replace(FILM_SUBJECT, douban_id=4)
    verdict = judge(FILM, [FILM_SUBJECT, twin])
    assert verdict.status is Status.REVIEW
    assert verdict.codes[0] == Code.LEAD_TOO_SMALL
    assert verdict.lead == 0


def test_one_subject_given_twice_is_no_rival():
    verdict = judge(FILM, [FILM_SUBJECT, FILM_SUBJECT])
    assert (verdict.status, verdict.lead, len(verdict.candidates)) == (Status.CONFIRMED, None, 1)


def test_rejected_rivals_do_not_take_the_lead_unless_name_and_year_are_exact():
    remake = replace(FILM_SUBJECT, douban_id=4, year=1990, release_years=())
    assert judge(FILM, [FILM_SUBJECT, remake]).lead is None
    series = replace(FILM_SUBJECT, douban_id=4, kind=Kind.SERIES)
    assert judge(FILM, [FILM_SUBJECT, series]).codes == (Code.LEAD_TOO_SMALL,)


@pytest.mark.parametrize("score", ["under", "over"])
def test_the_middle_goes_to_review(score):
    video = replace(FILM, directors=(), actors=(), duration_minutes=None, genres=())
    subject = FILM_SUBJECT if score == "over" else replace(FILM_SUBJECT, regions=())
    verdict = judge(video, [subject])
    assert verdict.status is (Status.REVIEW if score == "over" else Status.NOT_FOUND)
    assert verdict.codes == ((Code.BELOW_CONFIRM,) if score == "over" else (Code.BELOW_REVIEW,))


def test_not_found_carries_its_reason():
    assert judge(FILM, []).codes == (Code.NO_CANDIDATES,)
    wrong = replace(FILM_SUBJECT, year=1990, release_years=(), directors=("冯小刚",))
    verdict = judge(FILM, [wrong])
    assert verdict.status is Status.NOT_FOUND
    assert verdict.codes == (Code.ALL_REJECTED, Code.YEAR_GAP, Code.DIRECTOR_CONFLICT)
    assert "年份差 20 年" in verdict.explanation


def test_exact_name_and_year_with_a_conflict_goes_to_a_person():
    verdict = judge(FILM, [replace(FILM_SUBJECT, directors=("冯小刚",))])
    assert verdict.status is Status.REVIEW
    assert verdict.codes == (Code.CONFLICT, Code.DIRECTOR_CONFLICT)
    assert "导演无交集" in verdict.explanation
    assert verdict.douban_id is None


def test_an_ill_source_yields_no_verdict():
    for subjects in ([], [FILM_SUBJECT]):
        verdict = judge(FILM, subjects, source_healthy=False)
        assert (verdict.status, verdict.douban_id) == (Status.UNDECIDED, None)
        assert verdict.codes == (Code.SOURCE_DEGRADED,)


def test_a_failed_call_is_not_an_empty_answer():
    assert judge(FILM, [], complete=False).status is Status.UNDECIDED
    assert judge(FILM, [OTHER], complete=False).status is Status.UNDECIDED


def test_the_right_subject_missing_does_not_make_its_neighbour_right():
    first = replace(SERIES_SUBJECT, douban_id=5, title="庆余年 第一季", aliases=("庆余年",), year=2023, episodes=None)
    assert judge(SERIES, [first]).status is not Status.CONFIRMED
    war_wolf = replace(FILM_SUBJECT, title="战狼", original_title="", aliases=(), year=2015, release_years=())
    sequel = replace(FILM, title="战狼2", aliases=(), year=2017)
    assert judge(sequel, [war_wolf]).status is not Status.CONFIRMED


def test_a_year_in_the_title_is_the_year():
    video = Video(1, "碟仙2019", kind=Kind.FILM)
    assert judge(video, [Subject(3, "碟仙", year=1980, kind=Kind.FILM)]).status is Status.NOT_FOUND
    bracketed = judge(Video(1, "2019年惊悚《碟仙》BD"), [Subject(3, "碟仙", year=1980)])
    assert bracketed.codes == (Code.ALL_REJECTED, Code.YEAR_GAP)


def test_order_of_the_candidates_does_not_matter():
    subjects = [FILM_SUBJECT, OTHER, replace(FILM_SUBJECT, douban_id=4, year=1990, release_years=())]
    assert judge(FILM, subjects).to_json() == judge(FILM, subjects[::-1]).to_json()


def test_a_verdict_is_stored_as_json():
    stored = json.loads(json.dumps(judge(FILM, [FILM_SUBJECT, OTHER]).to_json()))
    assert stored["status"] == "CONFIRMED"
    assert stored["candidates"][0]["douban_id"] == FILM_SUBJECT.douban_id
    assert len(stored["candidates"][0]["items"]) == 8


@given(VIDEOS, st.lists(SUBJECTS, max_size=4), st.booleans(), st.booleans())
def test_a_confirmation_keeps_every_rule(video, subjects, complete, healthy):
    verdict = judge(video, subjects, complete=complete, source_healthy=healthy)
    assert (verdict.douban_id is not None) is (verdict.status is Status.CONFIRMED)
    assert bool(verdict.codes) is (verdict.status is not Status.CONFIRMED)
    assert verdict.explanation
    if verdict.status is Status.CONFIRMED:
        assert not violations(
            verdict=verdict.status,
            score=verdict.score,
            lead=verdict.lead,
            rejects=verdict.best.comparison.rejects,
            complete=complete,
            source_healthy=healthy,
            locked=False,
            ignored=False,
            thresholds=Thresholds(),
        )


CHANGES = st.sampled_from(
    [{"year": 1950}, {"kind": Kind.SERIES}, {"regions": ("美国",)}, {"directors": ("冯小刚",)}, {"title": "无关"}]
)


@given(CHANGES, st.booleans())
def test_adding_a_reject_never_confirms(change, complete):
    verdict = judge(replace(FILM, aliases=(), **change), [FILM_SUBJECT], complete=complete)
    assert verdict.candidates[0].comparison.rejects
    assert verdict.status is not Status.CONFIRMED


@given(VIDEOS, st.lists(SUBJECTS, max_size=3), st.frozensets(st.integers(1, 9)), st.booleans())
def test_the_gate_only_makes_stricter(video, subjects, reverted, has_siblings):
    free = judge(video, subjects)
    bound = judge(video, subjects, complete=False, reverted=reverted, has_siblings=has_siblings)
    assert bound.status is not Status.CONFIRMED
    if judge(video, subjects, reverted=reverted, has_siblings=has_siblings).status is Status.CONFIRMED:
        assert free.status is Status.CONFIRMED


SOUND = {
    "verdict": "CONFIRMED",
    "score": 90.0,
    "lead": 10.0,
    "rejects": (),
    "complete": True,
    "source_healthy": True,
    "locked": False,
    "ignored": False,
    "thresholds": Thresholds(),
}


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        ({}, ()),
        ({"score": 85.0, "lead": 8.0}, ()),
        ({"lead": None}, ()),
        ({"rejects": ("YEAR_GAP",)}, (guards.HARD_REJECT,)),
        ({"score": 84.99}, (guards.SCORE_UNDER_THRESHOLD,)),
        ({"score": None}, (guards.SCORE_UNDER_THRESHOLD,)),
        ({"score": math.nan}, (guards.SCORE_UNDER_THRESHOLD,)),
        ({"lead": 7.99}, (guards.LEAD_UNDER_THRESHOLD,)),
        ({"lead": -3.0}, (guards.LEAD_UNDER_THRESHOLD,)),
        ({"complete": False}, (guards.SOURCE_DEGRADED,)),
        ({"source_healthy": False}, (guards.SOURCE_DEGRADED,)),
        ({"locked": True}, (guards.LOCKED,)),
        ({"ignored": True}, (guards.IGNORED,)),
        ({"locked": True, "score": 1.0}, (guards.SCORE_UNDER_THRESHOLD, guards.LOCKED)),
        ({"thresholds": Thresholds(confirm=95.0)}, (guards.SCORE_UNDER_THRESHOLD,)),
    ],
)
def test_the_guard_names_every_broken_rule(change, broken):
    assert violations(**{**SOUND, **change}) == broken
    assert set(broken) <= set(guards.SENTENCES)


@given(
    st.sampled_from(["REVIEW", "NOT_FOUND", "UNDECIDED", "IGNORED", ""]),
    st.none() | st.floats(),
    st.booleans(),
    st.booleans(),
)
def test_the_guard_has_nothing_to_say_of_other_verdicts(verdict, score, locked, healthy):
    assert (
        violations(**{**SOUND, "verdict": verdict, "score": score, "locked": locked, "source_healthy": healthy}) == ()
    )


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
        (Video(1, "計程車司機"), ("计程车司机", "出租车司机", "計程車司機")),
        (Video(1, "盗梦空间", aliases=("Inception",)), ("盗梦空间", "Inception")),
        (Video(1, "碟仙2019"), ("碟仙2019", "碟仙")),
    ],
)
def test_suggest_queries(video, expected):
    assert suggest_queries(video) == expected
