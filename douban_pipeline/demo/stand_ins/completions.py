"""Simulates chat completions in DeepSeek's form, with its faults; the score, or a fault that is the article's own, is
stated in the article's text."""

from __future__ import annotations

import hashlib
import json
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from douban_pipeline.demo.stand_ins.answers import HttpAnswer, json_answer

_ARTICLE = re.compile(r"<article-(?P<mark>[0-9a-f]{24})>\n(?P<data>.*?)\n</article-(?P=mark)>", re.DOTALL)
_SCORE = re.compile(r"（样值 (\d+)）")
_FAULT = re.compile(r"（样错 (\w+)）")
_OBEYED = re.compile(r"(?:score|评分|分数|打|给)[^0-9\n]{0,20}(\d{2,3})", re.IGNORECASE)
_ERRORS = {
    "bad_request": (400, "invalid_request_error"),
    "bad_key": (401, "authentication_error"),
    "unpaid": (402, "unknown_error"),
    "filtered": (400, "invalid_request_error"),
    "invalid": (422, "invalid_request_error"),
    "throttled": (429, "rate_limit_reached"),
    "server_error": (500, "server_error"),
    "overloaded": (503, "service_unavailable"),
}
FAULTS = (
    *_ERRORS,
    "blank",
    "empty",
    "null",
    "fenced",
    "broken",
    "in_words",
    "cut_off",
    "no_score",
    "out_of_range",
    "kept_alive",
    "hanging",
    "retired",
)
"""Faults of an answer; ``fenced``, ``out_of_range`` and ``kept_alive`` are still answers."""


@dataclass
class ModelStandIn:
    """Simulates the chat completion service.

    Attributes:
        faults: Faults of the next answers, in order; an empty name is none.
        always: Fault of every answer; empty for none.
        obeys: Whether it follows instructions in an article's text, like a gullible model.
        swayed: The score that it gives a text with a certain sentence, by sentence.
        retry_after: Value of Retry-After in a throttled answer, in seconds; empty sends none.
        seen: All requests, unchanged.
        keys: The Authorization header of each.
    """

    faults: deque[str] = field(default_factory=deque)
    always: str = ""
    obeys: bool = False
    swayed: dict[str, int] = field(default_factory=dict)
    retry_after: str = "1"
    seen: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    def answer(self, body: bytes, authorization: str) -> HttpAnswer | None:
        """Return the answer to a request; None keeps the client waiting."""
        request = json.loads(body)
        self.seen.append(request)
        self.keys.append(authorization)
        fault = self.always or (self.faults.popleft() if self.faults else "")
        if not fault and (stated := _FAULT.search(request["messages"][-1]["content"])):
            fault = stated[1]
        if fault in _ERRORS:
            status, kind = _ERRORS[fault]
            headers = {"Retry-After": self.retry_after} if fault == "throttled" and self.retry_after else {}
            text = "Content Exists Risk" if fault == "filtered" else f"stand-in: {fault}"
            error = {"message": text, "type": kind, "param": None, "code": kind}
            return json_answer({"error": error}, status, headers)
        if fault == "hanging":
            return None
        if fault == "retired" or request["model"] in ("deepseek-reasoner", "deepseek-chat"):
            error = {"message": f"Model {request['model']} does not exist", "type": "invalid_request_error"}
            return json_answer({"error": error}, 400)
        return self._completion(request, fault)

    def _completion(self, request: Mapping[str, Any], fault: str) -> HttpAnswer:
        content: str | None = json.dumps(self._content(request), ensure_ascii=False)
        finish = "stop"
        if fault == "blank":
            content = " \n   \n"  # instead of invalid JSON, blanks are returned with a normal finish reason
        elif fault == "empty":
            content = ""
        elif fault == "null":
            content = None
        elif fault == "fenced":
            content = f"```json\n{content}\n```"
        elif fault == "broken":
            content = '{"score": 7'
        elif fault == "in_words":
            content = "抱歉，我无法分析这篇文章。"
        elif fault == "cut_off":
            content, finish = '{"score": 70, "summ', "length"
        elif fault == "no_score":
            content = '{"summary": "没有分数", "has_opportunity": true}'
        elif fault == "out_of_range":
            content = '{"score": 173.4, "has_opportunity": true, "summary": "超出范围"}'
        asked = sum(len(message["content"]) for message in request["messages"])
        usage = {"prompt_tokens": asked, "completion_tokens": len(content or ""), "total_tokens": asked}
        message = {"role": "assistant", "content": content, "reasoning_content": "想了想。"}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        answer = {
            "id": f"chat-{len(self.seen)}",
            "object": "chat.completion",
            "created": 0,
            "model": request["model"],
            "choices": [choice],
            "usage": usage,
        }
        text = json.dumps(answer, ensure_ascii=False)
        return HttpAnswer(200, (("\n" * 40 if fault == "kept_alive" else "") + text).encode(), "application/json")

    def _content(self, request: Mapping[str, Any]) -> dict[str, Any]:
        user = request["messages"][-1]["content"]
        found = _ARTICLE.search(user)
        data = json.loads(found["data"]) if found else {}
        if "analyses" in data:
            return _digest(data)
        # Only text outside the marks is an instruction; a gullible model also follows the rest.
        text = f"{data.get('title', '')}\n{data.get('text', '')}"
        told = _SCORE.search(text)
        score = int(told[1]) if told else int(hashlib.sha256(text.encode()).hexdigest()[:4], 16) % 101
        if self.obeys and (obeyed := _OBEYED.search(text)):
            score = int(obeyed[1])
        score = next((given for sentence, given in self.swayed.items() if sentence in text), score)
        found_one = score >= 60
        opportunity = {
            "type": "行业",
            "title": data.get("title", "")[:40],
            "targets": ["示例行业"],
            "reason": "文中给出了具体事实。",
            "risk": "以原文为准。",
            "horizon": "短期",
        }
        return {
            "score": score,
            "has_opportunity": found_one,
            "summary": f"{data.get('title', '')}：{str(data.get('text', ''))[:60]}",
            "opportunities": [opportunity] if found_one else [],
            "instructions_found": False,
            "instructions": [],
        }


def _digest(data: Mapping[str, Any]) -> dict[str, Any]:
    rows = data["analyses"]
    best = [row for row in rows if row["score"] >= 60][:3]
    lines = [f"- {row['title']}（{row['mp_name']}，{row['score']} 分）：{row['summary'][:60]}" for row in rows[:10]]
    return {
        "has_opportunity": bool(best),
        "top_opportunities": [
            {"title": row["title"], "score": row["score"], "reason": row["summary"], "analysis_id": row["analysis_id"]}
            for row in best
        ],
        "digest_md": f"今天共 {len(rows)} 篇。\n\n" + "\n".join(lines),
        "watchlist": [row["title"] for row in rows[3:5]],
    }
