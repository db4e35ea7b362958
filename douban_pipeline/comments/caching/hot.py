"""Sliding-window counters of the most requested keys; bounded in size. No I/O."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Hashable


class HotKeys:
    """Counts requests per key within a sliding window; the least frequent keys are evicted first (LFU).

    Args:
        threshold: Number of requests within the window from which a key is hot.
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
