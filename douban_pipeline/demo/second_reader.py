"""Simulates the model that states an introduction's basis: each sentence's nearest passages of the synopsis; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_SENTENCE = re.compile(r"[^。！!？?；;…\n]+")

_LETTERS = re.compile(r"[^\W_]")
_MOST_QUOTES, _LEAST_NEW = 4, 2
"""Most passages quoted for a sentence, and least number of its characters and pairs that each must add."""
_LEAST_SHARED = 0.2
"""Least share of a sentence's characters and pairs that the synopsis has if the sentence is about the plot."""

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
    """Return the basis of a sentence: the passages of the synopsis that share most of its characters, if many do."""
    wanted = _pairs(sentence) | set(_LETTERS.findall(sentence))
    passages = {passage: _pairs(passage) | set(passage) for passage in map(str.strip, _SENTENCE.findall(synopsis))}
    everything, quotes, left = len(wanted), list[str](), wanted
    while len(quotes) < _MOST_QUOTES and passages:
        best = max(passages, key=lambda passage: len(left & passages[passage]))
        if len(left & passages[best]) < _LEAST_NEW:
            break
        quotes.append(best)
        left = left - passages[best]
    if everything - len(left) < _LEAST_SHARED * everything:
        return {"basis": "facts" if "《" in sentence else "general", "quotes": [], "problem": ""}
    return {"basis": "synopsis", "quotes": quotes, "problem": ""}


def _pairs(text: str) -> set[str]:
    return {text[at : at + 2] for at in range(len(text) - 1)}


def _asked(message: str) -> Mapping[str, Any]:
    try:
        asked = json.loads(message)
    except json.JSONDecodeError:
        return {}
    return asked if isinstance(asked, dict) else {}
