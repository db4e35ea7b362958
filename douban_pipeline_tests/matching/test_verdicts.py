"""Verdicts: which subject it is, who has to look, and that nothing fits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.matching import (
    PROFILES,
    Code,
    Kind,
    Status,
    Subject,
    Thresholds,
    Video,
    judge,
    make_profile,
    rank,
    violations,
)
from douban_pipeline.matching.acceptance import refusals
from douban_pipeline.matching.case import Case
from douban_pipeline_tests.matching.cases import FILM, FILM_SUBJECT, SERIES, SERIES_SUBJECT, THIN, THIN_SUBJECT
from douban_pipeline_tests.matching.drawn import SUBJECTS, VIDEOS, matches

OTHER = Subject(99, "让子弹飞一会儿", year=2010, kind=Kind.FILM)
CALIBRATED = make_profile("calibrated")
FAR = make_profile("plan", thresholds=Thresholds(lead=60.0))


def test_a_perfect_candidate_is_confirmed():
    verdict = judge(FILM, [OTHER, FILM_SUBJECT])
    assert verdict.status is Status.CONFIRMED
    assert verdict.douban_id == FILM_SUBJECT.douban_id
    assert verdict.codes == ()
    assert verdict.lead >= 8
    assert [candidate.rank for candidate in verdict.candidates] == [1, 2]
    assert "导演" in verdict.explanation
    assert "得分 100.0" in verdict.explanation


def test_a_season_is_confirmed_beside_its_sisters():
    sister = replace(SERIES_SUBJECT, douban_id=5, title="庆余年 第一季", aliases=("庆余年",), year=2019, episodes=46)
    verdict = judge(SERIES, [sister, SERIES_SUBJECT])
    assert (verdict.status, verdict.douban_id) == (Status.CONFIRMED, SERIES_SUBJECT.douban_id)


def test_a_thin_record_is_confirmed_by_the_calibrated_profile_alone():
    plan, calibrated = judge(THIN, [THIN_SUBJECT]), judge(THIN, [THIN_SUBJECT], profile=CALIBRATED)
    assert (plan.status, plan.score, plan.codes) == (Status.REVIEW, 77, (Code.BELOW_CONFIRM,))
    assert (calibrated.status, calibrated.score, calibrated.douban_id) == (
        Status.CONFIRMED,
        100,
        THIN_SUBJECT.douban_id,
    )
    assert (plan.profile, calibrated.profile) == PROFILES
    best = calibrated.best
    assert {item.name: item.points for item in best.items if item.points} == {"title": 45, "year": 15}
    assert sum(item.points for item in plan.best.items) == 77, "what is shown is the profile's"


@pytest.mark.parametrize("profile", [make_profile(name) for name in PROFILES], ids=PROFILES)
def test_profiles_rank_by_their_own_score(profile):
    known = replace(THIN_SUBJECT, douban_id=8, title="白夜追凶者", regions=("中国大陆",), genres=("犯罪",))
    video = replace(THIN, regions=("大陆",), genres=("犯罪",))
    ranked = rank(video, [known, THIN_SUBJECT], profile)
    assert [each.score for each in ranked] == sorted((each.score for each in ranked), reverse=True)
    assert all(each.score == profile.score(each.comparison) for each in ranked)
    by_plan = {True: known.douban_id, False: THIN_SUBJECT.douban_id}
    assert ranked[0].subject.douban_id == by_plan[profile.name == "plan"]


def test_a_small_lead_goes_to_a_person():
    close = judge(FILM, [FILM_SUBJECT, replace(FILM_SUBJECT, douban_id=4, duration_minutes=None)])
    assert (close.status, close.lead, close.codes[0]) == (Status.REVIEW, 5, Code.LEAD_TOO_SMALL)
    assert "领先 5.0；多候选接近：与次优候选差距不足" in close.explanation
    assert judge(FILM, [FILM_SUBJECT, replace(FILM_SUBJECT, douban_id=4, directors=())]).lead == 6


@pytest.mark.parametrize(
    ("other", "twins"),
    [
        ({}, True),
        ({"year": 2011, "release_years": ()}, True),
        ({"directors": (), "rating": None}, True),
        ({"directors": (), "actors": (), "rating": None, "genres": ()}, False),
        ({"year": None, "release_years": ()}, False),
        ({"kind": Kind.SERIES}, False),
    ],
)
def test_two_entries_of_one_work_are_said(other, twins):
    verdict = judge(FILM, [FILM_SUBJECT, replace(FILM_SUBJECT, douban_id=4, **other)], profile=FAR)
    assert verdict.status is Status.REVIEW
    assert verdict.codes[0] == Code.LEAD_TOO_SMALL
    assert (Code.TWIN_SUBJECTS in verdict.codes) is twins
    assert ("豆瓣有两个条目都相符，可能是同一作品" in verdict.explanation) is twins


def test_rejected_rivals_do_not_take_the_lead_unless_name_and_year_are_exact():
    remake = replace(FILM_SUBJECT, douban_id=4, year=1990, release_years=())
    assert judge(FILM, [FILM_SUBJECT, remake]).lead is None
    series = replace(FILM_SUBJECT, douban_id=4, kind=Kind.SERIES)
    assert judge(FILM, [FILM_SUBJECT, series]).codes == (Code.LEAD_TOO_SMALL,)


@pytest.mark.parametrize("score", ["under", "over"])
def test_the_middle_goes_to_review(score):
    video = replace(FILM, directors=(), actors=(), duration_minutes=None, genres=())
    other = video if score == "over" else replace(video, year=2012, regions=())
    verdict = judge(other, [FILM_SUBJECT])
    assert verdict.score == (82 if score == "over" else 67)
    assert verdict.status is (Status.REVIEW if score == "over" else Status.NOT_FOUND)
    assert verdict.codes == ((Code.BELOW_CONFIRM,) if score == "over" else (Code.BELOW_REVIEW,))


def test_not_found_carries_its_reason():
    assert judge(FILM, []).codes == (Code.NO_CANDIDATES,)
    wrong = replace(FILM_SUBJECT, year=1990, release_years=(), directors=("冯小刚",), actors=())
    verdict = judge(FILM, [wrong])
    assert verdict.status is Status.NOT_FOUND
    assert verdict.codes == (Code.ALL_REJECTED, Code.YEAR_GAP, Code.DIRECTOR_CONFLICT)
    assert "年份冲突：差 20 年；导演冲突" in verdict.explanation


LATER = {"year": 1990, "release_years": ()}


@pytest.mark.parametrize("profile", [make_profile(name) for name in PROFILES], ids=PROFILES)
@pytest.mark.parametrize(
    ("video", "subject", "labels"),
    [
        pytest.param(
            {"aliases": ()}, {"title": "子弹列车", "original_title": "", "aliases": ()}, ["标题冲突"], id="name"
        ),
        pytest.param({}, LATER, ["年份冲突"], id="year"),
        pytest.param({}, {**LATER, "actors": ()}, ["年份冲突"], id="year, and only the director agrees"),
        pytest.param({}, {"regions": ("美国",)}, ["地区冲突"], id="region"),
        pytest.param(
            {}, {"directors": ("冯小刚",), "actors": ()}, ["导演冲突"], id="director, and only the year agrees"
        ),
        pytest.param({"title": "让我的子弹飞啊", "aliases": (), "kind": Kind.SERIES}, {}, ["类型冲突"], id="kind"),
        pytest.param({}, {**LATER, "directors": ("冯小刚",)}, ["年份冲突", "导演冲突"], id="only the actors agree"),
    ],
)
def test_what_is_near_but_for_a_reject_goes_to_a_person_with_its_label(profile, video, subject, labels):
    verdict = judge(replace(FILM, **video), [replace(FILM_SUBJECT, **subject)], profile=profile)
    assert (verdict.status, verdict.douban_id, verdict.lead) == (Status.REVIEW, None, None)
    assert verdict.codes == (Code.CONFLICT, *verdict.best.comparison.rejects)
    _, conflict, *reasons = verdict.explanation.split("；")
    assert conflict == "除冲突项外相近"
    assert [reason.partition("：")[0] for reason in reasons] == labels


@pytest.mark.parametrize("profile", [make_profile(name) for name in PROFILES], ids=PROFILES)
@pytest.mark.parametrize(
    ("video", "subject"),
    [
        pytest.param(THIN, replace(THIN_SUBJECT, year=1990), id="a name alone is many works'"),
        pytest.param(
            replace(FILM, directors=(), actors=()),
            replace(FILM_SUBJECT, **LATER, directors=(), actors=()),
            id="region, genre and length distinguish no works of one name",
        ),
        pytest.param(
            replace(FILM, title="让子弹飞2", aliases=()),
            replace(FILM_SUBJECT, **LATER, title="让子弹飞3", aliases=(), original_title=""),
            id="another part",
        ),
        pytest.param(
            replace(FILM, genres=("恐怖",)),
            replace(FILM_SUBJECT, **LATER, directors=("冯小刚",), regions=("美国",)),
            id="three conflicts, of which one is forgiven",
        ),
        pytest.param(
            replace(FILM, aliases=()),
            replace(FILM_SUBJECT, title="一步之遥", original_title="", aliases=(), actors=("姜文", "葛优"), year=2014),
            id="nothing of the name, and two of the cast",
        ),
    ],
)
def test_other_rejects_go_to_nobody(profile, video, subject):
    verdict = judge(video, [subject], profile=profile)
    assert (verdict.status, verdict.codes[0]) == (Status.NOT_FOUND, Code.ALL_REJECTED)


@pytest.mark.parametrize("profile", [make_profile(name) for name in PROFILES], ids=PROFILES)
@pytest.mark.parametrize(
    ("video", "subject", "looked_at"),
    [
        pytest.param({"actors": ()}, {}, True, id="director and year"),
        pytest.param({"actors": (), "year": 2011}, {}, False, id="the director, and a year off"),
        pytest.param({"directors": (), "year": None}, {}, True, id="three actors"),
        pytest.param({"directors": (), "actors": ("姜文", "葛优")}, {}, False, id="two actors"),
        pytest.param({}, {"regions": ("美国",)}, False, id="another conflict beside"),
    ],
)
def test_another_translation_reaches_a_person_where_people_speak_for_it(profile, video, subject, looked_at):
    named = {"title": "鹅城往事", "original_title": "", "aliases": ()}
    verdict = judge(replace(FILM, aliases=(), **video), [replace(FILM_SUBJECT, **named, **subject)], profile=profile)
    assert (verdict.status is Status.REVIEW) is looked_at
    assert (Code.TITLE_TOO_FAR in verdict.codes) or not looked_at


def test_a_name_somewhat_alike_reaches_a_person_where_people_speak_for_it():
    video = replace(FILM, title="让子弹飞扬", aliases=(), year=None, regions=(), directors=(), genres=(), kind=None)
    video = replace(video, duration_minutes=None)
    subject = replace(FILM_SUBJECT, title="子弹飞越", original_title="", aliases=())
    calibrated = make_profile("calibrated")
    assert judge(video, [subject], profile=calibrated).codes == (Code.BELOW_CONFIRM,)
    assert judge(replace(video, actors=("姜文",)), [subject], profile=calibrated).status is Status.NOT_FOUND


def test_a_rejected_candidate_that_is_near_comes_before_those_that_nobody_need_see():
    near, piece = replace(FILM_SUBJECT, **LATER), OTHER
    assert [each.subject for each in judge(FILM, [piece, near]).candidates] == [near, piece]
    known = replace(piece, regions=("中国大陆",), directors=("姜文",))
    verdict = judge(FILM, [near, known])
    assert [each.subject for each in verdict.candidates] == [known, near]
    assert (verdict.status, verdict.codes) == (Status.REVIEW, (Code.BELOW_CONFIRM,)), "one without a reject is first"


@pytest.mark.parametrize("profile", [make_profile(name) for name in PROFILES], ids=PROFILES)
def test_a_rating_orders_equals_and_moves_nothing_else(profile):
    rated, unrated = replace(FILM_SUBJECT, douban_id=9), replace(FILM_SUBJECT, douban_id=2, rating=None)
    verdict = judge(FILM, [unrated, rated], profile=profile)
    assert [each.subject.douban_id for each in verdict.candidates] == [9, 2], "not the lower id"
    known = replace(FILM_SUBJECT, douban_id=8, votes=12)
    voted = replace(FILM_SUBJECT, douban_id=20, votes=9000)
    ranked = judge(FILM, [unrated, rated, known, voted], profile=profile).candidates
    assert [each.subject.douban_id for each in ranked] == [20, 8, 9, 2], "the more people rated it, the earlier"
    assert {each.score for each in verdict.candidates} == {100}
    assert (verdict.status, verdict.lead, verdict.codes[0]) == (Status.REVIEW, 0, Code.LEAD_TOO_SMALL)
    assert "多候选接近：与次优候选差距不足" in verdict.explanation
    # Eight points ahead are enough, whoever of the two has a rating.
    behind = {"actors": ()} if profile.name == "calibrated" else {"directors": (), "actors": ("甲一", "乙二", "丙三")}
    for best, other in ((rated, unrated), (unrated, rated)):
        ahead = judge(FILM, [best, replace(other, **behind)], profile=profile)
        assert (ahead.lead, Code.LEAD_TOO_SMALL in ahead.codes) == (8 if profile.name == "calibrated" else 14, False)


def test_an_unhealthy_source_yields_no_verdict():
    for subjects in ([], [FILM_SUBJECT]):
        verdict = judge(FILM, subjects, source_healthy=False)
        assert (verdict.status, verdict.douban_id) == (Status.UNDECIDED, None)
        assert verdict.codes == (Code.SOURCE_DEGRADED,)


@pytest.mark.parametrize("profile", [make_profile(name) for name in PROFILES], ids=PROFILES)
def test_the_right_subject_missing_does_not_make_its_neighbour_right(profile):
    first = replace(SERIES_SUBJECT, douban_id=5, title="庆余年 第一季", aliases=("庆余年",), year=2023, episodes=None)
    assert judge(SERIES, [first], profile=profile).status is not Status.CONFIRMED
    war_wolf = replace(FILM_SUBJECT, title="战狼", original_title="", aliases=(), year=2015, release_years=())
    sequel = replace(FILM, title="战狼2", aliases=(), year=2017)
    assert judge(sequel, [war_wolf], profile=profile).status is not Status.CONFIRMED
    spin_off = replace(THIN_SUBJECT, title="白夜追凶之破晓")
    assert judge(THIN, [spin_off], profile=profile).status is not Status.CONFIRMED


def test_a_year_in_the_title_is_the_year():
    video = Video(1, "碟仙2019", kind=Kind.FILM)
    assert judge(video, [Subject(3, "碟仙", year=1980, kind=Kind.FILM)]).status is Status.NOT_FOUND
    bracketed = judge(Video(1, "2019年惊悚《碟仙》BD"), [Subject(3, "碟仙", year=1980)])
    assert bracketed.codes == (Code.ALL_REJECTED, Code.YEAR_GAP)


def test_a_braked_stratum_goes_to_a_person_until_it_is_free_again():
    assert "co_production" in judge(FILM, [FILM_SUBJECT]).strata
    verdict = judge(FILM, [FILM_SUBJECT], braked=frozenset({"co_production", "thin"}))
    assert (verdict.status, verdict.codes) == (Status.REVIEW, (Code.STRATUM_BRAKED,))
    assert "自动确认已暂停" in verdict.explanation
    assert judge(FILM, [FILM_SUBJECT], braked=frozenset({"thin"})).status is Status.CONFIRMED
    # What is refused anyway says why, not that it is braked.
    refused = judge(FILM, [FILM_SUBJECT], complete=False, braked=frozenset({"co_production"}))
    assert refused.codes == (Code.INCOMPLETE,)


def test_order_of_the_candidates_does_not_matter():
    subjects = [FILM_SUBJECT, OTHER, replace(FILM_SUBJECT, douban_id=4, year=1990, release_years=())]
    assert judge(FILM, subjects).to_json() == judge(FILM, subjects[::-1]).to_json()


LOW = Thresholds(confirm=40.0, review=30.0, lead=4.0)
PROFILE = st.builds(make_profile, st.sampled_from(PROFILES), thresholds=st.sampled_from([Thresholds(), LOW]))
SELDOM = st.sampled_from([False, False, False, True])
GIVEN = st.fixed_dictionaries(
    {
        "profile": PROFILE,
        "complete": SELDOM.map(lambda seldom: not seldom),
        "source_healthy": SELDOM.map(lambda seldom: not seldom),
        "crowded": SELDOM,
        "reverted": st.frozensets(st.integers(1, 9), max_size=3),
        "has_siblings": st.booleans(),
        "linked": st.dictionaries(st.integers(1, 9), st.just(["战狼2"]), max_size=2),
        "chosen": st.none() | st.integers(1, 9),
        "braked": st.frozensets(st.sampled_from(["thin", "rich", "season"]), max_size=1),
    }
)


@given(matches() | st.tuples(VIDEOS, st.lists(SUBJECTS, max_size=4)), GIVEN)
def test_a_confirmation_keeps_every_rule(match, given):
    video, subjects = match
    verdict = judge(video, subjects, **given)
    thresholds = given["profile"].thresholds
    assert (verdict.douban_id is not None) is (verdict.status is Status.CONFIRMED)
    assert bool(verdict.codes) is (verdict.status is not Status.CONFIRMED)
    assert verdict.explanation
    if verdict.status is not Status.CONFIRMED:
        return
    best, *others = verdict.candidates
    assert best.score == verdict.score >= thresholds.confirm
    assert verdict.lead is None or verdict.lead >= thresholds.lead
    assert best.subject.fetched
    assert best.subject.douban_id == verdict.douban_id
    assert not given["braked"] & set(verdict.strata)
    assert given["chosen"] in (None, verdict.douban_id)
    rivals = [(other.subject, other.comparison) for other in others]
    known = {name: given[name] for name in ("complete", "crowded", "has_siblings", "reverted", "chosen")}
    linked = given["linked"].get(verdict.douban_id, ())
    assert refusals(Case(video, best.subject, best.comparison, rivals, linked=linked, **known)) == ()
    assert not violations(
        verdict=verdict.status,
        score=verdict.score,
        lead=verdict.lead,
        rejects=best.comparison.rejects,
        complete=given["complete"],
        source_healthy=given["source_healthy"],
        locked=False,
        ignored=False,
        profile_in_force=True,
        braked=False,
        chosen_otherwise=False,
        thresholds=thresholds,
    )


CHANGES = st.sampled_from(
    [{"year": 1950}, {"kind": Kind.SERIES}, {"regions": ("美国",)}, {"directors": ("冯小刚",)}, {"title": "无关"}]
)


@given(CHANGES, st.booleans())
def test_adding_a_reject_never_confirms(change, complete):
    verdict = judge(replace(FILM, aliases=(), **change), [FILM_SUBJECT], complete=complete)
    assert verdict.candidates[0].comparison.exclusions
    assert verdict.status is not Status.CONFIRMED


@given(matches(), GIVEN)
def test_what_is_given_beside_the_facts_only_makes_stricter(match, given):
    video, subjects = match
    bound = judge(video, subjects, **given)
    free = judge(video, subjects, profile=given["profile"])
    if bound.status is Status.CONFIRMED:
        assert (free.status, free.douban_id) == (Status.CONFIRMED, bound.douban_id)
    assert judge(video, subjects, **{**given, "complete": False}).status is not Status.CONFIRMED
