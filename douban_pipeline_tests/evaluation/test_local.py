"""A corpus in place of the network: it finds by title, tells what suggestions tell, and answers by id."""

from __future__ import annotations

import pytest

from douban_pipeline.douban.sources.douban_php import SubjectRecord
from douban_pipeline.douban.sources.errors import SubjectMissing
from douban_pipeline.douban.sources.search import VideoQuery
from douban_pipeline.evaluation.formats import CorpusSubject
from douban_pipeline.evaluation.local import PAGE, LocalDouban, LocalSearch

CORPUS = {
    1: CorpusSubject("movie", SubjectRecord(1, "长河落日记事", original_title="Sunset River", year=2021)),
    2: CorpusSubject("tv", SubjectRecord(2, "长河落日记事 第二季", aliases=("长河2",), year=2023, episodes=12)),
    3: CorpusSubject("", SubjectRecord(3, "午夜电车站台")),
}


def search(query, corpus=CORPUS):
    return LocalSearch(corpus).search(VideoQuery("", title=query), max_age=None)


def test_a_search_tells_of_a_hit_what_suggestions_tell():
    answer = search("长河落日记事")
    assert answer.ids == tuple(hit.douban_id for hit in answer.hits) == (1, 2)
    first, second = answer.hits
    assert (first.title, first.original_title, first.year, first.kind) == ("长河落日记事", "Sunset River", 2021, "")
    assert (second.kind, second.episodes) == ("tv", 12)
    assert first.url == "https://movie.douban.com/subject/1/"
    assert (answer.from_cache, answer.silent) == (False, ())


@pytest.mark.parametrize(("query", "ids"), [("sunset river", (1,)), ("长河2", (2,)), ("毫无踪影", ())])
def test_a_search_knows_all_names(query, ids):
    assert search(query).ids == ids


def test_an_answer_has_a_page_of_hits_at_most():
    many = {n: CorpusSubject("", SubjectRecord(n, "长河落日记事", year=1900 + n)) for n in range(1, 40)}
    answer = search("长河落日记事", many)
    assert (len(answer.hits), answer.full) == (PAGE, True)
    assert not search("长河落日记事").full


def test_an_answer_about_a_subject_is_its_record():
    answer = LocalDouban(CORPUS).subject(2)
    assert answer.record is CORPUS[2].record
    assert (answer.snapshot_id, answer.from_cache) == (2, False), "nothing is cached, so every question counts"
    with pytest.raises(SubjectMissing):
        LocalDouban(CORPUS).subject(4)
