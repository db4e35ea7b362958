"""In-process cache with time to live, bounded in size."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Remembered(Generic[_Key, _Value]):
    """Values by key, each with a time to live.

    Args:
        seconds: Time to live of a value.
        most: Maximum number of values; when it is reached, all are dropped.
        clock: Monotonic clock in seconds.
    """

    def __init__(self, seconds: float, most: int, clock: Callable[[], float]) -> None:
        self._seconds, self._most, self._clock = seconds, most, clock
        self._kept: dict[_Key, tuple[float, _Value]] = {}

    def get(self, key: _Key) -> _Value | None:
        """Return the value of a key; None where there is none or it has expired."""
        until, value = self._kept.get(key, (0.0, None))
        return value if until > self._clock() else None

    def put(self, key: _Key, value: _Value) -> None:
        """Store a value."""
        if len(self._kept) >= self._most:
            self._kept = {}
        self._kept[key] = (self._clock() + self._seconds, value)
