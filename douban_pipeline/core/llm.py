"""Language models behind OpenRouter, or any service with OpenAI's chat completions: one JSON object a call."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from douban_pipeline.core.http import Fetcher
from douban_pipeline.core.llm_answers import SOURCE, ModelAnswerUnusable, ModelRefused, ModelUsage, Reader

__all__ = ["SOURCE", "Completion", "LanguageModel", "ModelAnswerUnusable", "ModelRefused", "ModelUsage", "headers"]

PARSER_VERSION = "openrouter-1"
TEMPERATURE = 0.3
"""Low: the facts are given, and only their wording is asked for."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One usable answer.

    Attributes:
        content: The JSON object the model wrote; it has every key the schema requires.
        model: The model that answered, which may be a fallback.
        provider: Who ran it.
        cost_usd: Price in US dollars, paid when the answer came; 0 when the answer does not say.
        prompt_tokens: Tokens asked.
        completion_tokens: Tokens answered.
        snapshot_id: The archived raw answer.
        from_cache: Whether it was taken from the archive, so that nothing was paid for it now.
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
    """Return the headers that a `Fetcher` of this source needs; they are the only place of the key."""
    return {"Authorization": f"Bearer {api_key}", "X-OpenRouter-Title": "douban_pipeline"}


@dataclass(frozen=True, slots=True)
class SchemaForm:
    """Asks as OpenRouter wants it: the schema goes with the request, and providers that ignore it are left out."""

    fences = False

    def fields(self, schema: Mapping[str, Any], name: str) -> dict[str, Any]:
        """Return what a request holds beside model, messages and length."""
        return {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": name, "strict": True, "schema": dict(schema)},
            },
            # Without `require_parameters` a provider that does not know the schema drops it silently.
            "provider": {"require_parameters": True, "data_collection": "deny", "allow_fallbacks": True},
            "temperature": TEMPERATURE,
        }


@dataclass(frozen=True, slots=True)
class ObjectForm:
    """Asks as DeepSeek and others have it: any JSON object; the prompt has to name json and show an example.

    Attributes:
        temperature: Temperature.
        thinking: ``enabled`` or ``disabled``, as DeepSeek takes it; empty sends nothing of it.
    """

    temperature: float = TEMPERATURE
    thinking: str = ""

    fences = True

    def fields(self, _schema: Mapping[str, Any], _name: str) -> dict[str, Any]:
        """Return what a request holds beside model, messages and length."""
        thinking = {"thinking": {"type": self.thinking}} if self.thinking else {}
        return {"response_format": {"type": "json_object"}, "temperature": self.temperature, **thinking}


class LanguageModel:
    """Asks for JSON objects.

    Args:
        fetcher: A fetcher with the `headers` of the key; its source is `SOURCE`, or another service's name.
        url: Address of the chat completions.
        model: Name of the model, such as ``deepseek/deepseek-v3.2``.
        fallbacks: Models that OpenRouter tries in this order when the first one fails.
        max_tokens: Most tokens of an answer; a longer one is cut off and unusable.
        form: How the service wants to be asked for JSON.
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
        """Ask once.

        Args:
            messages: The conversation; each message has ``role`` and ``content``.
            schema: JSON schema of the answer, an object.
            name: Name of the schema.
            key: What is asked, as the archive's key. Must hold no secret, and must differ where the messages do.
            max_age: Oldest archived answer to the same key to accept instead of a call, so that a run that was
                killed after it paid does not pay again; None always calls.
            problem_of: Returns what is wrong with the answer's content beside the schema, ``""`` for nothing.

        Raises:
            ModelAnswerUnusable: An answer came and cannot be used; it says what was paid for it.
            SourceThrottled: Too many requests, or too much money under way; it says how long to wait, if known.
            SourceUnpaid: Credits, or what the key may spend, are used up.
            SourceWall: The key is not accepted.
            SourceError: Of another kind that fits; see `core.errors`.
        """
        prompt = "\n".join(message["content"] for message in messages)
        reader = Reader(schema, prompt, self._fetcher.source, self._form.fences, problem_of)
        request = self._request(messages, schema, name)
        # A Chinese character is about one token, and no other character is more than one.
        estimate = len(json.dumps(request, ensure_ascii=False)) + self._max_tokens
        fetched = self._fetcher.cached(key, max_age, reader.parse) or self._fetcher.post(
            self._url,
            request,
            key=key,
            parser_version=PARSER_VERSION,
            parse=reader.parse,
            tokens=estimate,
            refuse=reader.refuse,
            tokens_of=lambda answer: answer.usage.tokens or estimate,
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
