"""The replay upstream of the soak: as far away as a real one, and with a log of when each request ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from email.message import Message
from random import Random
from typing import Any

from douban_pipeline.demo.stand_ins.answers import HttpAnswer, Subject
from douban_pipeline_tests.stand_ins.faults import ENDPOINTS, RequestLog
from douban_pipeline_tests.stand_ins.replay import ReplayServer

_DELAY_SECONDS = (0.02, 0.12)
_HANGS_UP_EARLIER = 0.5
"""When a caller gave up is not seen here; this much before its limit it surely had not."""


class TimedLog(RequestLog):
    """What was asked and when, and when the answer was ready."""

    def __init__(self) -> None:
        """Begin with nothing."""
        super().__init__()
        self._mine = threading.local()
        self._timed = threading.Lock()
        self._ended: dict[str, list[float | None]] = {endpoint: [] for endpoint in ENDPOINTS}

    def record(self, endpoint: str, key: str, moment: float) -> None:
        """Remember a request of this thread's; see `RequestLog.record`."""
        with self._timed:
            super().record(endpoint, key, moment)
            ended = self._ended[endpoint]
            ended.append(None)
            self._mine.place = (ended, len(ended) - 1)

    def end(self, moment: float) -> None:
        """The request that this thread recorded last was answered at ``moment``."""
        place = getattr(self._mine, "place", None)
        if place is not None:
            ended, number = place
            ended[number] = moment
            self._mine.place = None

    def describe(self) -> dict[str, dict[str, Any]]:
        """Return the same as `RequestLog.describe`, and ``ended`` beside ``times``; None for what goes on."""
        with self._timed:
            found = super().describe()
            for endpoint, about in found.items():
                about["ended"] = self._ended[endpoint][-len(about["times"]) :] if about["times"] else []
        return found


class DistantReplay(ReplayServer):
    """A replay upstream that takes its time."""

    def __init__(
        self,
        subjects: Iterable[Subject],
        *,
        caller_timeout: float,
        seed: int = 0,
        delay: tuple[float, float] = _DELAY_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(subjects, now=now)
        self._log = TimedLog()
        self.requests = self._log
        self._timeout, self._delay, self._rng = caller_timeout, delay, Random(seed)

    def respond(self, method: str, target: str, body: bytes, headers: Message) -> HttpAnswer | None:
        """Return the answer after a while; see `ReplayServer.respond`."""
        answer = super().respond(method, target, body, headers)
        if answer is None:
            self._log.end(self.now() + max(self._timeout - _HANGS_UP_EARLIER, 0.0))
            return None
        time.sleep(self._rng.uniform(*self._delay))
        self._log.end(self.now())
        return answer
