"""Parses a source's JSON, and distinguishes walls and error pages from answers. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from douban_pipeline.core.errors import SourceUnavailable, SourceWall

WALL_STATUSES = frozenset({401, 403})
WALL_WORDS = ("检测到有异常请求", "异常请求", "验证码", "请.{0,4}登录", "登录跳转", "captcha")
"""Patterns found in login and captcha pages."""

_JSONP = re.compile(r"(?:/\*.*?\*/)?\s*[\w$][\w$.\[\]]*\s*\((?P<json>.*)\)\s*;?\s*", re.DOTALL)
_WALL_PAGE = re.compile(r"登录|人机验证|passport\.|<title>[^<]*(?:log ?in|sign ?in)", re.IGNORECASE)
_WALL_PATH = re.compile(r"/(?:passport|login|signin|captcha|misc/sorry)(?:[/?.]|$)", re.IGNORECASE)
_WALL_HOSTS = ("accounts.", "passport.")


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """What answers of one source mean, where sources differ.

    Attributes:
        wall_statuses: HTTP statuses that mean that the source takes us for a robot, or requires a login.
        read_statuses: HTTP statuses other than 2xx whose body is read like any answer's.
        wall_words: Patterns that occur in login and captcha pages, and in no answer.
        wall_hosts: Hosts that show nothing but login and captcha pages.
    """

    wall_statuses: frozenset[int] = WALL_STATUSES
    read_statuses: frozenset[int] = frozenset()
    wall_words: tuple[str, ...] = WALL_WORDS
    wall_hosts: frozenset[str] = frozenset()

    def is_read(self, status: int) -> bool:
        """Return whether an answer of this HTTP status is parsed, when received or when read from the archive."""
        return 200 <= status < 300 or status in self.read_statuses

    def wall_sign(self, text: str) -> re.Match[str] | None:
        """Return the first of the ``wall_words`` in ``text``."""
        return _any_of(self.wall_words).search(text)

    def refuse_wall(self, source: str, text: str) -> None:
        """Raise `SourceWall` if ``text``, which is known not to be JSON, is a login or captcha page."""
        sign = self.wall_sign(text) or (_WALL_PAGE.search(text) if _is_page(text) else None)
        if sign:
            raise SourceWall(source, f"a login or captcha page instead of an answer ({sign.group()[:40]})")

    def refuse_redirect(self, source: str, location: str) -> None:
        """Raise `SourceWall` if a redirect leads to a login or captcha page."""
        parts = urlsplit(location)
        host = (parts.hostname or "").lower()
        if host in self.wall_hosts or host.startswith(_WALL_HOSTS) or _WALL_PATH.search(parts.path):
            raise SourceWall(source, f"redirected to a login or captcha page at {host or 'the same host'}")


DEFAULT_RULES = AnswerRules()


def read_json(source: str, body: bytes, rules: AnswerRules = DEFAULT_RULES) -> Any:
    """Return the JSON value in ``body``, which may be wrapped in a JSONP callback.

    Raises:
        SourceWall: It is a login or captcha page.
        SourceUnavailable: It is another page, or cannot be parsed.
    """
    text = _decode(source, body).strip()
    if not text:
        raise SourceUnavailable(source, "an empty answer")
    wrapped = _JSONP.fullmatch(text)
    try:
        return json.loads(wrapped["json"] if wrapped else text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        rules.refuse_wall(source, text)
        page = _is_page(text)
        raise SourceUnavailable(
            source, "an HTML page instead of JSON" if page else "an answer that is not JSON"
        ) from None


def as_int(value: object) -> int | None:
    """Return an integer given as a number or as digits; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str) and re.fullmatch(r"\s*-?[0-9]{1,15}\s*", value):
        return int(value)
    return None


@cache
def _any_of(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


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
