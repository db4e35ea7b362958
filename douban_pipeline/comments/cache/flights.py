"""Coalesces concurrent calls: callers of a key that is being fetched wait for that call and share its result.

`HotKeys` counts which keys are requested most.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import redis

_Result = TypeVar("_Result")


class LoopFlights(Generic[_Result]):
    """Calls in progress, by key; for one event loop."""

    def __init__(self) -> None:
        self._under_way: dict[Hashable, asyncio.Task[_Result]] = {}

    async def run(self, key: Hashable, call: Callable[[], Awaitable[_Result]]) -> _Result:
        """Return the result of ``call``, or raise its exception; concurrent callers of the same key share one call.

        A caller that is cancelled does not cancel the call for the others.
        """
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.ensure_future(_awaited(call))
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._land(key, done))
        return await asyncio.shield(task)

    def _land(self, key: Hashable, done: asyncio.Task[_Result]) -> None:
        if self._under_way.get(key) is done:
            del self._under_way[key]
        if not done.cancelled():
            done.exception()  # marks the exception as retrieved even if all callers were cancelled


async def _awaited(call: Callable[[], Awaitable[_Result]]) -> _Result:
    return await call()


_BEGIN = """
-- KEYS: who fetches it, whether anybody waits for that. ARGV: who asks, milliseconds until another one may fetch it.
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return '' end
redis.call('SET', KEYS[2], 1, 'PX', ARGV[2])
return redis.call('GET', KEYS[1])
"""
_END = """
-- KEYS: as above. ARGV: who fetched it, milliseconds that it is good for whoever comes later.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local waited = redis.call('DEL', KEYS[2])
if ARGV[2] == '0' then
  redis.call('DEL', KEYS[1])
  return waited
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
_LEASE_MS, _KEPT_MS = 5000, 3000
_LOOKS, _LOOK_SECONDS = 100, 0.02
"""How often, and at what interval, a process polls for the result of another one before it fetches it itself."""


@dataclass(frozen=True, slots=True)
class Fetched(Generic[_Result]):
    """Result of a call.

    Attributes:
        good_ms: Milliseconds for which it may be reused.
    """

    result: _Result
    own: bool
    good_ms: int


class JointFlights:
    """Calls in progress in any process, by key; blocks the calling thread.

    Args:
        attempt: Calls Redis; returns None where it is unavailable: then each process fetches for itself.
    """

    def __init__(self, client: redis.Redis, prefix: str, attempt: Callable[[Callable[[], Any]], Any | None]) -> None:
        self._client, self._prefix, self._attempt = client, prefix, attempt

    def run(self, key: str, fetch: Callable[[], _Result], good_ms: Callable[[], int]) -> Fetched[_Result]:
        """Return what another process fetched or is fetching; otherwise fetch it and share it with those who wait.

        If the other process dies, this one waits two seconds; if its call fails, only until then.

        Args:
            fetch: Fetches the value; it is shared as JSON.
            good_ms: Returns the milliseconds for which later callers may reuse it; 0 shares it with waiting ones only.

        Raises:
            Exception: The exception of ``fetch``.
        """
        who = uuid.uuid4().hex
        other = self._attempt(lambda: self._begin(key, who))
        if other and (found := self._await(other)) is not None:
            return found
        result, kept = None, 0
        try:
            result = fetch()
            kept = good_ms()
            return Fetched(result, True, kept)
        finally:
            if other == "":
                self._attempt(lambda: self._end(key, who, result, kept))

    def _begin(self, key: str, who: str) -> str:
        """Return the process that is fetching already; empty if there is none and this process took the lease."""
        found: Any = self._client.eval(_BEGIN, 2, *self._keys(key), who, _LEASE_MS)
        return str(found)

    def _end(self, key: str, who: str, result: Any, good_ms: int) -> None:
        wanted: Any = self._client.eval(_END, 2, *self._keys(key), who, good_ms)
        if int(wanted):
            self._client.set(f"{self._prefix}flown:{who}", json.dumps(result), px=good_ms or _KEPT_MS)

    def _await(self, other: str) -> Fetched[Any] | None:
        """Return what another process fetched; None where it failed or takes too long."""
        for _ in range(_LOOKS):
            found = self._attempt(lambda: self._look(other))
            if found is None:
                return None
            text, left = found
            if text is not None:
                result = json.loads(text)
                return None if result is None else Fetched(result, False, left)
            time.sleep(_LOOK_SECONDS)
        return None

    def _look(self, other: str) -> tuple[str | None, int]:
        pipe = self._client.pipeline(transaction=True)
        pipe.get(f"{self._prefix}flown:{other}")
        pipe.pttl(f"{self._prefix}flown:{other}")
        text, left = pipe.execute()
        return text, left

    def _keys(self, key: str) -> tuple[str, str]:
        # The braces are a hash tag: both keys are on one node of a cluster.
        return f"{self._prefix}flight:{{{key}}}", f"{self._prefix}flight:{{{key}}}:waited"


class HotKeys:
    """Counts requests per key within a sliding window; the least frequent keys are evicted first (LFU).

    Args:
        window: Length of the window in seconds.
        buckets: Number of slices of the window, which expire one after another.
        most: Maximum number of keys that are counted.
    """

    def __init__(self, threshold: int, *, window: float = 1.0, buckets: int = 10, most: int = 10_000) -> None:
        self._threshold, self._width, self._most = threshold, window / buckets, most
        self._buckets: deque[tuple[int, Counter[Hashable]]] = deque()
        self._number = buckets
        self._total: Counter[Hashable] = Counter()
        self._lock = threading.Lock()

    def hit(self, key: Hashable, now: float) -> bool:
        """Count a request for a key at ``now`` (seconds); return whether the key is hot."""
        with self._lock:
            moment = int(now / self._width)
            if not self._buckets or self._buckets[-1][0] != moment:
                self._turn(moment)
            self._buckets[-1][1][key] += 1
            self._total[key] += 1
            return self._total[key] >= self._threshold

    def is_hot(self, key: Hashable) -> bool:
        """Return whether a key was hot at the last count."""
        with self._lock:
            return self._total[key] >= self._threshold

    def _turn(self, moment: int) -> None:
        self._buckets.append((moment, Counter()))
        while self._buckets[0][0] <= moment - self._number:
            self._total -= self._buckets.popleft()[1]  # removes keys whose count becomes zero
        if len(self._total) > self._most:
            kept = dict(self._total.most_common(self._most))
            self._total = Counter(kept)
            for _, counts in self._buckets:
                for key in [key for key in counts if key not in kept]:
                    del counts[key]

    def hottest(self, most: int) -> list[tuple[Hashable, int]]:
        """Return the most frequent keys of the window with their counts."""
        with self._lock:
            return self._total.most_common(most)
