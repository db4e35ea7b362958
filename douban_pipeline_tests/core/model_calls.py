"""What is asked of the language model over real HTTP, and what it answers, for the tests of its client."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from douban_pipeline.core.errors import SourceError
from douban_pipeline.core.llm import SOURCE, Completion, LanguageModel, ModelUsage, headers
from douban_pipeline_tests.harness.fixtures.scripted_source import House, Say, Source

KEY = "sk-or-v1-very-secret"
SCHEMA = {
    "type": "object",
    "properties": {"intro": {"type": "string"}, "used": {"type": "array"}},
    "required": ["intro"],
    "additionalProperties": False,
}
PROMPT = "为《霸王别姬》写一段简介，只写给出的事实。"
MESSAGES = [{"role": "system", "content": "写简介"}, {"role": "user", "content": PROMPT}]
PAID = {"prompt_tokens": 300, "completion_tokens": 90, "total_tokens": 390, "cost": 0.00042}
USAGE = ModelUsage("deepseek/deepseek-v3.2", "DeepInfra", 0.00042, 300, 90)


def answer(
    content: Any = '{"intro": "一段简介。"}', *, usage: Any = PAID, finish: Any = "stop", **more: Any
) -> dict[str, Any]:
    message = {"role": "assistant", "content": content, "refusal": None, **more.pop("message", {})}
    choice = {"index": 0, "finish_reason": finish, "message": message, **more.pop("choice", {})}
    model = {"model": "deepseek/deepseek-v3.2", "provider": "DeepInfra"}
    return {"id": "gen-1", **model, "choices": [choice], "usage": usage, **more}


def error(code: Any, *, status: int | None = None, wait: str = "", message: str = "It failed", **metadata: Any) -> Say:
    body = {"error": {"code": code, "message": message, **({"metadata": metadata} if metadata else {})}}
    return Say(body, status=status or code, headers={"Retry-After": wait} if wait else {})


def model(house: House, url: str, **options: Any) -> LanguageModel:
    return LanguageModel(house.fetcher(SOURCE, headers=headers(KEY)), url, model="deepseek/deepseek-v3.2", **options)


def complete(asked: LanguageModel, *, key: str = "intro:1", max_age: timedelta | None = None) -> Completion:
    return asked.complete(MESSAGES, SCHEMA, name="intro", key=key, max_age=max_age)


def failure(house: House, source: Source, *said: Say | dict[str, Any] | str | bytes) -> SourceError:
    source.says(*said)
    with pytest.raises(SourceError) as caught:
        complete(model(house, source.url))
    return caught.value
