"""The service's metrics, and their text in Prometheus's format. Safe to share between threads."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping

BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
"""Upper bounds of the latency histogram, in seconds."""
_PREFIX = "douban_pipeline_tmdb_"
_HELP: Mapping[str, str] = {
    "enrichments_total": "Questions by outcome.",
    "persisted_total": "Questions written to PostgreSQL.",
    "persist_failures_total": "Attempts to write a question that failed.",
    "spooled_total": "Questions that went to the spool.",
    "rejected_total": "Questions that PostgreSQL refused; they were put aside.",
    "lost_total": "Questions that were stored neither in PostgreSQL nor in the spool.",
    "forgotten_total": "Questions dropped because their user or conversation was deleted.",
}


class Metrics:
    """Counters, latencies and gauges."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._gauges: dict[str, float] = {}
        self._buckets = [0] * (len(BUCKETS) + 1)
        self._seconds = 0.0

    def count(self, name: str, label: str = "", number: int = 1) -> None:
        """Add to a counter; ``label`` is the value of its label ``outcome``."""
        with self._lock:
            self._counts[name, label] += number

    def gauge(self, name: str, value: float) -> None:
        """Set a gauge."""
        with self._lock:
            self._gauges[name] = value

    def observe(self, seconds: float) -> None:
        """Record the duration of an answer."""
        with self._lock:
            self._seconds += seconds
            self._buckets[next((place for place, most in enumerate(BUCKETS) if seconds <= most), len(BUCKETS))] += 1

    def total(self, name: str) -> int:
        """Return a counter's sum over all its labels."""
        with self._lock:
            return sum(count for (counted, _), count in self._counts.items() if counted == name)

    def text(self, **gauges: float) -> str:
        """Return all metrics in Prometheus's format, with the current values of ``gauges``."""
        with self._lock:
            return "\n".join(self._lines({**self._gauges, **gauges})) + "\n"

    def _lines(self, gauges: Mapping[str, float]) -> Iterator[str]:
        for name, says in _HELP.items():
            yield f"# HELP {_PREFIX}{name} {says}"
            yield f"# TYPE {_PREFIX}{name} counter"
            found = {label: count for (counted, label), count in sorted(self._counts.items()) if counted == name}
            for label, count in (found or {"": 0}).items():
                labels = f'{{outcome="{label}"}}' if label else ""
                yield f"{_PREFIX}{name}{labels} {count}"
        for name, value in sorted(gauges.items()):
            yield f"# TYPE {_PREFIX}{name} gauge"
            yield f"{_PREFIX}{name} {value:g}"
        name, total = f"{_PREFIX}answer_seconds", 0
        yield f"# HELP {name} Duration of answers."
        yield f"# TYPE {name} histogram"
        for most, count in zip((*map(str, BUCKETS), "+Inf"), self._buckets, strict=True):
            total += count
            yield f'{name}_bucket{{le="{most}"}} {total}'
        yield f"{name}_sum {self._seconds:.6f}"
        yield f"{name}_count {total}"
