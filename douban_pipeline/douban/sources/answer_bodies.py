"""What answers of Douban, and of the scripts and searches in front of it, mean: walls, limits, errors. Pure."""

from __future__ import annotations

import html
import re
from typing import Any

from douban_pipeline.core import payload
from douban_pipeline.core.errors import SourceError, SourceThrottled, SourceUnavailable, SourceWall
from douban_pipeline.core.payload import WALL_STATUSES, WALL_WORDS, AnswerRules, as_int
from douban_pipeline.douban.sources.errors import SubjectMissing

RULES = AnswerRules(
    wall_statuses=WALL_STATUSES | {418},  # Douban answers 418 to what it takes for robots
    read_statuses=frozenset({400, 404}),  # some scripts say "no such subject" with these and a JSON body
    wall_words=(*WALL_WORDS, "登录豆瓣", r"sec\.douban\.com", r"accounts\.douban\.com"),
    wall_hosts=frozenset({"accounts.douban.com", "sec.douban.com"}),
)
"""For the fetchers of all sources of this system."""

_THROTTLED = re.compile(r"rate_?limit|too many|频繁|频率|限流|次数.{0,6}(?:上限|用完|超)", re.IGNORECASE)
_THROTTLED_CODES = frozenset({429, 1080, 1309})  # the two long ones are Douban's search and subject limits
_MISSING = re.compile(
    r"(?:条目|影片|电影|影视|视频|资源|页面|内容|数据|subject)\s*(?:ID)?\s*(?:不存在|已删除|被删除)"
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

    Only words that speak of the subject make a `SubjectMissing`; an unknown message is an unhealthy source, so that a
    wrong key or a broken interface never reads as "does not exist".
    """
    number = as_int(code)
    text = html.unescape(str(message)).strip()[:200] if isinstance(message, str | int | float) else ""
    said = f"error {code!s:.20}: {text or 'no message'}"
    if RULES.wall_sign(text) or number == 403:
        return SourceWall(source, said)
    if number in _THROTTLED_CODES or _THROTTLED.search(text):
        return SourceThrottled(source, said)
    if (number == 404 or _MISSING.search(text)) and not _BROKEN.search(text):
        return SubjectMissing(source, said)
    return SourceUnavailable(source, said)
