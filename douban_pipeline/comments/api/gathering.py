"""One piece of work for many callers: who comes while it is under way goes with the next one, which is one as well.

So a transaction takes as many requests as came during the one before, and nobody waits for company.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Gathering(Generic[_Item, _Result]):
    """Hands what callers want to a piece of work, all that wait at once; for one event loop.

    Args:
        work: Does it for some of them, and returns a result each in their order; an exception is what a caller gets
            raised. What it raises is raised to all of them.
        most: How many it takes at once.
    """

    def __init__(
        self, work: Callable[[Sequence[_Item]], Awaitable[Sequence[_Result | Exception]]], *, most: int = 200
    ) -> None:
        self._work, self._most = work, most
        self._waiting: list[tuple[_Item, asyncio.Future[_Result]]] = []
        self._under_way: asyncio.Task[None] | None = None

    async def run(self, item: _Item) -> _Result:
        """Return what the work returns for ``item``, or raise what it raises.

        A caller that goes away does not take the work from the others; its own is done or not.
        """
        future: asyncio.Future[_Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._under_way is None:
            self._under_way = asyncio.ensure_future(self._empty())
        return await future

    async def _empty(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
                await self._take(batch)
        finally:
            self._under_way = None

    async def _take(self, batch: Sequence[tuple[_Item, asyncio.Future[_Result]]]) -> None:
        outcomes: Sequence[_Result | Exception]
        try:
            outcomes = await self._work([item for item, _ in batch])
        except Exception as error:  # noqa: BLE001 (every caller gets it raised)
            outcomes = [error] * len(batch)
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            if future.done():
                continue
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
