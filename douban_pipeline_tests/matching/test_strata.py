"""Strata: which groups a match belongs to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from douban_pipeline.matching import Code, Kind, Subject, compare, judge
from douban_pipeline.matching.strata import STRATA, opening_of, strata_of
from douban_pipeline_tests.matching.cases import FILM, FILM_SUBJECT, SERIES, SERIES_SUBJECT, THIN, THIN_SUBJECT
from douban_pipeline_tests.matching.drawn import SUBJECTS, VIDEOS

PLAIN = replace(FILM, regions=("大陆",))
PLAIN_SUBJECT = replace(FILM_SUBJECT, regions=("中国大陆",))


def strata(video, subject, relatives=False):
    return set(strata_of(video, subject, compare(video, subject), relatives))


@pytest.mark.parametrize(
    ("video", "subject", "relatives", "expected"),
    [
        pytest.param(PLAIN, PLAIN_SUBJECT, False, {"rich"}, id="nothing special"),
        pytest.param(THIN, THIN_SUBJECT, False, {"no_director", "thin"}, id="thin"),
        pytest.param(
            replace(PLAIN, title="子弹飞", aliases=()),
            replace(PLAIN_SUBJECT, title="子弹飞"),
            False,
            {"short_title", "rich"},
            id="short",
        ),
        pytest.param(SERIES, SERIES_SUBJECT, False, {"short_title", "season", "rich"}, id="season on both sides"),
        pytest.param(
            PLAIN, replace(PLAIN_SUBJECT, title="让子弹飞 第一季"), False, {"season", "rich"}, id="season on one side"
        ),
        pytest.param(
            replace(PLAIN, title="火烧云传奇", aliases=()),
            replace(PLAIN_SUBJECT, aliases=("火烧云传奇",)),
            False,
            {"alias_hit", "rich"},
            id="alias",
        ),
        pytest.param(PLAIN, PLAIN_SUBJECT, True, {"same_title_rivals", "rich"}, id="rivals"),
        pytest.param(FILM, FILM_SUBJECT, False, {"co_production", "rich"}, id="several regions"),
        pytest.param(replace(PLAIN, directors=()), PLAIN_SUBJECT, False, {"no_director", "rich"}, id="actors only"),
        pytest.param(replace(PLAIN, year=None), PLAIN_SUBJECT, False, {"year_missing"}, id="no year is not rich"),
        pytest.param(replace(PLAIN, year=2011), PLAIN_SUBJECT, False, {"year_off", "rich"}, id="a year off"),
        pytest.param(
            replace(PLAIN, kind=Kind.ANIMATION), PLAIN_SUBJECT, False, {"animation", "rich"}, id="animation here"
        ),
        pytest.param(
            PLAIN, replace(PLAIN_SUBJECT, genres=("动画",)), False, {"animation", "rich"}, id="animation there"
        ),
    ],
)
def test_strata_of_a_match(video, subject, relatives, expected):
    assert strata(video, subject, relatives) == expected


def test_a_verdict_carries_the_strata_of_its_best_candidate():
    alone = judge(PLAIN, [PLAIN_SUBJECT])
    beside = judge(PLAIN, [PLAIN_SUBJECT, Subject(9, "让子弹飞", year=2011)])
    assert alone.strata == ("rich",)
    assert beside.strata == ("same_title_rivals", "rich")
    assert judge(PLAIN, [PLAIN_SUBJECT], has_siblings=True).strata == beside.strata
    assert judge(PLAIN, []).strata == ()


@given(VIDEOS, SUBJECTS)
def test_strata_are_known_ordered_and_never_both_thin_and_rich(video, subject):
    found = strata_of(video, subject, compare(video, subject), relatives=False)
    assert list(found) == [name for name in STRATA if name in found]
    assert not {"thin", "rich"} <= set(found)
    assert ("thin" in found) is (not video.directors and not video.actors)


def test_every_stratum_has_a_name_for_people():
    assert all(any(char > "\u4e00" for char in name) for name in STRATA.values())


@pytest.mark.parametrize(
    ("codes", "stratum"),
    [
        ((), ""),
        ((Code.ALIAS_UNBACKED,), "only:ALIAS_UNBACKED"),
        ((Code.ALIAS_UNBACKED, Code.YEAR_UNCONFIRMED), ""),
        ((Code.SEASON_CONFLICT,), ""),
        ((Code.KIND_CONFLICT,), ""),
        ((Code.LINKED_ELSEWHERE,), ""),
        ((Code.REVERTED_BEFORE,), ""),
        ((Code.INCOMPLETE,), ""),
        ((Code.RIVALS_UNSEEN,), ""),
        ((Code.LEAD_TOO_SMALL,), ""),
    ],
)
def test_a_person_may_open_what_lacks_one_piece_of_evidence_and_no_conflict(codes, stratum):
    assert opening_of(codes) == stratum
