"""Failures in Chinese: every message that sources raise is known, and a page finds what it says."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import douban_pipeline
from douban_pipeline.core.errors import SourceError
from douban_pipeline.core.failure_words import FAILURES, codes_saying, failure_text, messages_saying
from douban_pipeline.feeds.failures import CANONICAL

NAMES = {"douban": "豆瓣", "searxng": "SearXNG 搜索"}


@pytest.mark.parametrize("message", sorted(CANONICAL))
def test_every_canonical_failure_is_chinese(message: str):
    assert not re.search(r"[A-Za-z]{3,}", failure_text(message).replace("HTTP", ""))


def named(kind: type) -> Iterator[str]:
    yield kind.__name__
    for each in kind.__subclasses__():
        yield from named(each)


def errors() -> set[str]:
    """Return the names of all errors of sources, whatever other tests have loaded."""
    for module in ("core.llm_answers", "douban.sources.errors", "feeds.clients.syndication", "tmdb.clients.errors"):
        importlib.import_module(f"douban_pipeline.{module}")
    return {*named(SourceError)}


def raised() -> Iterator[str]:
    """Yield every reason that the code gives an error of a source, what varies as a name."""
    known = errors()
    for path in Path(douban_pipeline.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in known and len(call.args) > 1:
                reason = call.args[1].value if isinstance(call.args[1], ast.Subscript) else call.args[1]
                if isinstance(reason, ast.Constant) and isinstance(reason.value, str):
                    yield reason.value
                elif isinstance(reason, ast.JoinedStr):
                    yield "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in reason.values)


def test_every_reason_that_is_raised_is_chinese():
    # Protocols, names, and what is typed as it is.
    known = re.compile(
        r"https?|HTTP|JSON( Feed)?|XML|TMDB|WeRSS|UTF|GBK|code|list|results|null|vod_id|open\.bochaai\.com|[A-Z_]+_URL"
    )
    reasons = sorted(set(raised()))
    assert len(reasons) > 30
    english = [each for each in reasons if re.search(r"[A-Za-z]{3,}", known.sub("", failure_text(each)))]
    assert english == []


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("", ""),
        ("douban: HTTP 503", "豆瓣：HTTP 503"),
        ("douban: no connection (ConnectError)", "豆瓣：连接不上"),
        ("no connection: example.org cannot be resolved", "连接不上：域名 example.org 无法解析"),
        ("feed.example: no complete answer within 20 s", "feed.example: 20 秒内没有完整应答"),
        (
            "searxng: an incomplete search; searxng: no engine answered: bing, brave",
            "SearXNG 搜索：搜索不完整; SearXNG 搜索：没有搜索引擎应答：bing, brave",
        ),
        ("douban: asked for 7, answered 8", "豆瓣：查询 7，得到 8"),
        ("not a feed: it cannot be read (SAXParseException)", "不是订阅源：无法读取"),
        ("MP_SEAM：no connection (ConnectError)", "MP_SEAM：连接不上"),
        (
            "4 次调用都失败：error 400 (invalid_request_error): Content Exists Risk",
            "4 次调用都失败：服务报错 400（invalid_request_error）：Content Exists Risk",
        ),
        ("error 503: busy", "服务报错 503：busy"),
        ("the answer's score does not fit (int_parsing)", "模型给出的 score 不合要求（int_parsing）"),
        ("今日请求配额已用完（9 / 9 次）", "今日请求配额已用完（9 / 9 次）"),
        ("something that nobody knows {}", "something that nobody knows {}"),
    ],
)
def test_a_stored_failure_is_told_in_chinese(message: str, text: str):
    assert failure_text(message, NAMES) == text


def test_what_a_page_says_is_found_by_the_message_that_is_stored():
    assert "%no connection%" in messages_saying("连接不上")
    assert list(messages_saying("秒内没有完整应答")) == ["%no complete answer within % s%"]
    assert list(messages_saying("no connection")) == [], "what is stored is looked for anyway"
    assert codes_saying("排队", {"PENDING": "排队", "FAIL": "失败"}) == ["PENDING"]


def test_what_varies_is_said_in_both_languages():
    for message, text in FAILURES.items():
        assert message.count("{}") == text.count("{}"), message
