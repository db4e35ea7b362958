"""Errors of sources of Douban's entries, which answers mean them, and when a source that is down is called again."""

from __future__ import annotations

import html
import re

# ruff: noqa: N818 (the names say what happened; all of them are a SourceError)
from datetime import datetime, timedelta
from typing import Any

from douban_pipeline.core import payload
from douban_pipeline.core.archive import ArchiveError
from douban_pipeline.core.errors import (
    GateClosed,
    GateUnreadable,
    NotFound,
    SourceError,
    SourceThrottled,
    SourceUnavailable,
    SourceUnpaid,
    SourceWall,
)
from douban_pipeline.core.payload import WALL_STATUSES, WALL_WORDS, AnswerRules, as_int

SOURCE_DOWN = (ArchiveError, GateClosed, GateUnreadable, SourceThrottled, SourceUnpaid, SourceWall)
"""Errors that say that a source cannot be used at present, whichever video was asked about."""

RETRY_AFTER = timedelta(minutes=5)
"""When to try again if a source that is down does not say."""


def retry_time(error: SourceError, now: datetime) -> datetime:
    """Return when to call a source again that is down: the time it gave, else `RETRY_AFTER` from ``now``."""
    if isinstance(error, GateClosed):
        return max(error.until, now)
    if isinstance(error, SourceThrottled) and error.retry_after:
        return now + timedelta(seconds=error.retry_after)
    return now + RETRY_AFTER


class SubjectMismatch(SourceError):
    """The answer is about another subject than the one asked."""


class SubjectMissing(NotFound):
    """The source says explicitly that this subject does not exist. The source itself is healthy."""


RULES = AnswerRules(
    wall_statuses=WALL_STATUSES | {418},  # Douban answers 418 to what it takes for robots
    read_statuses=frozenset({400, 404}),  # some scripts say "no such subject" with these and a JSON body
    wall_words=(
        *WALL_WORDS,
        "登录豆瓣",
        "need_login",
        "需要登录",
        r"error code: 0+1?0*4\b",
        r"sec\.douban\.com",
        r"accounts\.douban\.com",
    ),
    wall_hosts=frozenset({"accounts.douban.com", "sec.douban.com"}),
)
"""For the fetchers of all sources of this system."""

_THROTTLED = re.compile(r"rate_?limit|too many|频繁|频率|限流|次数.{0,6}(?:上限|用完|超)", re.IGNORECASE)
_WALL_CODES = frozenset({103, 403, 1309})  # Douban: login wanted; address limited until it logs in
_THROTTLED_CODES = frozenset({429, 1080})  # the long one is Douban's search limit
_MISSING = re.compile(
    r"(?:条目|影片|电影|影视|视频|资源|页面|内容|数据|subject)\s*(?:ID)?\s*(?:不存在|(?:已经?)?被?删除|已删除|(?:豆瓣)?不收录)"
    r"|法律法规.{0,20}(?:无法显示|不予显示|等待审核)"
    r"|没有找到|未找到|not[ _]?found|\b404\b|^不存在",
    re.IGNORECASE,
)
_BROKEN = re.compile(
    r"接口|方法|控制器|模块|路由|密钥|用户|账号|\b(?:key|token|route|method|interface|controller|action|file|api)\b",
    re.IGNORECASE,
)


def read_json(source: str, body: bytes) -> Any:
    """Return the JSON value in ``body``; raises as `core.payload.read_json` does, by this system's `RULES`."""
    return payload.read_json(source, body, RULES)


def error_of_body(source: str, code: object, message: object) -> SourceError:
    """Return the error that an error body (``code``, ``msg``) means.

    Only words that speak of the subject make a `SubjectMissing`; an unknown message is a failure, so that a wrong key
    or a broken interface never reads as "does not exist".
    """
    number = as_int(code)
    text = html.unescape(str(message)).strip()[:200] if isinstance(message, str | int | float) else ""
    said = f"error {code!s:.20}: {text or 'no message'}"
    if RULES.wall_sign(text) or number in _WALL_CODES:
        return SourceWall(source, said)
    if number in _THROTTLED_CODES or _THROTTLED.search(text):
        return SourceThrottled(source, said)
    if (number == 404 or _MISSING.search(text)) and not _BROKEN.search(text):
        return SubjectMissing(source, said)
    return SourceUnavailable(source, f"an answer without data (code {code!s:.20}: {text or 'no message'})")
