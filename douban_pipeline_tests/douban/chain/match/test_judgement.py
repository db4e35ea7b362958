"""Judging what was found is judging its subjects: fetched ones by Douban's answers, the others by their hits."""

from __future__ import annotations

import pytest

from douban_pipeline.douban.chain.match.found_candidates import FetchedCandidate, FoundCandidates
from douban_pipeline.douban.chain.match.judgement import NO_CIRCUMSTANCES, Circumstances, judge_found
from douban_pipeline.douban.match_inputs import glimpsed_facts, subject_facts
from douban_pipeline.douban.sources.douban_php import SubjectRecord
from douban_pipeline.douban.sources.search import Hit
from douban_pipeline.matching import PROFILES, Status, Video, judge, make_profile

TITLE = "长河落日记事"
VIDEO = Video(7, TITLE, year=2021, regions=("大陆",), directors=("长河导",), actors=("甲一", "乙二"))
KNOWN = {"regions": ("中国大陆",), "directors": ("长河导",), "actors": ("甲一", "乙二", "丙三")}
RECORDS = {
    1: SubjectRecord(1, TITLE, year=2021, rating=8.1, **KNOWN),
    2: SubjectRecord(2, TITLE, year=1999, directors=("旧人",)),
}
HITS = (Hit(3, f"{TITLE} 第二季 (豆瓣)", "", kind="tv"), Hit(4, "", ""))


def found(*fetched, hits=HITS, crowded=False):
    return FoundCandidates(fetched, hits, crowded, (1,), 2)


BOTH = found(FetchedCandidate(1, 11), FetchedCandidate(2, 12, "tv"))


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize(
    ("what", "circumstances", "options"),
    [
        pytest.param(BOTH, NO_CIRCUMSTANCES, {}, id="all"),
        pytest.param(found(), NO_CIRCUMSTANCES, {}, id="hits alone"),
        pytest.param(found(hits=()), NO_CIRCUMSTANCES, {}, id="nothing"),
        pytest.param(found(FetchedCandidate(2, 12), crowded=True), NO_CIRCUMSTANCES, {"crowded": True}, id="crowded"),
        pytest.param(BOTH, Circumstances(reverted=frozenset({1})), {"reverted": frozenset({1})}, id="reverted"),
        pytest.param(
            BOTH, Circumstances(linked={1: [f"{TITLE}2"]}), {"linked": {1: [f"{TITLE}2"]}}, id="linked elsewhere"
        ),
        pytest.param(BOTH, Circumstances(chosen=2), {"chosen": 2}, id="chosen otherwise"),
        pytest.param(BOTH, Circumstances(braked=frozenset({"rich"})), {"braked": frozenset({"rich"})}, id="braked"),
    ],
)
def test_judging_what_was_found_is_judging(name, what, circumstances, options):
    profile = make_profile(name)
    subjects = [subject_facts(RECORDS[each.douban_id], each.kind) for each in what.subjects]
    subjects += [glimpsed_facts(hit) for hit in what.hits]
    expected = judge(VIDEO, subjects, profile=profile, **options)
    assert judge_found(VIDEO, what, RECORDS, profile, circumstances) == expected
    if what is BOTH:
        assert (expected.status is Status.CONFIRMED) is (circumstances is NO_CIRCUMSTANCES)
