"""Parses OpenRouter's answers: the model's JSON and its cost, or the reported error. Pure.

Answers follow OpenAI's chat completions; the errors are described at
https://openrouter.ai/docs/api_reference/errors-and-debugging and https://openrouter.ai/docs/api_reference/limits.
They are distinguished by codes and by ``error.metadata``; refusals of a filter without a code by their text.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import httpx

from douban_pipeline.core.errors import (
    SourceError,
    SourceThrottled,
    SourceUnavailable,
    SourceUnpaid,
    SourceWall,
)
from douban_pipeline.core.payload import as_int, read_json

logger = logging.getLogger(__name__)

SOURCE = "openrouter"
"""Name of the source at the gate and in the archive."""

_LONGEST_REASON = 200
_REJECTED = frozenset({400, 413, 422})
_FILTERED = re.compile(
    r"content.?(?:exists.?risk|filter|policy)|high risk|data.?inspection|sensitive content|moderation|敏感|违规",
    re.IGNORECASE,
)
"""What services without codes for it say when a filter of contents refuses an input."""
_OBJECT_BEGINS = re.compile(r"\{\s*[\"}]")
_QUOTE = 12
"""If an error message repeats this many characters of the prompt in a row, it counts as quoting the prompt."""
_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str, "array": list, "object": dict, "boolean": bool, "integer": int, "number": (int, float),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """Tokens and cost of one call.

    Attributes:
        model: The model that answered, which may be a fallback; ``""`` when none did.
        provider: The provider that ran it.
        cost_usd: Price in US dollars; 0 if the answer does not state it.
        prompt_tokens: Tokens of the prompt.
        completion_tokens: Tokens of the answer.
    """

    model: str = ""
    provider: str = ""
    cost_usd: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of prompt and answer together."""
        return self.prompt_tokens + self.completion_tokens


class ModelAnswerUnusable(SourceUnavailable):
    """The model's answer does not satisfy the request: a fault of what was asked, since the source answers. It may have
    cost money all the same.

    Attributes:
        usage: Tokens and cost of the call.
    """

    healthy: ClassVar[bool | None] = True

    def __init__(self, source: str, reason: str, usage: ModelUsage) -> None:
        super().__init__(source, reason)
        self.args = (source, reason, usage)  # so that the error survives pickling
        self.usage = usage


class ModelRefused(ModelAnswerUnusable):
    """The model, or a moderation before it, refuses to write about this input: repeating it fails again."""


class ModelBrokeOff(ModelAnswerUnusable):
    """The service failed while the model answered, after that had cost money."""

    healthy: ClassVar[bool | None] = False


class ModelRejected(SourceUnavailable):
    """The service rejects the request as such (400, 413, 422): repeating it fails again."""

    healthy: ClassVar[bool | None] = True


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A usable answer: the JSON object the model wrote, with tokens and cost."""

    content: dict[str, Any]
    usage: ModelUsage


@dataclass(frozen=True, slots=True)
class Reader:
    """Parses the answers to one request.

    Attributes:
        schema: The required form of the content.
        prompt: The prompt's text, which no error may quote.
        source: Name of the source at the gate and in errors.
        problem_of: Returns what is wrong with the content apart from the schema, ``""`` for nothing.
    """

    schema: Mapping[str, Any]
    prompt: str
    source: str = SOURCE
    problem_of: Callable[[dict[str, Any]], str] | None = None

    def refuse(self, status: int, headers: httpx.Headers, body: bytes) -> None:
        """Raise the exception for an HTTP error that carries OpenRouter's own error object."""
        if 200 <= status < 300:
            return
        try:
            answer = read_json(self.source, body)
        except SourceError:
            answer = None  # such as a proxy's error page: the general rules handle it
        error = answer.get("error") if isinstance(answer, dict) else None
        if not isinstance(error, dict) and status in _REJECTED:
            raise ModelRejected(self.source, f"HTTP {status}")
        if isinstance(error, dict):
            wait = headers.get("retry-after", "").strip()
            if status == 429 and wait and not _is_seconds(wait):
                return  # a date, which the general rules parse
            raise self._error(status, error, float(wait) if _is_seconds(wait) else None)

    def parse(self, body: bytes) -> ModelAnswer:
        """Parse an answer with status 200, whose body may still be an error."""
        answer = read_json(self.source, body)
        if not isinstance(answer, dict):
            raise SourceUnavailable(self.source, "an answer that is not an object")
        usage = _usage(answer, priced=self.source == SOURCE)
        choices = answer.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        error = answer.get("error") or choice.get("error")
        if error or choice.get("finish_reason") == "error":
            raise self._error_in_answer(error if isinstance(error, dict) else {}, usage)
        if not choice:
            raise ModelBrokeOff(self.source, "an answer without choices", usage)
        return ModelAnswer(self._content(choice, usage), usage)

    def _content(self, choice: Mapping[str, Any], usage: ModelUsage) -> dict[str, Any]:
        message = choice.get("message")
        fields: Mapping[str, Any] = message if isinstance(message, dict) else {}
        finish = choice.get("finish_reason")
        if finish == "content_filter" or fields.get("refusal"):
            raise ModelRefused(self.source, "the model refused to write", usage)
        if finish == "length":
            raise ModelAnswerUnusable(self.source, "the answer was cut off at the maximum length", usage)
        if finish == "insufficient_system_resource":  # DeepSeek, under load
            raise ModelBrokeOff(self.source, "the service broke the answer off", usage)
        if finish not in ("stop", None):
            raise ModelAnswerUnusable(self.source, f"the answer ended with {finish!s:.40}", usage)
        text = fields.get("content")
        if not isinstance(text, str) or not text.strip():
            raise ModelAnswerUnusable(self.source, "an answer without content", usage)
        content, problem = the_object(text, self._problem)
        if content is None:
            raise ModelAnswerUnusable(self.source, problem, usage)
        return content

    def _problem(self, content: Any) -> str:
        problem = misfit(content, self.schema)
        return problem or (self.problem_of(content) if self.problem_of is not None else "")

    def _error_in_answer(self, error: Mapping[str, Any], usage: ModelUsage) -> SourceError:
        found = self._error(as_int(error.get("code")), error, None)
        if isinstance(found, ModelRefused):
            return ModelRefused(self.source, found.reason, usage)
        # Not retryable, because money was spent: a retry inside the fetcher would hide it from the ledger.
        return ModelBrokeOff(self.source, found.reason, usage) if usage.cost_usd else found

    def _error(self, code: int | None, error: Mapping[str, Any], wait: float | None) -> SourceError:
        details = error.get("metadata")
        metadata: Mapping[str, Any] = details if isinstance(details, dict) else {}
        limit, cause = str(metadata.get("limit_source") or ""), metadata.get("reason")
        reason = self._reason(code, error, metadata)
        if code == 401:
            return SourceWall(self.source, reason)
        if "weight_exceeds_budget" in (limit, cause):
            return SourceUnavailable(self.source, reason)
        if limit == "openrouter_in_flight_budget":
            return SourceThrottled(self.source, reason, wait, retryable=wait is not None)
        if code == 402 or (code == 403 and limit):
            return SourceUnpaid(self.source, reason)
        flagged = code == 403 and metadata.keys() & {"reasons", "flagged_input", "patterns"}
        said = " ".join(str(error.get(name)) for name in ("code", "type", "message"))
        if flagged or (code in _REJECTED | {403, 451} and _FILTERED.search(said)):
            return ModelRefused(self.source, reason, ModelUsage())
        if code == 429 or (code == 503 and wait is not None):
            return SourceThrottled(self.source, reason, wait, retryable=wait is not None)
        if code in _REJECTED:
            return ModelRejected(self.source, reason)
        return SourceUnavailable(self.source, reason, retryable=code is not None and (code == 408 or code >= 500))

    def _reason(self, code: int | None, error: Mapping[str, Any], metadata: Mapping[str, Any]) -> str:
        """Return the error in one short line that quotes neither the prompt nor a key."""
        kinds = (metadata.get(name) for name in ("limit_source", "reason", "error_type", "provider_code"))
        named = ", ".join(dict.fromkeys(_one_line(kind, 40) for kind in kinds if isinstance(kind, str) and kind))
        message = _one_line(error.get("message"), _LONGEST_REASON)
        if "sk-" in message or self._is_quoted_in(message):
            message = ""
        error_text = f"error {code if code is not None else 'without a code'}"
        parts = [error_text + (f" ({named})" if named else ""), message]
        return ": ".join(part for part in parts if part)[:_LONGEST_REASON]

    def _is_quoted_in(self, message: str) -> bool:
        asked = _one_line(self.prompt, len(self.prompt))
        return any(message[start : start + _QUOTE] in asked for start in range(len(message) - _QUOTE + 1))


def the_object(text: str, problem_of: Callable[[Any], str]) -> tuple[dict[str, Any] | None, str]:
    """Return the one object of a model's text that fits, with ``""``; or None and what is wrong.

    Around it may be what models write around an object: their thoughts, a remark, a Markdown fence. What begins like an
    object and cannot be read is never searched for smaller ones: a text that the model quotes may hold them.

    Args:
        text: The text.
        problem_of: Returns what is wrong with a JSON value, ``""`` for nothing.
    """
    found, problem = [], "the answer's content is not strict JSON"
    try:
        for value in _values(text):
            wrong = problem_of(value)
            if not wrong and value not in found:
                found.append(value)
            problem = wrong or problem
    except (ValueError, RecursionError):
        return None, problem
    if len(found) > 1:
        return None, "the answer's content is more than one object"
    return (found[0], "") if found else (None, problem)


def _values(text: str) -> Iterator[Any]:
    """Yield the JSON value that a text is, else the objects in it after the model's thoughts.

    Raises:
        ValueError: What begins like an object cannot be read, repeats a key, or holds NaN, Infinity or half a surrogate
            pair.
        RecursionError: It is nested too deeply.
    """
    try:
        value, end = _DECODER.raw_decode(text.strip())
    except ValueError:
        end = -1
    if end == len(text.strip()):
        yield _encodable(value)
        return
    _, ended, rest = text.rpartition("</think>")
    if not ended and "<think>" in text.partition("{")[0]:
        return  # thoughts that were cut off, in which an object is a draft
    place = 0
    while begin := _OBJECT_BEGINS.search(rest, place):
        value, place = _DECODER.raw_decode(rest, begin.start())
        yield _encodable(value)


def _encodable(value: Any) -> Any:
    json.dumps(value, ensure_ascii=False).encode()
    return value


def misfit(content: Any, schema: Mapping[str, Any]) -> str:
    """Return how ``content`` breaks ``schema``, ``""`` if it does not; checks required keys and plain types."""
    if not isinstance(content, dict):
        return "the answer's content is not an object"
    if missing := [key for key in schema.get("required", ()) if key not in content]:
        return f"the answer lacks {', '.join(missing)}"
    for key, wanted in schema.get("properties", {}).items():
        kind = wanted.get("type")
        expected = _TYPES.get(kind) if isinstance(kind, str) else None
        value = content.get(key)
        wrong_bool = isinstance(value, bool) and kind != "boolean"
        if key in content and expected and (wrong_bool or not isinstance(value, expected)):
            return f"the answer's {key} is no {kind}"
    return ""


def _usage(answer: Mapping[str, Any], *, priced: bool) -> ModelUsage:
    found = answer.get("usage")
    usage: Mapping[str, Any] = found if isinstance(found, dict) else {}
    cost = usage.get("cost")
    known = isinstance(cost, int | float) and not isinstance(cost, bool) and math.isfinite(cost) and cost >= 0
    result = ModelUsage(
        model=_one_line(answer.get("model"), 100),
        provider=_one_line(answer.get("provider"), 100),
        cost_usd=float(cost) if known and cost is not None else 0.0,
        prompt_tokens=max(as_int(usage.get("prompt_tokens")) or 0, 0),
        completion_tokens=max(as_int(usage.get("completion_tokens")) or 0, 0),
    )
    if priced and result.tokens and not known:
        logger.warning("%s: an answer of %s does not state its cost; it is counted as free", SOURCE, result.model)
    return result


def _one_line(value: object, longest: int) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return "".join(character for character in text if character.isprintable())[:longest]


def _is_seconds(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is repeated")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_distinct, parse_constant=_refuse_constant, strict=False)
"""Takes line breaks inside of texts, which models leave unescaped."""
