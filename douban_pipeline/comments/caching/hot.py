"""What is asked for most right now: counts in a sliding window, of a bounded number of keys. No I/O."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Hashable


class HotKeys:
    """Counts how often keys are asked for within a window; the least frequent ones are forgotten first (LFU).

    Args:
        threshold: How often within the window makes a key hot.
        window: Its length in seconds.
        buckets: Parts of the window that leave it one after another.
        most: Keys that are counted at once.
    """

    def __init__(self, threshold: int, *, window: float = 1.0, buckets: int = 10, most: int = 10_000) -> None:
        self._threshold, self._width, self._most = threshold, window / buckets, most
        self._buckets: deque[tuple[int, Counter[Hashable]]] = deque()
        self._number = buckets
        self._total: Counter[Hashable] = Counter()
        self._lock = threading.Lock()

    def hit(self, key: Hashable, now: float) -> bool:
        """Count one more for a key at ``now`` (seconds); return whether it is hot."""
        with self._lock:
            moment = int(now / self._width)
            if not self._buckets or self._buckets[-1][0] != moment:
                self._turn(moment)
            self._buckets[-1][1][key] += 1
            self._total[key] += 1
            return self._total[key] >= self._threshold

    def is_hot(self, key: Hashable) -> bool:
        """Return whether a key was hot when something was counted last."""
        with self._lock:
            return self._total[key] >= self._threshold

    def _turn(self, moment: int) -> None:
        self._buckets.append((moment, Counter()))
        while self._buckets[0][0] <= moment - self._number:
            self._total -= self._buckets.popleft()[1]  # keys whose count falls to nothing go
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
