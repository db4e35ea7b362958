"""Reading what a source sent as JSON, and telling walls and error pages from answers. Pure."""

from __future__ import annotations

import html
import json
import re
from typing import Any
from urllib.parse import urlsplit

from douban_pipeline.core.errors import (
    SourceError,
    SourceThrottled,
    SourceUnavailable,
    SourceWall,
    SubjectMissing,
)

_JSONP = re.compile(r"(?:/\*.*?\*/)?\s*[\w$][\w$.\[\]]*\s*\((?P<json>.*)\)\s*;?\s*", re.DOTALL)
_WALL_TEXT = re.compile(
    r"检测到有异常请求|异常请求|验证码|请.{0,4}登录|登录豆瓣|登录跳转|sec\.douban\.com|accounts\.douban\.com|captcha",
    re.IGNORECASE,
)
_WALL_PAGE = re.compile(r"登录|人机验证|passport\.|<title>[^<]*(?:log ?in|sign ?in)", re.IGNORECASE)
_WALL_HOSTS = ("accounts.douban.com", "sec.douban.com")
_WALL_PATH = re.compile(r"/(?:passport|login|signin|captcha|misc/sorry)(?:[/?.]|$)", re.IGNORECASE)
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
    """Return the JSON value in ``body``, which may be wrapped in a JSONP callback.

    Raises:
        SourceWall: It is a login or captcha page.
        SourceUnavailable: It is another page, or nothing that can be read.
    """
    text = _decode(source, body).strip()
    if not text:
        raise SourceUnavailable(source, "an empty answer")
    wrapped = _JSONP.fullmatch(text)
    try:
        return json.loads(wrapped["json"] if wrapped else text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        refuse_page(source, text)
        raise SourceUnavailable(source, "an answer that is no JSON") from None


def refuse_page(source: str, text: str) -> None:
    """Raise the error that a page in place of JSON stands for; return only if ``text`` is no page.

    Raises:
        SourceWall: A login or captcha page.
        SourceUnavailable: Another HTML page.
    """
    refuse_wall(source, text)
    if _is_page(text):
        raise SourceUnavailable(source, "an HTML page in place of JSON")


def refuse_wall(source: str, text: str) -> None:
    """Raise `SourceWall` if ``text``, which is known to be no JSON answer, is a login or captcha page."""
    sign = _WALL_TEXT.search(text) or (_WALL_PAGE.search(text) if _is_page(text) else None)
    if sign:
        raise SourceWall(source, f"a login or captcha page in place of an answer ({sign.group()[:40]})")


def refuse_redirect(source: str, location: str) -> None:
    """Raise `SourceWall` if a redirect leads to a login or captcha page."""
    parts = urlsplit(location)
    host = (parts.hostname or "").lower()
    if host in _WALL_HOSTS or host.startswith(("accounts.", "passport.")) or _WALL_PATH.search(parts.path):
        raise SourceWall(source, f"redirected to a login or captcha page at {host or 'the same host'}")


def error_of_body(source: str, code: object, message: object) -> SourceError:
    """Return the error that an error body (``code``, ``msg``) stands for.

    Only words that speak of the subject make a `SubjectMissing`; an unknown message is an ill source, so that a
    wrong key or a broken interface never reads as "does not exist".
    """
    number = as_int(code)
    text = html.unescape(str(message)).strip()[:200] if isinstance(message, str | int | float) else ""
    said = f"error {code!s:.20}: {text or 'no message'}"
    if _WALL_TEXT.search(text) or number == 403:
        return SourceWall(source, said)
    if number in _THROTTLED_CODES or _THROTTLED.search(text):
        return SourceThrottled(source, said)
    if (number == 404 or _MISSING.search(text)) and not _BROKEN.search(text):
        return SubjectMissing(source, said)
    return SourceUnavailable(source, said)


def as_int(value: object) -> int | None:
    """Return a whole number given as number or digits; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str) and re.fullmatch(r"\s*-?[0-9]{1,15}\s*", value):
        return int(value)
    return None


def _is_page(text: str) -> bool:
    return text.lstrip("\ufeff \t\r\n").startswith("<")


def _decode(source: str, body: bytes) -> str:
    for encoding in ("utf-8-sig", "gb18030"):  # old PHP scripts answer in GBK
        try:
            return body.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise SourceUnavailable(source, "an answer that is neither UTF-8 nor GBK")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
