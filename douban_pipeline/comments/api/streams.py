"""Server-sent events: how many comments a section has, sent to whoever has its page open, when that changes."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any

from fastapi import Request
from fastapi.responses import StreamingResponse

from douban_pipeline.comments import pages
from douban_pipeline.comments.api.context import Context, address_of
from douban_pipeline.comments.api.problems import Problem
from douban_pipeline.comments.dependencies import UnavailableError
from douban_pipeline.comments.pages import Target
from douban_pipeline.comments.sites import Site
from douban_pipeline.core.guesses import household

MOST_STREAMS, MOST_OF_ADDRESS = 2000, 20
"""Maximum number of open streams of a process, and of those of one address."""
_PERIOD = 2.0
"""Seconds between two readings of the counts: one query for all sections that somebody looks at."""
_LIFE = 300.0
"""Seconds after which a stream ends; browsers open another one by themselves."""
_SILENCE = 20.0
"""Seconds after which a comment is sent, so that proxies keep the connection."""


def _counts(targets: Sequence[Target], site: Site) -> list[dict[str, Any]]:
    return pages.read_counts(site, targets)


class EventStream(StreamingResponse):
    """Server-sent events."""

    media_type = "text/event-stream"


class CountStreams:
    """Streams of the counts of sections, all fed by one task that runs while there are any.

    Args:
        context: The service.
        period: Seconds between two readings.
    """

    def __init__(self, context: Context, period: float = _PERIOD) -> None:
        self._context, self._period = context, period
        self._counts: dict[Target, int] = {}
        self._watched: Counter[Target] = Counter()
        self._addresses: Counter[str] = Counter()
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    def open(self, request: Request, target: Target) -> StreamingResponse:
        """Return the stream of a section.

        Raises:
            Problem: There are too many streams already.
        """
        address = household(address_of(request))
        if self._watched.total() >= MOST_STREAMS:
            raise Problem(503, "服务繁忙，请稍后再试", {"Retry-After": "60"})
        if self._addresses[address] >= MOST_OF_ADDRESS:
            raise Problem(429, "打开的页面过多", {"Retry-After": "60"})
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return EventStream(self._stream(target, address), headers=headers)

    async def _stream(self, target: Target, address: str) -> AsyncIterator[str]:
        self._watched[target] += 1
        self._addresses[address] += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._read())
        try:
            yield f"retry: {int(self._period * 5000)}\n\n"
            loop = asyncio.get_running_loop()
            end, sent = loop.time() + _LIFE, None
            while loop.time() < end:
                count = self._counts.get(target)
                if count is not None and count != sent:
                    sent = count
                    yield f"event: count\ndata: {json.dumps({'count': count})}\n\n"
                    continue
                try:
                    async with asyncio.timeout(_SILENCE), self._changed:
                        await self._changed.wait()
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            self._addresses[address] -= 1
            self._watched[target] -= 1
            self._watched, self._addresses = +self._watched, +self._addresses

    async def _read(self) -> None:
        while self._watched:
            targets = list(self._watched)
            try:
                found, _ = await self._context.read("page", partial(_counts, targets))
            except UnavailableError:
                found = []
            read = {Target(each["type"], each["object_id"]): each["count"] for each in found}
            changed = read != {target: self._counts.get(target) for target in read}
            self._counts = {**{target: self._counts[target] for target in targets if target in self._counts}, **read}
            if changed:
                async with self._changed:
                    self._changed.notify_all()
            await asyncio.sleep(self._period)
        self._counts = {}
