"""What the replay upstream saw of the requests: how long it was at work, and whether the budget was used and kept."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from email.message import Message
from typing import Self

from douban_pipeline.demo.stand_ins.answers import HttpAnswer
from douban_pipeline_tests.stand_ins.replay import ReplayServer

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the upstream saw it.

    Attributes:
        path: ``/douban.php``, ``/search`` and so on.
        target: Path with query.
        began, ended: When it began to work on it and had the answer (unix seconds).
    """

    path: str
    target: str
    began: float
    ended: float


class TimedReplay(ReplayServer):
    """A replay upstream that remembers how long each request took it.

    Attributes:
        seen: The requests, in the order they were answered.
        delay: Returns after how many seconds a target is answered; at once without it.
    """

    seen: list[Request]
    delay: Callable[[str], float] | None = None
    _seen_lock: threading.Lock

    def __enter__(self) -> Self:
        """Start serving, with nothing remembered."""
        self.seen, self._seen_lock = [], threading.Lock()
        return super().__enter__()

    def respond(self, method: str, target: str, body: bytes, headers: Message) -> HttpAnswer | None:
        """Return the answer to one request, and remember it."""
        began = time.time()
        answer = super().respond(method, target, body, headers)
        if self.delay is not None:
            time.sleep(self.delay(target))
        with self._seen_lock:
            self.seen.append(Request(target.partition("?")[0], target, began, time.time()))
        return answer


def busy_seconds(spans: Iterable[Span]) -> float:
    """Return for how long at least one of ``spans`` lasted."""
    total, until = 0.0, float("-inf")
    for began, ended in sorted(spans):
        total += max(0.0, ended - max(began, until))
        until = max(until, ended)
    return total


def most_within(moments: Iterable[float], seconds: float) -> int:
    """Return the most of ``moments`` that any window of ``seconds`` holds; its end does not belong to it."""
    ordered = sorted(moments)
    return max((bisect_left(ordered, began + seconds) - index for index, began in enumerate(ordered)), default=0)


def used_share(moments: Sequence[float], began: float, ended: float, per_minute: float) -> float:
    """Return the share of the allowed requests from ``began`` to ``ended`` that were made, from 0 to about 1.

    Raises:
        ValueError: The window is empty.
    """
    if ended <= began:
        raise ValueError(f"from {began} to {ended} is no window")
    ordered = sorted(moments)
    made = bisect_right(ordered, ended) - bisect_left(ordered, began)
    return made / ((ended - began) / 60 * per_minute)
