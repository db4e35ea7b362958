"""Bocha over real HTTP and against the replay: what is asked of it, and what each of its answers means."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from douban_pipeline.core.errors import SourceError, SourceThrottled, SourceUnavailable, SourceUnpaid, SourceWall
from douban_pipeline.core.gate_rules import GateState
from douban_pipeline.douban.sources.search import Hit, SearchAnswer, SearchProvider, VideoQuery
from douban_pipeline.douban.sources.search_chain import search_from
from douban_pipeline.douban.sources.search_providers import parse_bocha
from douban_pipeline_tests.harness.fixtures.scripted_source import House, Say, Source

WEEK = timedelta(days=7)
KEY = "sk-very-secret"


def page(url: str, name: Any = "片名", **more: Any) -> dict[str, Any]:
    return {"id": None, "name": name, "url": url, "snippet": "导演: 某人", "language": None, **more}


def good(*pages: Any, **more: Any) -> dict[str, Any]:
    return found({"totalEstimatedMatches": 8912791, "value": list(pages), "someResultsRemoved": True}, **more)


def found(pages: Any, **more: Any) -> dict[str, Any]:
    data = {"_type": "SearchResponse", "queryContext": {"originalQuery": "片"}, "webPages": pages, "images": None}
    return {"code": 200, "log_id": "d71841ad", "msg": None, "data": {**data, **more}}


def error(code: Any, message: Any = "xxxx") -> dict[str, Any]:
    return {"code": code, "message": message, "log_id": "c66aac17eab1bb7e"}


SUBJECT = "https://movie.douban.com/subject/1307914/"
WRAPPED = "https://www.douban.com/link2/?url=https%3A%2F%2Fmovie.douban.com%2Fsubject%2F1307856%2F"


@pytest.mark.parametrize(
    ("answer", "ids"),
    [
        (good(page(SUBJECT)), [1307914]),
        (good(page("https://m.douban.com/movie/subject/1307914/?x=1"), page(SUBJECT, "又一次")), [1307914]),
        (good(page(WRAPPED), page(SUBJECT)), [1307856, 1307914]),
        (good(page("https://book.douban.com/subject/1307914/"), page("https://movie.douban.com/review/1307914/")), []),
        (good(page("https://evil.cn/subject/1307914/"), page("https://movie.douban.com.evil/subject/1307914/")), []),
        (good(page("https://movie.douban.com/subject/77/")), []),
        (good({"name": "无地址"}, "废话", None, page(SUBJECT)), [1307914]),
        (good(page(SUBJECT, None)), [1307914]),
        (good(), []),
        (found(None), []),
        (found({"value": None}), []),
        ({"code": "200", "data": {"_type": "SearchResponse"}}, []),
    ],
)  # fmt: skip
def test_an_answer_names_subjects_or_none(answer: Any, ids: list[int]) -> None:
    parsed = parse_bocha(json.dumps(answer).encode())
    assert ([hit.douban_id for hit in parsed.hits], parsed.silent) == (ids, ())


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (error("401", "Invalid API KEY"), SourceWall, "BOCHA_API_KEY"),
        (error("403", "You do not have enough money"), SourceUnpaid, "enough money"),
        (error(403, "余额不足"), SourceUnpaid, "余额不足"),
        (error(1234, "账户余额不足，请充值"), SourceUnpaid, "余额"),
        (error("429", "You have reached the request limit"), SourceThrottled, "request limit"),
        (error("400", "Missing parameter query"), SourceUnavailable, "error 400: Missing parameter query"),
        (error("200.5"), SourceUnavailable, "error 200.5"),
        (error(None, None), SourceUnavailable, "no message"),
        (error({"deep": 1}, ["x"]), SourceUnavailable, "error"),
        ({**found(None), "code": 500}, SourceUnavailable, "error 500"),
        ({"code": 200, "data": None}, SourceUnavailable, "without a search response"),
        ({"code": 200, "data": {}}, SourceUnavailable, "without a search response"),
        ({"code": 200, "data": {"webPages": {"value": [page(SUBJECT)]}}}, SourceUnavailable, "search response"),
        (found([]) | {"data": []}, SourceUnavailable, "without a search response"),
        (found("none"), SourceUnavailable, "no list"),
        (found({"value": {"0": page(SUBJECT)}}), SourceUnavailable, "no list"),
        (good("x", {"url": 7}), SourceUnavailable, "without addresses"),
        ([], SourceUnavailable, "JSON list"),
        (None, SourceUnavailable, "JSON NoneType"),
        ("<html><body>请输入验证码</body></html>", SourceWall, "验证码"),
        ('{"code":200,"data":{"_type', SourceUnavailable, "JSON"),
    ],
)
def test_what_is_no_answer_is_never_an_empty_one(body: Any, kind: type[SourceError], words: str) -> None:
    raw = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    with pytest.raises(SourceError, match=words) as caught:
        parse_bocha(raw)
    assert (type(caught.value), caught.value.source) == (kind, "bocha")


def bocha(house: House, url: str, key: str = KEY, **options: Any) -> SearchProvider:
    headers = {"Authorization": f"Bearer {key}"} if key else None
    return search_from({"bocha": url}, lambda name: house.fetcher(name, headers=headers, **options))


def ask(provider: SearchProvider, words: str, form: str = "plain") -> SearchAnswer:
    return provider.search(VideoQuery("片|2002", words=words, form=form), max_age=WEEK)


def test_what_is_asked(library_house: House, source: Source) -> None:
    source.says(good(page(SUBJECT, "无间道 (豆瓣)")))
    provider = bocha(library_house, source.url)
    answer = ask(provider, "无间道 2002 site:movie.douban.com/subject", "site")
    assert [json.loads(body) for body in source.bodies] == [
        {
            "query": "无间道 2002",
            "freshness": "noLimit",
            "summary": False,
            "include": "movie.douban.com|m.douban.com|www.douban.com",
            "count": 20,
        }
    ]
    assert source.headers[0]["authorization"] == f"Bearer {KEY}"
    assert answer.hits == (Hit(1307914, "无间道 (豆瓣)", SUBJECT, snippet="导演: 某人"),)
    assert (answer.provider, answer.requests, answer.full, answer.of_titles) == ("bocha", 1, False, False)
    (number,) = answer.snapshots
    snapshot = library_house.archive.get(number)
    assert (snapshot.source, snapshot.request_key, snapshot.parser_version) == (
        "bocha",
        "search:site:片|2002",
        "bocha-1",
    )
    assert ask(provider, "无间道 2002 site:movie.douban.com/subject", "site").from_cache


@pytest.mark.parametrize(
    ("say", "kind", "words"),
    [
        (Say(error("403", "You do not have enough money"), status=403), SourceUnpaid, "enough money"),
        (Say(error("401", "Invalid API KEY"), status=401), SourceWall, "BOCHA_API_KEY"),
        (Say(error("400", "The API KEY is missing"), status=400), SourceUnavailable, "KEY is missing"),
        (Say(error("429", "limit"), status=429, headers={"Retry-After": "600"}), SourceThrottled, "HTTP 429"),
        (Say("<html>403 Forbidden</html>", status=403), SourceWall, "HTTP 403"),
        (Say({"blocked": True}, status=403), SourceWall, "HTTP 403"),
        (Say({"code": 7}, status=403), SourceWall, "HTTP 403"),
    ],
)
def test_statuses_in_its_own_words(house: House, source: Source, say: Say, kind: type[SourceError], words: str) -> None:
    source.says(say)
    with pytest.raises(SourceError, match=words) as caught:
        ask(bocha(house, source.url), "片")
    assert type(caught.value) is kind
    assert KEY not in str(caught.value)
    assert isinstance(caught.value, SourceThrottled) == (getattr(caught.value, "retry_after", None) == 600)
    if kind in (SourceWall, SourceThrottled):
        assert house.status("bocha").state is GateState.OPEN
