"""Failures in Chinese: every message that sources raise is known, and a page finds what it says."""

from __future__ import annotations

import re

import pytest

from douban_pipeline.core.failure_words import FAILURES, codes_saying, failure_text, messages_saying
from douban_pipeline.feeds.failures import CANONICAL

NAMES = {"douban": "豆瓣", "searxng": "SearXNG 搜索"}


@pytest.mark.parametrize("message", sorted(CANONICAL))
def test_every_canonical_failure_is_chinese(message: str):
    assert not re.search(r"[A-Za-z]{3,}", failure_text(message).replace("HTTP", ""))


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
