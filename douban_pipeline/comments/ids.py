"""Comment ids: generated before anything is written, increasing with time, unique across processes.

63 bits: 41 of milliseconds since `EPOCH` (until 2093), 10 of a node number, 12 of a counter within the millisecond.
Each process leases its node number, see `store.shards`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
NODES = 1024
"""Number of node numbers: they go from 0 to ``NODES - 1``."""
_NODE_BITS, _COUNT_BITS = 10, 12
_COUNTS = 1 << _COUNT_BITS
_MILLISECOND = timedelta(milliseconds=1)


class IdGenerator:
    """Generates ids, each greater than the previous one even if the clock is set back.

    Args:
        node: Node number of this process, below `NODES`.
        now: Returns the time in UTC.
    """

    def __init__(self, node: int, now: Callable[[], datetime]) -> None:
        if not 0 <= node < NODES:
            raise ValueError(f"node {node} is none of 0 to {NODES - 1}")
        self._node, self._now = node, now
        self._lock = threading.Lock()
        self._last, self._count = -1, 0

    def next(self) -> int:
        """Return a new id.

        If the clock was set back, the last millisecond is used further; after 4,096 ids in it, the next one.
        """
        with self._lock:
            moment = max(milliseconds(self._now()), self._last)
            if moment == self._last:
                self._count += 1
                if self._count == _COUNTS:
                    moment, self._count = moment + 1, 0
            else:
                self._count = 0
            self._last = moment
            return (moment << (_NODE_BITS + _COUNT_BITS)) | (self._node << _COUNT_BITS) | self._count


def milliseconds(moment: datetime) -> int:
    """Return the milliseconds from `EPOCH` to a moment."""
    return (moment - EPOCH) // _MILLISECOND


def moment_of(number: int) -> datetime:
    """Return when an id was generated, with millisecond precision."""
    return EPOCH + (number >> (_NODE_BITS + _COUNT_BITS)) * _MILLISECOND


def first_of(moment: datetime) -> int:
    """Return the smallest id that can be generated at a moment: a bound for queries by time."""
    return milliseconds(moment) << (_NODE_BITS + _COUNT_BITS)
