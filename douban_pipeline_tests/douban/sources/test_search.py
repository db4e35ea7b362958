"""Search providers over real HTTP: candidates in order, and never an empty answer for an unhealthy source."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.core.errors import SourceError, SourceThrottled, SourceUnavailable, SourceWall
from douban_pipeline.core.gate_rules import GateState
from douban_pipeline.douban.sources.search import Hit, SearchAnswer, SearchProvider, VideoQuery
from douban_pipeline.douban.sources.search_chain import search_from
from douban_pipeline.douban.sources.search_providers import PROVIDERS, parse_bocha, parse_searxng, parse_suggestions
from douban_pipeline_tests.harness.fixtures.scripted_source import House, Say, Source

WEEK = timedelta(days=7)

SEARXNG = {
    "query": "无间道 豆瓣",
    "results": [
        {"url": "https://movie.douban.com/subject/1307914/", "title": "无间道 (豆瓣)", "content": "导演: 刘伟强"},
        {"url": "https://book.douban.com/subject/1234567/", "title": "无间道小说"},
        {"url": "https://m.douban.com/movie/subject/1307856/?x=1", "title": "无间道2 &amp; 3"},
        {"url": "https://movie.douban.com/subject/1307914/comments", "title": "短评"},
        {"url": "https://baike.example/无间道"},
    ],
    "unresponsive_engines": [["bing", "CAPTCHA"]],
}
SUGGESTIONS = [
    {
        "id": "1307914",
        "title": "无间道",
        "sub_title": "無間道",
        "url": "https://movie.douban.com/subject/1307914/?suggest=x",
        "type": "movie",
        "year": "2002",
        "img": "https://img.example/1.jpg",
        "episode": "",
    },
    {"id": "26279289", "title": "无间道", "type": "movie", "year": "2016", "episode": "20"},
    {"id": "27260217", "title": "刘德华", "type": "celebrity", "url": "https://movie.douban.com/celebrity/27260217/"},
    {"id": "1307914", "title": "重复", "type": "movie"},
    {"id": "77", "title": "太小", "type": "movie"},
]
BOCHA = {
    "code": 200,
    "log_id": "d71841ad20095f61",
    "msg": None,
    "data": {
        "_type": "SearchResponse",
        "queryContext": {"originalQuery": "无间道 豆瓣"},
        "webPages": {
            "webSearchUrl": "",
            "totalEstimatedMatches": 3,
            "value": [
                {"id": None, "name": "无间道", "url": "https://movie.douban.com/subject/1307914/", "snippet": "刘伟强"},
                {"id": None, "name": "一篇影评", "url": "https://movie.douban.com/review/1234567/"},
            ],
            "someResultsRemoved": True,
        },
        "images": None,
    },
}
EMPTY: dict[str, Any] = {
    "searxng": {"results": [], "unresponsive_engines": []},
    "douban_suggest": [],
    "bocha": {**BOCHA, "data": {"_type": "SearchResponse", "webPages": None}},
}
FULL: dict[str, Any] = {"searxng": SEARXNG, "douban_suggest": SUGGESTIONS, "bocha": BOCHA}


def provider(house: House, source: Source, name: str, **options: Any) -> SearchProvider:
    return search_from({name: source.url}, house.fetcher, **options)


def ask(
    search: SearchProvider, text: str, about: str = "片|", *, form: str = "", max_age: timedelta | None = WEEK
) -> SearchAnswer:
    """Ask a provider of either kind for ``text``; a title has no form."""
    question = VideoQuery(about, words=text, form=form, title=f"{text}/{form}")
    return search.search(question, max_age=max_age)


def test_searxng(library_house: House, source: Source) -> None:
    source.says(SEARXNG)
    question = VideoQuery("无间道|2002", words="无间道 豆瓣", title="无间道")
    answer = provider(library_house, source, "searxng").search(question, max_age=WEEK)
    assert source.asked[0][1] == {"q": ["无间道 豆瓣"], "format": ["json"]}
    assert answer.ids == (1307914, 1307856)
    assert answer.hits[0] == Hit(
        1307914, "无间道 (豆瓣)", "https://movie.douban.com/subject/1307914/", snippet="导演: 刘伟强"
    )
    assert answer.hits[1].title == "无间道2 & 3"
    assert answer.silent == ("bing: CAPTCHA",)
    assert (answer.provider, answer.requests, answer.full, answer.of_titles) == ("searxng", 1, False, False)
    assert [library_house.archive.get(number).source for number in answer.snapshots] == ["searxng"]


def test_douban_suggestions(library_house: House, source: Source) -> None:
    source.says(SUGGESTIONS)
    question = VideoQuery("无间道|2002", words="无间道 豆瓣", title="无间道")
    answer = provider(library_house, source, "douban_suggest").search(question, max_age=WEEK)
    assert source.asked[0][1] == {"q": ["无间道"]}
    assert answer.ids == (1307914, 26279289)
    assert (answer.provider, answer.requests, answer.of_titles) == ("douban_suggest", 1, True)
    site = "https://movie.douban.com/subject/"
    assert answer.hits == (
        Hit(1307914, "无间道", f"{site}1307914/?suggest=x", original_title="無間道", year=2002),
        Hit(26279289, "无间道", f"{site}26279289/", year=2016, kind="tv", episodes=20),
    )


@pytest.mark.parametrize("name", sorted(PROVIDERS))
@pytest.mark.parametrize("hours", [1, 24, 100])
def test_nothing_found_is_a_good_answer_believed_for_a_while(
    house: House, source: Source, name: str, hours: int
) -> None:
    source.says(EMPTY[name], FULL[name])
    search = provider(house, source, name, miss_max_age=timedelta(hours=hours))
    first = ask(search, "没有的片")
    assert (first.hits, first.requests) == ((), 1)
    house.clock.advance(hours=hours - 0.1)
    assert ask(search, "没有的片").from_cache
    house.clock.advance(hours=0.2)
    assert ask(search, "没有的片").hits != ()
    house.clock.advance(days=6)
    again = ask(search, "没有的片")
    assert (again.from_cache, again.requests, again.hits != ()) == (True, 0, True), "what was found is believed longer"
    assert len(source.asked) == 2


@pytest.mark.parametrize("name", sorted(PROVIDERS))
def test_what_was_found_is_kept_by_title_year_and_form(house: House, source: Source, name: str) -> None:
    source.says(FULL[name])
    search = provider(house, source, name)
    first = ask(search, "无间道 豆瓣", "无间道|2002", form="plain")
    house.clock.advance(days=6)
    again = ask(search, "无间道 豆瓣", "无间道|2002", form="plain")
    assert again.from_cache
    assert (again.hits, again.snapshots) == (first.hits, first.snapshots)
    spelt_otherwise = ask(search, "無間道 豆瓣", "无间道|2002", form="plain")
    assert spelt_otherwise.from_cache == (name != "douban_suggest"), "a title is asked as it is spelt"
    assert not ask(search, "无间道 豆瓣", "无间道|2002", form="site").from_cache
    assert not ask(search, "无间道 豆瓣", "无间道|2003", form="plain").from_cache
    assert not ask(search, "无间道 豆瓣", "无间道|2002").from_cache
    assert not ask(search, "无间道 刘伟强", "无间道|2002").from_cache
    assert ask(search, "无间道 刘伟强", "无间道|2002").from_cache
    assert not ask(search, "无间道 豆瓣", "无间道|2002", form="plain", max_age=None).from_cache
    house.clock.advance(days=8)
    assert not ask(search, "无间道 豆瓣", "无间道|2002", form="plain").from_cache


@pytest.mark.parametrize("name", sorted(PROVIDERS))
@pytest.mark.parametrize(
    ("say", "kind"),
    [
        (Say("<html>验证码</html>"), SourceWall),
        (Say(status=302, headers={"Location": "https://sec.douban.com/b"}), SourceWall),
        (Say(status=403), SourceWall),
        (Say({"msg": "search_access_rate_limit", "code": 1080}), None),
        (Say({"msg": "检测到有异常请求", "code": 1}), None),
        (Say(status=429), SourceThrottled),
        (Say("<html>hello</html>"), SourceUnavailable),
        (Say({"results": None}), SourceUnavailable),
        (Say({}), SourceUnavailable),
        (Say("null"), SourceUnavailable),
        (Say(["a", "b"]), SourceUnavailable),
        (Say({"results": ["a"]}), SourceUnavailable),
    ],
)
def test_an_unhealthy_source_is_never_an_empty_answer(
    house: House, source: Source, name: str, say: Say, kind: type[SourceError] | None
) -> None:
    source.says(say)
    with pytest.raises(SourceError) as caught:
        ask(provider(house, source, name), "片")
    if kind is not None:
        assert type(caught.value) is kind
    assert caught.value.healthy is False
    if kind is SourceUnavailable:
        assert house.status(name).failures >= 1
    elif kind is not None:
        assert house.status(name).state is GateState.OPEN


def test_silent_engines_without_results_are_an_error(house: House, source: Source) -> None:
    source.says({"results": [], "unresponsive_engines": [["google", "Suspended: CAPTCHA"], ["bing", "timeout"]]})
    with pytest.raises(SourceUnavailable, match=r"google: Suspended: CAPTCHA, bing: timeout"):
        ask(provider(house, source, "searxng"), "片")


def test_nothing_found_while_engines_kept_silent_is_asked_again(house: House, source: Source) -> None:
    elsewhere = [{"url": "https://example.org/", "title": "片"}]
    source.says(
        {"results": elsewhere, "unresponsive_engines": [["google", "timeout"]]},
        {"results": elsewhere, "unresponsive_engines": []},
    )
    search = provider(house, source, "searxng")
    assert [
        (answer.silent, answer.requests) for answer in (ask(search, "片"), ask(search, "片"), ask(search, "片"))
    ] == [(("google: timeout",), 1), ((), 1), ((), 0)]


def test_suggestions_with_a_rate_limit_body_open_the_gate(house: House, source: Source) -> None:
    source.says({"msg": "search_access_rate_limit", "code": 1080, "request": "GET /j/subject_suggest"})
    with pytest.raises(SourceThrottled):
        ask(provider(house, source, "douban_suggest"), "片")
    assert house.status("douban_suggest").state is GateState.OPEN


def test_a_page_as_full_as_it_gets_may_leave_some_out(house: House, source: Source) -> None:
    pages = [{"url": f"https://movie.douban.com/subject/{1307914 + n}/", "title": "无间道"} for n in range(10)]
    source.says({"results": pages[:9]}, {"results": pages})
    search = provider(house, source, "searxng")
    assert [ask(search, "无间道", form=form).full for form in ("plain", "site")] == [False, True]


KEYS = [
    *("results", "url", "id", "title", "type", "unresponsive_engines"),
    *("code", "message", "data", "_type", "webPages", "value", "name"),
]
JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=9) | st.sampled_from([200, "SearchResponse"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=10,
)


@given(JSON)
def test_any_json_is_hits_or_a_source_error(answer: Any) -> None:
    for parse in (parse_searxng, parse_suggestions, parse_bocha):
        try:
            parsed = parse(json.dumps(answer).encode())
        except SourceError as error:
            assert error.healthy is False  # noqa: PT017 (what kind it is depends on the input)
        else:
            ids = [hit.douban_id for hit in parsed.hits]
            assert len(ids) == len(set(ids))
            assert all(number >= 10_000 for number in ids)
