"""Batches concurrent requests: requests that arrive while a batch is processed form the next batch.

So a transaction takes all requests that arrived during the previous one, and no request waits for others to arrive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Gathering(Generic[_Item, _Result]):
    """Passes waiting items to a function in batches; for one event loop.

    Args:
        work: Processes a batch and returns a result per item, in order; an exception as result is raised to that
            item's caller. An exception that it raises is raised to all callers of the batch.
        most: Maximum size of a batch.
    """

    def __init__(
        self, work: Callable[[Sequence[_Item]], Awaitable[Sequence[_Result | Exception]]], *, most: int = 200
    ) -> None:
        self._work, self._most = work, most
        self._waiting: list[tuple[_Item, asyncio.Future[_Result]]] = []
        self._under_way: asyncio.Task[None] | None = None

    async def run(self, item: _Item) -> _Result:
        """Return the result for ``item``, or raise its exception.

        A caller that is cancelled does not cancel the batch; its own item may be processed or not.
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
        except Exception as error:  # noqa: BLE001 (it is raised to every caller)
            outcomes = [error] * len(batch)
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            if future.done():
                continue
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
