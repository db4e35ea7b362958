"""Simulates chat completions with their faults; a fault that is the article's own is stated in its text."""

from __future__ import annotations

import json
import re
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from douban_pipeline.demo.stand_ins.answers import HttpAnswer, json_answer
from douban_pipeline.demo.stand_ins.completions import ModelStandIn as DemoModel
from douban_pipeline.demo.stand_ins.werss import DigestServer as DemoDigestServer

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
class ModelStandIn(DemoModel):
    """Simulates the chat completion service and its faults.

    Attributes:
        faults: Faults of the next answers, in order; an empty name is none.
        always: Fault of every answer; empty for none.
        obeys: Whether it follows instructions in an article's text, like a gullible model.
        swayed: The score that it gives a text with a certain sentence, by sentence.
        retry_after: Value of Retry-After in a throttled answer, in seconds; empty sends none.
    """

    faults: deque[str] = field(default_factory=deque)
    always: str = ""
    obeys: bool = False
    swayed: dict[str, int] = field(default_factory=dict)
    retry_after: str = "1"

    def reply(self, request: dict[str, Any]) -> HttpAnswer | None:
        """Return the answer to a request that was noted."""
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
        content: str | None = json.dumps(self.content(request), ensure_ascii=False)
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
        answer = self.completion(request, content, finish)
        return HttpAnswer(200, b"\n" * 40 + answer.body, "application/json") if fault == "kept_alive" else answer

    def score(self, text: str) -> int:
        """Return the score of an article; a gullible model follows what it says."""
        obeyed = _OBEYED.search(text) if self.obeys else None
        score = int(obeyed[1]) if obeyed else super().score(text)
        return next((given for sentence, given in self.swayed.items() if sentence in text), score)


@dataclass
class DigestServer(DemoDigestServer):
    """Serves WeRSS and this model at one address."""

    model: ModelStandIn = field(default_factory=ModelStandIn)
