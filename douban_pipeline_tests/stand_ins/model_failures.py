"""OpenRouter's own form of every fault, and an answer about another text; no I/O here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from douban_pipeline.demo.stand_ins.answers import HttpAnswer, json_answer
from douban_pipeline.demo.stand_ins.introductions import NOTHING, completion, error_answer, last_user_message


def failures(request: Mapping[str, Any], number: int, moment: float, retry: Mapping[str, str]) -> dict[str, HttpAnswer]:
    """Return OpenRouter's own form of every fault, by its name; see `faults`.

    Args:
        request: The request's body.
        number: The number of this request.
        moment: Unix seconds.
        retry: The Retry-After header, if one is to be sent.
    """
    asked = last_user_message(request)
    flagged = {"reasons": ["violence"], "flagged_input": asked[:100], "provider_name": "Replay", "model_slug": "replay"}
    down = {"error_type": "provider_unavailable", "provider_code": "upstream_error"}
    limited = {"error_type": "rate_limit_exceeded"}
    cut = completion(request, number, moment, '{"intro": "', finish="length")
    refusal = completion(request, number, moment, "", refusal="I cannot help with that.")
    return {
        "forbidden": error_answer(403, "Input was flagged by moderation", metadata=flagged),
        "throttled": error_answer(429, "Rate limit exceeded", metadata=limited, headers=retry),
        "server_error": error_answer(502, "Provider returned error", metadata=down),
        "empty": json_answer(completion(request, number, moment, "")),
        "error_in_200": error_answer(502, "Provider returned error", http_status=200, metadata=down),
        "garbage": json_answer(completion(request, number, moment, '{"intro": "')),
        "unpaid": _payment("openrouter_credits", "Insufficient credits"),
        "key_spent": _payment("openrouter_key_limit", "The key's credit limit is used up"),
        "in_flight": _payment(
            "openrouter_in_flight_budget", "Requests in flight fill the budget", "in_flight_budget_exhausted", retry
        ),
        "too_heavy": _payment("openrouter_credits", "This request is too expensive", "weight_exceeds_budget"),
        "budget_spent": error_answer(
            403, "Budget limit exceeded", metadata={"limit_source": "openrouter_workspace_budget", "limit_usd": 1}
        ),
        "request_timeout": error_answer(408, "Request timed out"),
        "no_provider": error_answer(503, "No provider fits the routing", headers=retry),
        "rejected": error_answer(400, "Invalid request", metadata={"error_type": "invalid_request"}),
        "cut_off": json_answer(cut),
        "refused": json_answer(refusal),
    }


def of_another_text() -> str:
    """Return an answer about a text that was not in the request."""
    return json.dumps({"statements": [{**NOTHING, "number": 1_000, "text": "别的文字", "basis": "general"}]})


def _payment(limit: str, message: str, reason: str = "", headers: Mapping[str, str] | None = None) -> HttpAnswer:
    why = {"reason": reason} if reason else {}
    return error_answer(402, message, metadata={**why, "limit_source": limit}, headers=headers)
