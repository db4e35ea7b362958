"""A corpus in place of the network: it finds by title, tells what suggestions tell, and answers by id."""

from __future__ import annotations

from dataclasses import replace

import pytest

from douban_pipeline.douban.sources.douban_php import SubjectRecord
from douban_pipeline.douban.sources.errors import SubjectMissing
from douban_pipeline.douban.sources.search import VideoQuery
from douban_pipeline_tests.tools.evaluate.labelled_rows import CorpusSubject
from douban_pipeline_tests.tools.evaluate.local_sources import LocalDouban, LocalSearch, SearchKind, subject_body

CORPUS = {
    90_000_001: CorpusSubject(
        "movie", SubjectRecord(90_000_001, "长河落日记事", original_title="Sunset River", year=2021)
    ),
    90_000_002: CorpusSubject(
        "tv", SubjectRecord(90_000_002, "长河落日记事 第二季", aliases=("长河2",), year=2023, episodes=12)
    ),
    90_000_003: CorpusSubject("", SubjectRecord(90_000_003, "午夜电车站台")),
}


FIRST, SECOND = 90_000_001, 90_000_002
MANY = {
    90_000_000 + n: CorpusSubject("", SubjectRecord(90_000_000 + n, "长河落日记事", year=1900 + n))
    for n in range(1, 40)
}


def search(query, corpus=CORPUS, kind=SearchKind.SUGGESTIONS):
    return LocalSearch(corpus, kind).search(VideoQuery("", f"{query} 豆瓣", query), max_age=None)


def test_a_search_tells_of_a_hit_what_suggestions_tell():
    answer = search("长河落日记事")
    assert answer.ids == tuple(hit.douban_id for hit in answer.hits) == (FIRST, SECOND)
    first, second = answer.hits
    assert (first.title, first.original_title, first.year, first.kind) == ("长河落日记事", "Sunset River", 2021, "")
    assert (second.kind, second.episodes) == ("tv", 12)
    assert first.url.startswith("https://movie.douban.com/subject/90000001/")
    assert (answer.from_cache, answer.silent) == (False, ())


@pytest.mark.parametrize(("query", "ids"), [("sunset river", (FIRST,)), ("长河2", (SECOND,)), ("毫无踪影", ())])
def test_a_search_knows_all_names(query, ids):
    assert search(query).ids == ids


def test_an_answer_about_a_subject_is_read_from_what_sites_send():
    record = SubjectRecord(
        FIRST,
        "长河落日记事",
        original_title="Sunset River",
        aliases=("长河/落日(台)", "Fate/River"),
        year=2021,
        release_dates=("2021-05-11(中国大陆)",),
        regions=("中国大陆", "中国香港"),
        directors=("E.G.马绍尔",),
        actors=("甲一", "乙·二"),
        duration_minutes=118,
        episodes=12,
        rating=8.0,
    )
    answer = LocalDouban({FIRST: CorpusSubject("tv", record)}).subject(FIRST)
    read = replace(answer.record, url="")
    assert read == replace(record, id_confirmed=True)
    assert subject_body(record).startswith(b"callback("), "JSONP, as scripts send it"
    assert (answer.snapshot_id, answer.from_cache) == (FIRST, False), "nothing is cached, so every question counts"
    with pytest.raises(SubjectMissing):
        LocalDouban(CORPUS).subject(4)
