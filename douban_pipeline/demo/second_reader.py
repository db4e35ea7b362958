"""Simulates the model's statement of an introduction's basis: each sentence's nearest synopsis passage; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_SENTENCE = re.compile(r"[^。！!？?；;…\n]+")

Read = Callable[[str, str], Mapping[str, Any]]
"""Maps a sentence and the synopsis to ``basis``, ``quotes`` and ``problem``."""


def is_reading(message: str) -> bool:
    """Return whether a message requests the basis of sentences."""
    asked = _asked(message)
    return "sentences" in asked and "synopsis" in asked


def reading(message: str, read: Read | None = None) -> str:
    """Return the model's answer to a message that requests the basis of sentences.

    Args:
        message: The message.
        read: Returns the basis of a sentence; `nearest` by default.
    """
    asked = _asked(message)
    synopsis = str(asked["synopsis"])
    said = [{"number": item["number"], **(read or nearest)(str(item["text"]), synopsis)} for item in asked["sentences"]]
    return json.dumps({"sentences": said}, ensure_ascii=False)


def of_another_text() -> str:
    """Return an answer about sentences that were not in the request."""
    return json.dumps({"sentences": [{"number": 1_000, "basis": "general", "quotes": [], "problem": ""}]})


def nearest(sentence: str, synopsis: str) -> dict[str, Any]:
    """Return the basis of a sentence: the passage of the synopsis that shares most of its character pairs, if any."""
    pairs = _pairs(sentence)
    passages: Sequence[str] = [match[0].strip() for match in _SENTENCE.finditer(synopsis)]
    best = max(passages, key=lambda passage: len(pairs & _pairs(passage)), default="")
    if pairs & _pairs(best):
        return {"basis": "synopsis", "quotes": [best], "problem": ""}
    return {"basis": "general", "quotes": [], "problem": ""}


def _pairs(text: str) -> set[str]:
    return {text[at : at + 2] for at in range(len(text) - 1)}


def _asked(message: str) -> Mapping[str, Any]:
    try:
        asked = json.loads(message)
    except json.JSONDecodeError:
        return {}
    return asked if isinstance(asked, dict) else {}
