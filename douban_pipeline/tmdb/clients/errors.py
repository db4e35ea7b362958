"""What TMDB's answers mean, by status and by the code in their bodies. Pure."""

# ruff: noqa: N818 (the names say what happened; each of them is a SourceError)

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from douban_pipeline.core.errors import NotFound, SourceError, SourceThrottled, SourceUnavailable
from douban_pipeline.core.payload import AnswerRules, read_json

RULES = AnswerRules(
    wall_statuses=frozenset(),
    read_statuses=frozenset({400, 401, 403, 404, 405, 406, 422}),
    wall_words=("captcha verification required",),
)
"""A refused key is not a wall: the gate must open as soon as the key is corrected."""
EXPORT_RULES = AnswerRules(wall_statuses=frozenset(), wall_words=RULES.wall_words)
"""The host of the lists answers 403 for a list that it does not have."""

_KEY_CODES = frozenset({3, 7, 10, 14, 16, 17, 30, 35})
_NOT_FOUND_CODES = frozenset({6, 34, 37})
_THROTTLED = 25
_TOO_MANY_APPENDED = 27


class KeyRefused(SourceUnavailable):
    """TMDB does not accept the key or token (7), or the key has no permission."""


class RequestRefused(SourceError):
    """TMDB refuses the request (a page above 500, more than 20 parts appended, …); the source itself is healthy."""

    healthy = True


class SchemaChanged(SourceUnavailable):
    """An answer without required content: TMDB changed its format, or something else answered."""


def read_answer_body(source: str, body: bytes, status_of_key: str) -> Any:
    """Return the JSON of an answer.

    Args:
        status_of_key: The settings of key and token, for the message.

    Raises:
        NotFound: TMDB does not have what was requested (34).
        KeyRefused: It does not accept the key (7).
        SourceThrottled: Too many requests (25).
        RequestRefused: It refuses the request (27 and others).
        SourceUnavailable: The body is truncated, a page, or not JSON.
    """
    value = read_json(source, body, RULES)
    if not isinstance(value, Mapping) or "status_code" not in value or value.get("success") is True:
        return value
    code = value["status_code"]
    said = _said(value)
    if code in _NOT_FOUND_CODES:
        raise NotFound(source, f"there is no such thing ({code})")
    if code in _KEY_CODES:
        raise KeyRefused(source, f"the key is refused ({code}): {said}; see {status_of_key}")
    if code == _THROTTLED:
        raise SourceThrottled(source, f"too many requests ({_THROTTLED})")
    if code == _TOO_MANY_APPENDED:
        raise RequestRefused(source, f"too many things to append ({_TOO_MANY_APPENDED})")
    if code in (9, 11, 24, 43, 46):
        raise SourceUnavailable(source, f"TMDB reports an error ({code}): {said}", retryable=True)
    raise RequestRefused(source, f"refused ({code}): {said}")


def _said(value: Mapping[str, Any]) -> str:
    """Return TMDB's own message, shortened: it is outside text."""
    return " ".join(str(value.get("status_message") or "").split())[:120]
