"""Simulates chat completions in DeepSeek's form; an article may state the score that it gets."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from douban_pipeline.demo.stand_ins.answers import HttpAnswer, json_answer

_ARTICLE = re.compile(r"<article-(?P<mark>[0-9a-f]{24})>\n(?P<data>.*?)\n</article-(?P=mark)>", re.DOTALL)
_SCORE = re.compile(r"（样值 (\d+)）")


@dataclass
class ModelStandIn:
    """Simulates the chat completion service.

    Attributes:
        seen: All requests, unchanged.
        keys: The Authorization header of each.
    """

    seen: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    def answer(self, body: bytes, authorization: str) -> HttpAnswer | None:
        """Return the answer to a request; None keeps the client waiting."""
        request = json.loads(body)
        self.seen.append(request)
        self.keys.append(authorization)
        return self.reply(request)

    def reply(self, request: dict[str, Any]) -> HttpAnswer | None:
        """Return the answer to a request that was noted."""
        return self.completion(request, json.dumps(self.content(request), ensure_ascii=False))

    def completion(self, request: Mapping[str, Any], content: str | None, finish: str = "stop") -> HttpAnswer:
        """Return a completion with ``content`` and the reason why it ended."""
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
        return json_answer(answer)

    def content(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the analysis of an article, or the report of a day."""
        user = request["messages"][-1]["content"]
        found = _ARTICLE.search(user)
        data = json.loads(found["data"]) if found else {}
        if "analyses" in data:
            return _digest(data)
        score = self.score(f"{data.get('title', '')}\n{data.get('text', '')}")
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

    def score(self, text: str) -> int:
        """Return the score of an article: what it states, or a number made of it."""
        told = _SCORE.search(text)
        return int(told[1]) if told else int(hashlib.sha256(text.encode()).hexdigest()[:4], 16) % 101


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
