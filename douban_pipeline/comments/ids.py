"""Ids of comments: handed out before anything is written, growing with time, different on every machine.

63 bits: 41 of milliseconds since `EPOCH` (until 2093), 10 of a node's number, 12 of a count within the millisecond.
Two processes never share a number: they lease it, see `store.nodes`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
NODES = 1024
"""Node numbers go from 0 to one less."""
_NODE_BITS, _COUNT_BITS = 10, 12
_COUNTS = 1 << _COUNT_BITS
_MILLISECOND = timedelta(milliseconds=1)


class IdGenerator:
    """Gives ids, each greater than the last one, however the clock jumps.

    Args:
        node: Number of this process, below `NODES`.
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

        A clock that was set back is not followed: the last millisecond is used on, after 4,096 ids the next one.
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
    """Return when an id was handed out, to the millisecond."""
    return EPOCH + (number >> (_NODE_BITS + _COUNT_BITS)) * _MILLISECOND


def first_of(moment: datetime) -> int:
    """Return the least id that can be handed out at a moment: a bound for reading by time."""
    return milliseconds(moment) << (_NODE_BITS + _COUNT_BITS)
