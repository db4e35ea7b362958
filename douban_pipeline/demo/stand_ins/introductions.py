"""Answers of the simulated OpenRouter: introductions from fact sheets, and its errors; no I/O here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from douban_pipeline.demo.stand_ins import introduction_texts
from douban_pipeline.demo.stand_ins.answers import HttpAnswer, json_answer
from douban_pipeline.demo.stand_ins.introduction_texts import LENGTH, Facts, Length

_PRICE = 0.000_000_5
"""US dollars per token."""

Write = Callable[[Facts, Length, str], str]
"""Maps facts, minimum and maximum length and a salt to a text."""


@dataclass(frozen=True, slots=True)
class IntroRequest:
    """Content of the last user message.

    Attributes:
        facts: The fact sheet.
        length: Minimum and maximum number of Chinese characters.
        corrected: Whether it names the problem of the previous text.
    """

    facts: Facts
    length: Length = LENGTH
    corrected: bool = False


def read_request(message: str) -> IntroRequest:
    """Return the parsed ``message``: a JSON object with ``facts``, ``length`` and ``violations``, or only the facts."""
    asked: Any = None
    start = message.find("{")
    if start >= 0:
        try:
            asked, _ = json.JSONDecoder().raw_decode(message[start:])
        except json.JSONDecodeError:
            asked = None
    if not isinstance(asked, dict):
        return IntroRequest({})
    facts = asked.get("facts")
    if not isinstance(facts, dict):
        return IntroRequest(asked)
    length = asked.get("length")
    least, most = length if isinstance(length, list) and len(length) == 2 else LENGTH
    return IntroRequest(facts, (int(least), int(most)), bool(asked.get("violations")))


def last_user_message(request: Mapping[str, Any]) -> str:
    """Return the text of the last message by the user in an OpenAI chat request, ``""`` if there is none."""
    messages = request.get("messages")
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, list):
                content = "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
            return str(content or "")
    return ""


def chat_answer(
    request: Mapping[str, Any],
    number: int,
    moment: float,
    *,
    facts: Facts | None = None,
    write: Write = introduction_texts.introduction,
) -> HttpAnswer:
    """Return the completion of ``request``: a JSON object that contains an introduction.

    Args:
        request: The request's body. If it asks for a JSON schema, the first text property of the schema gets the
            introduction and the others are left empty; otherwise the key is ``intro``.
        number: The number of this request, for its id.
        moment: Unix seconds.
        facts: Fact sheet to use instead of the one in the last user message.
        write: Writes the introduction.
    """
    message = last_user_message(request)
    if not message:
        return error_answer(400, 'Input required: specify "messages"')
    question = read_request(message)
    salt = "corrected" if question.corrected else ""
    text = write(question.facts if facts is None else facts, question.length, salt)
    return json_answer(completion(request, number, moment, _shaped(request, text)))


def completion(
    request: Mapping[str, Any],
    number: int,
    moment: float,
    content: str,
    *,
    finish: str = "stop",
    refusal: str | None = None,
) -> dict[str, Any]:
    """Return an OpenAI chat completion with ``content``, an estimated token count and its cost in US dollars."""
    models = request.get("models")
    model = request.get("model") or (models[0] if isinstance(models, list) and models else "replay/replay")
    asked = len(json.dumps(request.get("messages"), ensure_ascii=False))
    tokens = {"prompt_tokens": asked, "completion_tokens": len(content), "total_tokens": asked + len(content)}
    return {
        "id": f"gen-{int(moment)}-{number}",
        "provider": "Replay",
        "model": model,
        "object": "chat.completion",
        "created": int(moment),
        "choices": [
            {
                "index": 0,
                "logprobs": None,
                "finish_reason": finish,
                "native_finish_reason": finish,
                "message": {"role": "assistant", "content": content, "refusal": refusal, "reasoning": None},
            }
        ],
        "usage": {**tokens, "cost": round(tokens["total_tokens"] * _PRICE, 8)},
    }


def key_answer() -> HttpAnswer:
    """Return OpenRouter's status of a key."""
    data = {
        "label": "sk-or-v1-replay",
        "limit": None,
        "limit_remaining": None,
        "usage": 0,
        "usage_daily": 0,
        "is_free_tier": False,
        "free_model_daily_requests": {"used": 0, "limit": 1000, "remaining": 1000},
    }
    return json_answer({"data": data})


def error_answer(
    status: int,
    message: str,
    *,
    http_status: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> HttpAnswer:
    """Return an error of OpenRouter; with ``http_status`` 200 only the body has it, as OpenRouter sometimes does."""
    error: dict[str, Any] = {"code": status, "message": message}
    if metadata:
        error["metadata"] = dict(metadata)
    return json_answer({"error": error}, http_status or status, headers)


def _shaped(request: Mapping[str, Any], text: str) -> str:
    wanted: Any = request
    for step in ("response_format", "json_schema", "schema", "properties"):
        wanted = wanted.get(step) if isinstance(wanted, Mapping) else None
    properties: Mapping[str, Any] = wanted if isinstance(wanted, Mapping) else {}
    kinds = {name: spec.get("type") if isinstance(spec, Mapping) else None for name, spec in properties.items()}
    filled: Sequence[str] = [name for name, kind in kinds.items() if kind == "string"][:1] or ["intro"]
    empty = {"string": "", "array": [], "object": {}, "number": 0, "integer": 0, "boolean": False}
    reply = {name: empty.get(str(kind)) for name, kind in kinds.items()}
    return json.dumps({**reply, filled[0]: text}, ensure_ascii=False)


_CLAUSE = re.compile(r"[^\W_]{4,}")
_LETTERS = re.compile(r"[^\W_]")
_MADE_BY = re.compile("《|执导|导演|主演|演员|出演|演出|主要角色")
_LIKE = 0.5
"""Share of a part's characters and pairs in the synopsis from which it is about the plot."""
NOTHING: Mapping[str, Any] = {
    "basis": "none",
    "passages": [],
    "actor": "",
    "action": "",
    "target": "",
    "negated": False,
    "amount": "",
    "modality": "fact",
    "problem": "",
}

Read = Callable[[str, str], Mapping[str, Any]]
"""Maps a part of a text and the synopsis to the answer, of which what is left out is empty."""


def is_reading(message: str) -> bool:
    """Return whether a message requests the proof of a text."""
    asked = _asked(message)
    return "parts" in asked and "synopsis" in asked


def reading(message: str, read: Read | None = None) -> str:
    """Return the model's answer to a message that requests the proof of a text: one statement a part.

    Args:
        message: The message.
        read: Returns the answer on a part; `truthful` by default.
    """
    asked = _asked(message)
    synopsis = str(asked["synopsis"])
    said = [
        {**NOTHING, **(read or truthful)(str(item["text"]), synopsis), "number": item["number"], "text": item["text"]}
        for item in asked["parts"]
    ]
    return json.dumps({"statements": said}, ensure_ascii=False)


def truthful(part: str, synopsis: str) -> dict[str, Any]:
    """Return the basis of a part of a text by `introduction_texts`, which of the plot only repeats a clause."""
    held = [clause for clause in _CLAUSE.findall(synopsis) if clause in part]
    if held:
        return {"basis": "synopsis", "passages": held[:1], "action": held[0]}
    if _MADE_BY.search(part):
        return {"basis": "facts"}
    wanted, told = _pairs(part) | set(_LETTERS.findall(part)), _pairs(synopsis) | set(synopsis)
    if len(wanted & told) > _LIKE * len(wanted) or part[:2] in synopsis or part.startswith("主人公"):
        return {"problem": "原简介没有这样讲"}
    return {"basis": "general"}


def _pairs(text: str) -> set[str]:
    return {text[at : at + 2] for at in range(len(text) - 1)}


def _asked(message: str) -> Mapping[str, Any]:
    try:
        asked = json.loads(message)
    except json.JSONDecodeError:
        return {}
    return asked if isinstance(asked, dict) else {}
