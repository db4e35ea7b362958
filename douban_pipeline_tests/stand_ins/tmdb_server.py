"""Simulates TMDB's API with its faults; see `demo.stand_ins.tmdb_server`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from douban_pipeline.demo.stand_ins.answers import HttpAnswer, html_answer, json_answer
from douban_pipeline.demo.stand_ins.tmdb_server import PARTS, tmdb_error
from douban_pipeline.demo.stand_ins.tmdb_server import TmdbServer as DemoTmdbServer

FAULTS = ("throttled", "over_limit", "failing", "cut", "hanging", "schema", "page", "refused_key", "empty")
"""``throttled``: 429 with code 25, and Retry-After if given. ``over_limit``: code 25 with status 200. ``failing``: 500.
``cut``: half an answer. ``hanging``: none until the client closes the connection. ``schema``: without the required
parts (``results``, ``id``, credits). ``page``: HTML. ``refused_key``: 401 with code 7. ``empty``: 200, empty body."""


@dataclass(slots=True)
class TmdbFault:
    """One fault rule.

    Attributes:
        kind: One of `FAULTS`.
        match: Only requests whose path contains this.
        times: Remaining requests it applies to; None for no limit.
        retry_after: Seconds, with ``throttled``.
    """

    kind: str
    match: str = ""
    times: int | None = None
    retry_after: float | None = None

    def __post_init__(self) -> None:
        """Validate the rule.

        Raises:
            ValueError: There is no such fault.
        """
        if self.kind not in FAULTS:
            raise ValueError(f"fault {self.kind!r}: use one of {', '.join(FAULTS)}")


@dataclass
class TmdbServer(DemoTmdbServer):
    """Serves recordings, with faults.

    Attributes:
        faults: The current rules; may be changed while it serves.
    """

    faults: list[TmdbFault] = field(default_factory=list)

    def answer(self, path: str, query: Mapping[str, str]) -> HttpAnswer | None:
        """Return the answer of the API to a request with a good key; None keeps the client waiting."""
        with self._lock:
            fault = self._take(path)
        answer = super().answer(path, query)
        return answer if fault is None or answer is None else _misbehave(fault, answer)

    def _take(self, path: str) -> TmdbFault | None:
        for fault in self.faults:
            if fault.match in path:
                if fault.times is not None:
                    fault.times -= 1
                    if fault.times <= 0:
                        self.faults.remove(fault)
                return fault
        return None


def _misbehave(fault: TmdbFault, answer: HttpAnswer) -> HttpAnswer | None:
    limit = "Your request count (41) is over the allowed limit of (40)."
    if fault.kind == "hanging":
        return None
    if fault.kind == "throttled":
        wait = {} if fault.retry_after is None else {"Retry-After": f"{fault.retry_after:g}"}
        return tmdb_error(25, limit, 429, wait)
    if fault.kind == "schema":
        body = json.loads(answer.body)
        gone = {"results", "id", "images", *PARTS}
        return json_answer({name: value for name, value in body.items() if name not in gone} | {"items": []})
    others = {
        "over_limit": tmdb_error(25, limit, 200),
        "failing": tmdb_error(11, "Internal error: Something went wrong, contact TMDb.", 500),
        "cut": HttpAnswer(200, answer.body[: len(answer.body) // 2]),
        "page": html_answer("TMDB", "We are down for maintenance"),
        "refused_key": tmdb_error(7, "Invalid API key: You must be granted a valid key.", 401),
        "empty": HttpAnswer(200, b""),
    }
    return others[fault.kind]
