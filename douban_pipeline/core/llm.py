"""Language models on OpenRouter or any service with OpenAI's chat completions: one JSON object per call."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from douban_pipeline.core.http import Fetcher
from douban_pipeline.core.http_answers import Call
from douban_pipeline.core.llm_answers import SOURCE, ModelAnswerUnusable, ModelRefused, ModelUsage, Reader

__all__ = ["SOURCE", "Completion", "LanguageModel", "ModelAnswerUnusable", "ModelRefused", "ModelUsage", "headers"]

PARSER_VERSION = "openrouter-1"
TEMPERATURE = 0.3
"""Low: the facts are given, and only the wording is generated."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One usable answer.

    Attributes:
        content: The JSON object the model wrote; it has every key the schema requires.
        model: The model that answered, which may be a fallback.
        provider: The provider that ran it.
        cost_usd: Price in US dollars of the answer; 0 if the answer does not state it.
        prompt_tokens: Tokens of the prompt.
        completion_tokens: Tokens of the answer.
        snapshot_id: The archived raw answer.
        from_cache: Whether it came from the archive, so that nothing was paid for it now.
    """

    content: dict[str, Any]
    model: str
    provider: str
    cost_usd: float
    prompt_tokens: int
    completion_tokens: int
    snapshot_id: int
    from_cache: bool


def headers(api_key: str) -> dict[str, str]:
    """Return the headers a `Fetcher` of this source needs; the key appears nowhere else."""
    return {"Authorization": f"Bearer {api_key}", "X-OpenRouter-Title": "douban_pipeline"}


@dataclass(frozen=True, slots=True)
class SchemaForm:
    """OpenRouter's form of request: it includes the schema, and providers that ignore the schema are excluded."""

    def fields(self, schema: Mapping[str, Any], name: str) -> dict[str, Any]:
        """Return the fields of a request other than model, messages and length."""
        return {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": name, "strict": True, "schema": dict(schema)},
            },
            # Without `require_parameters` a provider that does not support the schema drops it silently.
            "provider": {"require_parameters": True, "data_collection": "deny", "allow_fallbacks": True},
            "temperature": TEMPERATURE,
        }


@dataclass(frozen=True, slots=True)
class ObjectForm:
    """The form of DeepSeek and others: any JSON object; the prompt must mention json and show an example.

    Attributes:
        temperature: Temperature.
        thinking: ``enabled`` or ``disabled``, as DeepSeek accepts it; empty omits the field.
    """

    temperature: float = TEMPERATURE
    thinking: str = ""

    def fields(self, _schema: Mapping[str, Any], _name: str) -> dict[str, Any]:
        """Return the fields of a request other than model, messages and length."""
        thinking = {"thinking": {"type": self.thinking}} if self.thinking else {}
        return {"response_format": {"type": "json_object"}, "temperature": self.temperature, **thinking}


class LanguageModel:
    """Requests JSON objects from a language model.

    Args:
        fetcher: A fetcher with the `headers` of the key; its source is `SOURCE`, or another service's name.
        url: Address of the chat completions.
        model: Name of the model, such as ``deepseek/deepseek-v3.2``.
        fallbacks: Models that OpenRouter tries in this order when the first one fails.
        max_tokens: Maximum length of an answer in tokens; a longer one is cut off and unusable.
        form: How the service expects a request for JSON.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        url: str,
        *,
        model: str,
        fallbacks: Sequence[str] = (),
        max_tokens: int = 1200,
        form: SchemaForm | ObjectForm = SchemaForm(),
    ) -> None:
        self._fetcher = fetcher
        self._url = url
        self._model = model
        self._fallbacks = list(fallbacks)
        self._max_tokens = max_tokens
        self._form = form

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        schema: Mapping[str, Any],
        *,
        name: str,
        key: str,
        max_age: timedelta | None = None,
        problem_of: Callable[[dict[str, Any]], str] | None = None,
    ) -> Completion:
        """Make one request.

        Args:
            messages: The conversation; each message has ``role`` and ``content``.
            schema: JSON schema of the answer, an object.
            name: Name of the schema.
            key: The request, as the archive's key. Must hold no secret, and must differ if the messages do.
            max_age: Oldest archived answer to the same key to accept instead of a call, so that a run that was
                killed after it paid does not pay again; None always calls.
            problem_of: Returns what is wrong with the answer's content apart from the schema, ``""`` for nothing.

        Raises:
            ModelAnswerUnusable: An answer came and cannot be used; it holds what was paid.
            SourceThrottled: Too many requests, or too much spending in progress; holds how long to wait, if known.
            SourceUnpaid: Credits, or the key's spending limit, are used up.
            SourceWall: The key is not accepted.
            SourceError: Another matching subclass; see `core.errors`.
        """
        prompt = "\n".join(message["content"] for message in messages)
        reader = Reader(schema, prompt, self._fetcher.source, problem_of)
        request = self._request(messages, schema, name)
        # A Chinese character is about one token, and no other character is more than one.
        estimate = len(json.dumps(request, ensure_ascii=False)) + self._max_tokens
        fetched = self._fetcher.cached(key, max_age, reader.parse) or self._fetcher.post(
            self._url,
            request,
            Call(
                key=key,
                parser_version=PARSER_VERSION,
                parse=reader.parse,
                tokens=estimate,
                refuse=reader.refuse,
                tokens_of=lambda answer: answer.usage.tokens or estimate,
            ),
        )
        usage = fetched.value.usage
        return Completion(
            content=fetched.value.content,
            model=usage.model,
            provider=usage.provider,
            cost_usd=usage.cost_usd,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            snapshot_id=fetched.snapshot_id,
            from_cache=fetched.from_cache,
        )

    def _request(self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any], name: str) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self._model,
            "messages": [dict(message) for message in messages],
            **self._form.fields(schema, name),
            "max_tokens": self._max_tokens,
            "stream": False,
        }
        if self._fallbacks:
            request["models"] = self._fallbacks
        return request
