"""What the replayed OpenRouter says: introductions that hold to the fact sheet they are given; no I/O here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from douban_pipeline.demo.answers import Answer, json_answer

_NAMES = {
    "title": ("title", "vod_name", "name", "片名", "标题", "中文名"),
    "year": ("year", "vod_year", "年份", "上映年份", "首播年份"),
    "regions": ("regions", "region", "area", "vod_area", "地区", "制片地区", "国家/地区"),
    "genres": ("genres", "genre", "class", "vod_class", "类型"),
    "kind": ("kind", "种类", "形式"),
    "directors": ("directors", "director", "vod_director", "导演"),
    "actors": ("actors", "actor", "vod_actor", "主演", "演员"),
    "duration": ("duration_minutes", "duration_min", "duration", "vod_duration", "片长"),
    "episodes": ("episodes", "vod_total", "集数"),
}
_KINDS = {"film": "电影", "movie": "电影", "series": "剧集", "tv": "剧集", "variety": "综艺", "animation": "动画",
          "documentary": "纪录片", "short": "短片"}  # fmt: skip
_LISTS = re.compile(r"\s*[,，、/;；]\s*")
_PRICE = 0.000_000_5
"""US dollars a token."""

Facts = dict[str, list[str]]


def fact_sheet(message: str) -> Facts:
    """Return the facts in ``message``: a JSON object anywhere in it, or lines such as ``片名：霸王别姬``."""
    given: dict[str, Any] = {}
    start = message.find("{")
    if start >= 0:
        try:
            found, _ = json.JSONDecoder().raw_decode(message[start:])
        except json.JSONDecodeError:
            found = None
        if isinstance(found, dict):
            nested = [value for value in found.values() if isinstance(value, dict)]
            given = {key: value for part in (*nested, found) for key, value in part.items()}
    if not given:
        lines = (re.match(r"[\s\-*]*([^:：]{1,20})[:：]\s*(.+)", line) for line in message.splitlines())
        given = {line[1].strip(): line[2] for line in lines if line}
    facts: Facts = {}
    for fact, names in _NAMES.items():
        value = next((given[name] for name in names if given.get(name)), None)
        if value is not None:
            many = fact in ("regions", "genres", "directors", "actors")
            items = value if isinstance(value, list) else _LISTS.split(str(value)) if many else [value]
            facts[fact] = [str(item).strip("《》 ") for item in items]
    return facts


def introduction(facts: Facts) -> str:
    """Return a few plain sentences that say nothing but ``facts``."""
    title = "、".join(facts.get("title", [])) or "本片"
    kind = _KINDS.get("".join(facts.get("kind", [])), "".join(facts.get("kind", [])) or "作品")
    genres = "、".join(facts.get("genres", [])[:3])
    what = f"{genres}{kind}" if genres else kind
    origin = "与".join(facts.get("regions", [])[:2])
    sentence = f"《{title}》是一部{origin}{what}"
    if years := facts.get("year"):
        sentence = f"《{title}》是{years[0]}年推出的{origin}{what}"
    if directors := facts.get("directors"):
        sentence += f"，由{'、'.join(directors[:3])}执导"
    if actors := facts.get("actors"):
        sentence += f"，{'、'.join(actors[:5])}等出演"
    sentences = [sentence]
    if episodes := facts.get("episodes"):
        sentences.append(f"全剧共{episodes[0].removesuffix('集')}集")
    if duration := facts.get("duration"):
        sentences.append(f"片长{duration[0].removesuffix('分钟')}分钟")
    return "。".join(sentences) + "。"


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


def chat_answer(request: Mapping[str, Any], number: int, moment: float, *, facts: Facts | None = None) -> Answer:
    """Return the completion of ``request``: a JSON object that holds an introduction.

    Args:
        request: The request's body. If it asks for a JSON schema, the first text property of the schema gets the
            introduction and the others are left empty; otherwise the key is ``intro``.
        number: The number of this request, for its id.
        moment: Unix seconds.
        facts: What to write about instead of the fact sheet in the last user message.
    """
    message = last_user_message(request)
    if not message:
        return error_answer(400, 'Input required: specify "messages"')
    text = introduction(fact_sheet(message) if facts is None else facts)
    return json_answer(completion(request, number, moment, _shaped(request, text)))


def completion(request: Mapping[str, Any], number: int, moment: float, content: str) -> dict[str, Any]:
    """Return an OpenAI chat completion with ``content``, its tokens counted roughly and its cost in US dollars."""
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
                "finish_reason": "stop",
                "native_finish_reason": "stop",
                "message": {"role": "assistant", "content": content, "refusal": None, "reasoning": None},
            }
        ],
        "usage": {**tokens, "cost": round(tokens["total_tokens"] * _PRICE, 8)},
    }


def key_answer(used: int) -> Answer:
    """Return what OpenRouter says of a key that made ``used`` requests."""
    data = {
        "label": "sk-or-v1-replay",
        "limit": None,
        "limit_remaining": None,
        "usage": 0,
        "usage_daily": 0,
        "is_free_tier": False,
        "free_model_daily_requests": {"used": used, "limit": 1000, "remaining": max(0, 1000 - used)},
    }
    return json_answer({"data": data})


def error_answer(
    status: int,
    message: str,
    *,
    http_status: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Return an error of OpenRouter; ``http_status`` 200 hides it in a success, as the real one sometimes does."""
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
