"""A chain of providers: the first that finds something ends it, and nothing is concluded from half an answer."""

from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import pytest

from douban_pipeline.core.errors import (
    GateClosed,
    GateUnreadable,
    QuotaSpent,
    SourceError,
    SourceThrottled,
    SourceUnavailable,
    SourceUnpaid,
    SourceWall,
)
from douban_pipeline.douban.sources.search import Hit, SearchAnswer, SearchIncomplete, VideoQuery
from douban_pipeline.douban.sources.search_chain import Chain, search_from
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.scripted_source import House, Say, Source

WEEK = timedelta(days=7)
SOON, LATER = START + timedelta(hours=1), START + timedelta(hours=9)
QUESTION = VideoQuery("片名|2021", words="片名 豆瓣", title="片名", form="plain")


class Provider:
    """A provider in one state, which remembers what it was asked."""

    def __init__(self, name: str, *, titles_only: bool = False, silent: tuple[str, ...] = ()) -> None:
        self.name = name
        self.titles_only = titles_only
        self.silent = silent
        self.number = 7
        self.state: Any = ()
        self.requests = 1
        self.asked: list[str] = []

    def search(self, question: VideoQuery, *, max_age: timedelta | None) -> SearchAnswer:
        assert max_age == WEEK
        self.asked.append(question.wording(titles_only=self.titles_only))
        if isinstance(self.state, Exception):
            raise self.state
        hits = tuple(Hit(number, "片名", "") for number in self.state)
        return SearchAnswer(
            hits,
            (self.number,),
            self.requests,
            START,
            self.name,
            full=True,
            of_titles=self.titles_only,
            silent=self.silent,
        )


def pair(first: Any, second: Any) -> tuple[Provider, Provider]:
    one, two = Provider("one"), Provider("two")
    one.state, one.number, two.state, two.number = first, 1, second, 2
    return one, two


def ask(*providers: Provider, question: VideoQuery = QUESTION) -> SearchAnswer:
    return Chain(providers).search(question, max_age=WEEK)


HITS, EMPTY = (10_001, 10_002), ()
CLOSED = GateClosed("one", "open", LATER)
SPENT = QuotaSpent("one", "1000 calls", LATER)
UNPAID = SourceUnpaid("one", "no money")
THROTTLED = SourceThrottled("one", "HTTP 429", 60)
WALL = SourceWall("one", "captcha")
DOWN = SourceUnavailable("one", "HTTP 500")
FAILURES = [CLOSED, SPENT, UNPAID, THROTTLED, WALL, DOWN]
NO_CALL = (CLOSED, SPENT)


def named(error: SourceError, name: str) -> SourceError:
    """Return the same failure of another provider."""
    more = (error.until,) if isinstance(error, GateClosed) else ()
    return type(error)(name, error.reason, *more)


@pytest.mark.parametrize("second", [HITS, EMPTY, *FAILURES], ids=repr)
def test_a_hit_of_the_first_ends_the_search(second: Any) -> None:
    one, two = pair(HITS, second)
    answer = ask(one, two)
    assert (answer.ids, answer.provider, answer.snapshots, answer.requests) == (HITS, "one", (1,), 1)
    assert two.asked == []


@pytest.mark.parametrize("first", [EMPTY, *FAILURES], ids=repr)
def test_a_hit_of_the_second_is_as_good(first: Any) -> None:
    one, two = pair(first, HITS)
    answer = ask(one, two)
    assert (answer.ids, answer.provider, answer.full) == (HITS, "two", True)
    assert answer.snapshots == ((1, 2) if first == EMPTY else (2,))
    assert answer.requests == (1 if first in NO_CALL else 2)
    assert answer.incomplete is (None if first == EMPTY else first)
    assert (len(one.asked), len(two.asked)) == (1, 1)


def test_nothing_found_by_all_is_a_good_answer_based_on_all() -> None:
    answer = ask(*pair(EMPTY, EMPTY))
    assert (answer.hits, answer.snapshots, answer.requests, answer.incomplete) == ((), (1, 2), 2, None)


@pytest.mark.parametrize("failure", FAILURES, ids=repr)
@pytest.mark.parametrize("turned", [False, True])
def test_nothing_found_by_some_and_a_failure_is_no_answer(failure: SourceError, turned: bool) -> None:
    with pytest.raises(SearchIncomplete, match=failure.reason) as caught:
        ask(*pair(EMPTY, failure)[:: -1 if turned else 1])
    assert caught.value.cause is failure
    assert (caught.value.source, caught.value.healthy) == ("chain", None)


@pytest.mark.parametrize("first", FAILURES, ids=repr)
@pytest.mark.parametrize("second", [named(failure, "two") for failure in FAILURES], ids=repr)
def test_two_failures_are_no_answer(first: SourceError, second: SourceError) -> None:
    one, two = pair(first, second)
    with pytest.raises(SourceError) as caught:
        ask(one, two)
    assert (len(one.asked), len(two.asked)) == (1, 1)
    error = caught.value
    if isinstance(first, GateClosed) and isinstance(second, GateClosed):
        assert error in (first, second), "everybody is closed: so is the chain"
    else:
        assert isinstance(error, SearchIncomplete)
        called = [failure for failure in (first, second) if not isinstance(failure, GateClosed)]
        assert error.cause is called[0], "what failed just now says more than what was closed before"


@pytest.mark.parametrize("untils", [(SOON, LATER), (LATER, SOON)])
def test_when_all_are_closed_it_is_worth_asking_when_the_first_opens(untils: Any) -> None:
    first, second = GateClosed("one", "open", untils[0]), QuotaSpent("two", "1000 calls", untils[1])
    with pytest.raises(GateClosed) as caught:
        ask(*pair(first, second))
    assert caught.value.until == SOON
    three = Provider("three")
    three.state = EMPTY
    with pytest.raises(SearchIncomplete) as incomplete:
        ask(*pair(first, second), three)
    assert isinstance(incomplete.value.cause, GateClosed)
    assert incomplete.value.cause.until == SOON


def test_an_unreadable_gate_is_nobodys_state() -> None:
    one, two = pair(GateUnreadable("one", "no database"), HITS)
    with pytest.raises(GateUnreadable):
        ask(one, two)
    assert two.asked == []


def test_each_is_asked_in_the_words_it_understands() -> None:
    web, index, other = Provider("web"), Provider("index", titles_only=True), Provider("other")
    ask(web, index, other)
    assert (web.asked, index.asked, other.asked) == (["片名 豆瓣"], ["片名"], ["片名 豆瓣"])
    untitled = VideoQuery("片名|2021", words="片名 某人 豆瓣 subject")
    assert ask(web, index, other, question=untitled).hits == (), "nobody who has words for it is left out"
    assert (len(web.asked), len(index.asked), len(other.asked)) == (2, 1, 2)
    index.state = HITS
    found = ask(web, index, other)
    assert (found.of_titles, found.provider) == (True, "index")


def test_that_the_others_are_closed_does_not_close_who_was_not_asked() -> None:
    web, index = Provider("web"), Provider("index", titles_only=True)
    web.state = CLOSED
    with pytest.raises(SearchIncomplete):
        ask(web, index, question=VideoQuery("片名|2021", words="片名 某人 豆瓣 subject"))


def test_an_incomplete_search_survives_pickling() -> None:
    again = pickle.loads(pickle.dumps(SearchIncomplete("chain", SourceWall("one", "captcha"))))
    assert (str(again), str(again.cause)) == ("chain: an incomplete search; one: captcha", "one: captcha")


def test_one_address_is_no_chain(house: House) -> None:
    assert search_from({"searxng": "http://127.0.0.1/"}, house.fetcher).name == "searxng"
    chain = search_from({"bocha": "http://127.0.0.1/", "searxng": "http://127.0.0.1/"}, house.fetcher)
    assert isinstance(chain, Chain)
    assert not chain.titles_only


PAGE = {"results": [{"url": "https://movie.douban.com/subject/1307914/", "title": "无间道"}]}
SUGGESTION = [{"id": "1307914", "title": "无间道", "type": "movie"}]


def test_over_http_each_keeps_its_own_answers(library_house: House, source: Source) -> None:
    other = Source()
    try:
        chain = search_from({"searxng": source.url, "douban_suggest": other.url}, library_house.fetcher)
        source.says(Say(status=403))
        other.says(SUGGESTION)
        found = chain.search(QUESTION, max_age=WEEK)
        assert (found.ids, found.provider, found.requests) == ((1307914,), "douban_suggest", 2)
        again = chain.search(QUESTION, max_age=WEEK)
        assert (again.ids, again.requests, again.snapshots) == (found.ids, 0, found.snapshots)
        assert (len(source.asked), len(other.asked)) == (1, 1), "a closed one is not asked"
        assert other.asked[0][1] == {"q": ["片名"]}
        library_house.gate.close("searxng")
        source.says(PAGE)
        assert chain.search(QUESTION, max_age=WEEK).provider == "searxng", "nothing is remembered but by the gate"
    finally:
        other.close()
