"""One call for many callers: who asks for what is being fetched waits for that, and shares what comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

_Result = TypeVar("_Result")


class Flights(Generic[_Result]):
    """Calls under way, by key; for one event loop."""

    def __init__(self) -> None:
        self._under_way: dict[Hashable, asyncio.Task[_Result]] = {}

    async def run(self, key: Hashable, call: Callable[[], Awaitable[_Result]]) -> _Result:
        """Return what ``call`` returns, or raise what it raises; callers of the same key share one call.

        A caller that goes away does not take the call from the others.
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
            done.exception()  # callers that went away do not leave it unread


async def _awaited(call: Callable[[], Awaitable[_Result]]) -> _Result:
    return await call()
