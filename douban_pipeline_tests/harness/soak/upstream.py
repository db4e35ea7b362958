"""The library and the upstream of Douban's soak: as far away as a real one, with a log of when each request ended."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from email.message import Message
from random import Random
from typing import Any

from sqlalchemy import update

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.demo.stand_ins.answers import HttpAnswer, Subject
from douban_pipeline.douban.chain.due.intake import Intake
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store import migrations
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline_tests.harness.generated.filling import fill
from douban_pipeline_tests.harness.soak.ground import Scale
from douban_pipeline_tests.harness.soak.people import REVIEWERS
from douban_pipeline_tests.stand_ins.faults import ENDPOINTS, RequestLog
from douban_pipeline_tests.stand_ins.replay import ReplayServer

CALLER_TIMEOUT = 4.0
"""Seconds that the pipeline gives a request, so that a source that hangs costs a soak seconds, not minutes."""
VISITS_PER_MINUTE = 60
"""Videos of the library that come due a minute. Together with what arrives and changes, two cores get it done."""
LAST_VISIT_SHARE = 0.8
"""Share of the soak after which no more of them come due."""
ARRIVALS_PER_MINUTE, ARRIVALS_AT_LEAST = 40, 200
SETTINGS: Mapping[str, str] = {
    "SEARCH_PROVIDER": "searxng",
    # More than any public source stands, and allowed on this machine alone: the gate is to be busy, and work done.
    "DOUBAN_REQUESTS_PER_MINUTE": "600",
    "SEARCH_REQUESTS_PER_MINUTE": "600",
    "LLM_REQUESTS_PER_MINUTE": "240",
    "DOUBAN_CONCURRENCY": "5",
    "SEARCH_CONCURRENCY": "3",
    "LLM_CONCURRENCY": "4",
    "LLM_TOKENS_PER_MINUTE": "1000000",
    "LLM_TOKENS_PER_DAY": "100000000",
    "LLM_BUDGET_USD_PER_DAY": "1000",
    "REQUEST_TIMEOUT_SECONDS": f"{CALLER_TIMEOUT:g}",
    "AI_INTROS": "true",
    "INTRO_MIN_SOURCE_HAN": "4",  # generated synopses are short
    "DRY_RUN": "false",
    "RESTORE_LOCKED": "true",
    "BULK_UNLOCKERS": ",".join(REVIEWERS),
    # What a killed run held comes back while the soak lasts: a lease is twice the longest step.
    "RUN_SECONDS": "60",
    "MAX_DUE_WAIT_MINUTES": "1",
}

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


def most_arrivals_of(scale: Scale) -> int:
    """Return how many videos may come in; Douban knows of these too."""
    return math.ceil(ARRIVALS_PER_MINUTE * scale.minutes) + ARRIVALS_AT_LEAST


def fill_library(services: Services, scale: Scale, say: Callable[[str], None]) -> None:
    """Fill the library, take it in, and let some of it come due, one by one."""
    say(f"filling the library with {scale.videos:,} videos")
    prefix = services.settings.table_prefix
    fill(services.engine, scale.videos, seed=scale.seed, now=SystemClock().now(), prefix=prefix)
    migrations.tree_of(prefix).upgrade(services.engine)
    report = Intake(services.engine, services.tables, services.cms, services.clock).initialise(spread=True)
    shards = visited_shards(scale)
    spread_visits(services, shards, timedelta(minutes=scale.minutes * LAST_VISIT_SHARE))
    say(f"{report.new:,} videos taken in; those of {len(shards)} of {SHARDS} shards come due, one by one")


def visited_shards(scale: Scale) -> list[int]:
    """Return the shards whose videos come due during the soak, in that order: as many as can be worked on."""
    wanted = VISITS_PER_MINUTE * scale.minutes * LAST_VISIT_SHARE
    count = min(SHARDS, max(1, round(SHARDS * wanted / max(scale.videos, 1))))
    return Random(f"visits {scale.seed}").sample(range(SHARDS), count)


def spread_visits(services: Services, shards: list[int], over: timedelta) -> None:
    """Let the videos of ``shards`` come due shard after shard within ``over``, the first at once."""
    video, now_ = services.tables.video, services.clock.now()
    with services.engine.begin() as connection:
        for place, shard in enumerate(shards):
            connection.execute(
                update(video)
                .where(video.c.shard == shard, video.c.douban_next_sync_at.is_not(None))
                .values(douban_next_sync_at=now_ + over * place / len(shards))
            )
