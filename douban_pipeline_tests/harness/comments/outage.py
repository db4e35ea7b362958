"""Redis is killed while people read, write and hide: what fails, and whether anything hidden is served."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import sqlalchemy as sa

from douban_pipeline.comments.store import tables
from douban_pipeline.comments.types import CommentStatus, EventState
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Target
from douban_pipeline_tests.harness.comments.callers import Caller, percentile
from douban_pipeline_tests.harness.comments.loading import OUTAGE
from douban_pipeline_tests.harness.comments.publishing import tokens
from douban_pipeline_tests.harness.comments.running import ADMIN, Running
from douban_pipeline_tests.harness.rig.processes import Process

_ID = re.compile(rb'"id":"(\d{15,19})"')
_LOCAL_SECONDS = 0.25
"""How old a hot section's page may be, as the setting LOCAL_MS has it."""


@dataclass
class _Seen:
    taken: list[tuple[float, float]] = field(default_factory=list)
    """When each request began, and how long it took."""
    failed: list[float] = field(default_factory=list)
    """When each request began that had no answer, or one of an error."""
    hidden: dict[int, float] = field(default_factory=dict)
    """Comments that are hidden, and since when that was committed."""
    served: int = 0
    """Answers that held one of them."""


def measure_outage(
    place: Running, engine: sa.Engine, redis: Process, seconds: int, readers: int = 8
) -> Iterator[Figure]:
    """Read, publish and hide for a while, and kill Redis when a third of it is over; it stays away."""
    seen = _Seen()
    killed = asyncio.run(_run(place, engine, redis, seconds, readers, seen))
    before = [taken for begun, taken in seen.taken if begun < killed]
    after = [taken for begun, taken in seen.taken if begun >= killed]
    failed = sum(at >= killed for at in seen.failed)
    early = f"{len(before):,} before, {sum(at < killed for at in seen.failed)} failed"
    share = 100 * failed / max(1, len(after) + failed)
    yield Figure("Redis killed: requests that fail", share, "%", Target(most=0.1), note=f"of {len(after):,}; {early}")
    hidden = f"{len(seen.hidden)} were hidden meanwhile"
    yield Figure("Redis killed: answers with a hidden comment", seen.served, "", Target(most=0), note=hidden)
    p95s = [1000 * percentile(taken, 0.95) for taken in (after, before)]
    yield Figure("Redis killed: a request, p95", p95s[0], "ms", None, p95s[1], "before")


async def _run(place: Running, engine: sa.Engine, redis: Process, seconds: int, readers: int, seen: _Seen) -> float:
    begun = time.time()
    until = begun + seconds
    known = tokens()

    async def ask(caller: Caller, *request: object) -> bytes | None:
        at = time.time()
        try:
            answer = await caller.ask(*request)  # type: ignore[arg-type]
        except (OSError, EOFError):
            seen.failed.append(at)
            return None
        if answer.status >= 500:
            seen.failed.append(at)
            return None
        seen.taken.append((at, time.time() - at))
        return answer.body

    async def reader(number: int) -> None:
        orders = ("new", "likes", "heat", "floor")
        async with Caller(place.bases[number % len(place.bases)]) as caller:
            while (at := time.time()) < until:
                order = orders[number % len(orders)]
                body = await ask(caller, "GET", f"/comments/v1/sections/1/{OUTAGE}/page?sort={order}&size=50")
                gone = {one for one, since in seen.hidden.items() if since < at - _LOCAL_SECONDS}
                seen.served += bool(gone & {int(one) for one in _ID.findall(body or b"")})

    async def writer() -> None:
        number = 0
        async with Caller(place.bases[0]) as caller:
            while time.time() < until:
                number += 1
                headers = {"Authorization": f"Bearer {known[number % len(known)]}"}
                body = {"content": f"断电时的第 {number} 条"}
                await ask(caller, "POST", f"/comments/v1/sections/1/{OUTAGE}/comments", body, headers)
                await asyncio.sleep(0.05)

    async def moderator() -> None:
        headers = {"Authorization": f"Bearer {ADMIN}"}
        async with Caller(place.bases[0]) as caller:
            while time.time() < until - 1:
                body = await ask(caller, "GET", f"/comments/v1/sections/1/{OUTAGE}/page?sort=likes&size=5")
                ids = [int(one) for one in _ID.findall(body or b"")][1:2]
                chosen = {"ids": [str(one) for one in ids], "status": int(CommentStatus.DELETED)}
                decision = {**chosen, "reason": "测量", "dry_run": False}
                if ids and await ask(caller, "POST", "/comments/v1/admin/moderate", decision, headers):
                    await _hidden(engine, ids[0])
                    seen.hidden[ids[0]] = time.time()
                await asyncio.sleep(0.1)

    async def killer() -> float:
        await asyncio.sleep(seconds / 3)
        redis.kill()
        return time.time()

    others = [asyncio.create_task(each) for each in (writer(), moderator(), *(reader(n) for n in range(readers)))]
    killed = await killer()
    await asyncio.gather(*others)
    return killed


async def _hidden(engine: sa.Engine, comment_id: int) -> None:
    """Return once a decision on a comment is committed."""
    c = tables.event.c
    query = sa.select(sa.func.count()).where(c.comment_id == comment_id, c.state == EventState.PENDING)

    def waits() -> bool:
        with engine.connect() as connection:
            return bool(connection.execute(query).scalar())

    while await asyncio.to_thread(waits):
        await asyncio.sleep(0.05)
