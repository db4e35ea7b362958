"""A small fixed set of records that no change of rules may make worse: never a wrong link, and no fewer links."""

from __future__ import annotations

from pathlib import Path

import pytest

from douban_pipeline.matching.profiles import make_profile
from douban_pipeline.matching.weights import PROFILES
from douban_pipeline_tests.tools.evaluate.labelled_replay import CorpusJudge, Result
from douban_pipeline_tests.tools.evaluate.labelled_rows import read_corpus, read_gold
from douban_pipeline_tests.tools.evaluate.metrics import glance, measure

DATA = Path(__file__).parent / "data"
LEAST_COVERAGE = {"plan": 0.79, "calibrated": 0.97}
LEAST_RICH = {"plan": 0.91, "calibrated": 0.98}
MOST_REQUESTS = 2.5


@pytest.fixture(scope="module", params=PROFILES)
def judged(request: pytest.FixtureRequest) -> tuple[str, list[Result]]:
    results = CorpusJudge(read_corpus(DATA / "corpus.jsonl")).judge(
        read_gold(DATA / "gold.jsonl"), make_profile(request.param)
    )
    return request.param, results


def reported(results: list[Result]) -> list[str]:
    return [f"{each.gold.row} {each.gold.video.title} → {each.douban_id}: {each.explanation}" for each in results]


def test_nothing_is_linked_wrongly(judged):
    _, results = judged
    assert reported([result for result in results if result.wrong]) == []


def test_what_was_linked_still_is(judged):
    profile, results = judged
    measures = {group.name: group.measures for group in glance(results).groups}
    headline, rich = measures["Headline sources"], measures["Headline, rich"]
    waiting = reported([each for each in results if each.gold.expected is not None and not each.confirmed])
    assert (headline.linked.share or 0) >= LEAST_COVERAGE[profile], waiting
    assert (rich.linked.share or 0) >= LEAST_RICH[profile], waiting


def test_the_truth_is_found_shown_and_cheap(judged):
    _, results = judged
    found = measure([result for result in results if result.gold.expected is not None])
    assert found.found.hits == found.found.total
    assert found.review_shown.hits == found.review_shown.total
    assert found.requests.mean is not None
    assert found.requests.mean <= MOST_REQUESTS
