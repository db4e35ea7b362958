"""Lists of sections by heat in Redis: sorted sets, written completely, swapped atomically, and segmented if long.

    cmt:{12}:heat            the current version: its name, segments with their last heat, count, time
    cmt:{12}:heat:<v>:<n>    segment n of version v: members are ids, scores are heat

Members are ids of `_DIGITS` digits, so that Redis orders comments of equal heat as the tables do: newest first. The
braces keep all keys of a section on one node of a cluster. A replaced version expires after `GRACE` seconds, so that
its current readers can finish; a version that was never completed expires too.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from redis import Redis

from douban_pipeline.comments.cache.page_scripts import SEGMENTED_PAGE
from douban_pipeline.comments.heat.graph import Column

SEGMENT = 200_000
"""Maximum size of one sorted set: operations on larger ones are slow, and deleting them blocks Redis."""
LIFE = 8 * 86_400
"""Time to live of a list in seconds, unless it is published again; after that the tables are read."""
GRACE = 600
_BUILDING = 3600
_COMMAND = 1000
"""Members per command: Redis serves no other client during a command."""
_PIPELINE = 10
_DIGITS = 19

_SWAP = """
local old = redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
for place = 2, #KEYS do redis.call('EXPIRE', KEYS[place], ARGV[2]) end
if old then
    local known = cjson.decode(old)
    for segment = 0, known.segments - 1 do
        redis.call('EXPIRE', KEYS[1] .. ':' .. known.version .. ':' .. segment, ARGV[3])
    end
end
return 1
"""
"""Makes a version the current one, and sets the expiry of the previous one."""

_PUT = """
-- ARGV: seconds that it lives, then heat and member in turns.
local current = redis.call('GET', KEYS[1])
if not current then return 0 end
local known = cjson.decode(current)
local keys = {}
for segment = 0, known.segments - 1 do keys[segment] = KEYS[1] .. ':' .. known.version .. ':' .. segment end
for i = 2, #ARGV, 2 do
    local heat, member = tonumber(ARGV[i]), ARGV[i + 1]
    local wanted = known.segments - 1
    for segment = 0, known.segments - 2 do
        if heat >= known.ends[segment + 1] then wanted = segment break end
    end
    for segment = 0, known.segments - 1 do
        if segment ~= wanted then redis.call('ZREM', keys[segment], member) end
    end
    if redis.call('EXPIRE', keys[wanted], ARGV[1]) == 0 and known.count > 0 then
        redis.call('DEL', KEYS[1])
        return 0
    end
    redis.call('ZADD', keys[wanted], ARGV[i], member)
    redis.call('EXPIRE', keys[wanted], ARGV[1])
end
return 1
"""
"""Inserts comments by heat if the list exists; never creates a list.

If Redis evicted a segment for lack of memory, the whole list is dropped and the tables are read instead."""


@dataclass(frozen=True, slots=True)
class HeatList:
    """The current version of a section's list.

    Attributes:
        segments: Number of sorted sets; at least one.
        at: Time of publishing, in seconds since 1970.
    """

    version: str
    count: int
    segments: int
    at: float


class HeatLists:
    """Lists by heat of all sections of a site.

    Args:
        prefix: Prefix of keys; sites that share a Redis have different ones.
    """

    def __init__(self, client: Redis, prefix: str = "cmt:") -> None:
        self._client = client
        self._prefix = prefix
        self._swap = client.register_script(_SWAP)
        self._put = client.register_script(_PUT)
        self._page = client.register_script(SEGMENTED_PAGE)

    def publish(self, section_id: int, ids: Column, heat: Column, now: datetime) -> HeatList:
        """Replace a section's list; readers see the old one until the new one is complete.

        Args:
            ids: The comments shown, hottest first.
            heat: Their heat, descending.
        """
        version = uuid.uuid4().hex[:12]
        starts = range(0, max(len(ids), 1), SEGMENT)
        keys = [self._segment(section_id, version, number) for number in range(len(starts))]
        for key, start in zip(keys, starts, strict=True):
            self._fill(key, ids[start : start + SEGMENT], heat[start : start + SEGMENT])
        ends = [int(heat[min(start + SEGMENT, len(heat)) - 1]) if len(heat) else 0 for start in starts]
        made = HeatList(version, len(ids), len(starts), now.timestamp())
        current = {"version": version, "count": made.count, "segments": made.segments, "ends": ends, "at": made.at}
        self._swap(keys=[self._current(section_id), *keys], args=[json.dumps(current), LIFE, GRACE])
        return made

    def _fill(self, key: str, ids: Column, heat: Column) -> None:
        pipeline = self._client.pipeline(transaction=False)
        for number, start in enumerate(range(0, len(ids), _COMMAND), start=1):
            members = [f"{each:0{_DIGITS}d}" for each in ids[start : start + _COMMAND].tolist()]
            pipeline.zadd(key, dict(zip(members, heat[start : start + _COMMAND].tolist(), strict=True)))
            if start == 0:
                pipeline.expire(key, _BUILDING)
            if number % _PIPELINE == 0:
                pipeline.execute()
        pipeline.execute()

    def current(self, section_id: int) -> HeatList | None:
        """Return the current version of a section's list; None if there is none."""
        stored: Any = self._client.get(self._current(section_id))
        if stored is None:
            return None
        known = json.loads(stored)
        return HeatList(known["version"], known["count"], known["segments"], known["at"])

    def page(self, section_id: int, after: tuple[int, int] | None, most: int) -> list[tuple[int, int]] | None:
        """Return comments as (heat, id), hottest first; None where no list is published, or Redis evicted a part of it.

        The caller has to check their status before showing them.

        Args:
            after: (heat, id) that they follow, whether a comment is still there or not; None for the first page.
            most: Maximum number of comments.
        """
        given: list[Any] = [most] if after is None else [most, after[0], f"{after[1]:0{_DIGITS}d}"]
        page: Any = self._page(keys=[self._current(section_id)], args=given)
        if page is None:
            return None
        return [(int(float(score)), int(member)) for member, score in zip(page[::2], page[1::2], strict=True)]

    def ranks(self, section_id: int, ids: Sequence[int]) -> tuple[list[int | None], int] | None:
        """Return the positions of comments in a section's list, None for others, and its length; see `page`."""
        known = self.current(section_id)
        if known is None:
            return None
        segments = self._lengths(section_id, known)
        if known.count and not all(length for _, length in segments):
            return None
        pipeline = self._client.pipeline(transaction=False)
        for number in ids:
            for key, _ in segments:
                pipeline.zrevrank(key, f"{number:0{_DIGITS}d}")
        found: list[int | None] = pipeline.execute() if ids else []
        starts = [sum(length for _, length in segments[:at]) for at in range(len(segments))]
        ranks = []
        for at in range(0, len(found), len(segments)):
            each = zip(starts, found[at : at + len(segments)], strict=True)
            ranks.append(next((start + rank for start, rank in each if rank is not None), None))
        return ranks, sum(length for _, length in segments)

    def from_rank(self, section_id: int, rank: int, most: int) -> list[tuple[int, int]]:
        """Return comments from a position on, counted from 0; see `ranks`.

        For explanations alone: positions move while others write, so a reader who pages would miss or repeat some.
        """
        known = self.current(section_id)
        found: list[tuple[int, int]] = []
        for key, length in self._lengths(section_id, known) if known is not None else ():
            if rank < length and len(found) < most:
                last = rank + most - len(found) - 1
                page: Any = self._client.zrange(key, rank, last, desc=True, withscores=True)
                found += [(int(score), int(member)) for member, score in page]
            rank = max(rank - length, 0)
        return found

    def _lengths(self, section_id: int, known: HeatList) -> list[tuple[str, int]]:
        keys = [self._segment(section_id, known.version, number) for number in range(known.segments)]
        pipeline = self._client.pipeline(transaction=False)
        for key in keys:
            pipeline.zcard(key)
        return list(zip(keys, pipeline.execute(), strict=True))

    def put(self, section_id: int, places: Iterable[tuple[int, int]]) -> bool:
        """Insert or move comments, each a (heat, id), if the section's list exists; return whether it does."""
        given = [part for heat, number in places for part in (heat, f"{number:0{_DIGITS}d}")]
        there = True
        for start in range(0, len(given), _COMMAND):
            args = [LIFE, *given[start : start + _COMMAND]]
            there = there and bool(self._put(keys=[self._current(section_id)], args=args))
        return there

    def remove(self, section_id: int, ids: Iterable[int]) -> None:
        """Remove comments from a section's list."""
        members = [f"{each:0{_DIGITS}d}" for each in ids]
        known = self.current(section_id) if members else None
        if known is None:
            return
        pipeline = self._client.pipeline(transaction=False)
        for number in range(known.segments):
            pipeline.zrem(self._segment(section_id, known.version, number), *members)
        pipeline.execute()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def drop(self, section_id: int) -> None:
        """Delete a section's list; the tables are read until it is published again."""
        self._client.delete(self._current(section_id))

    def ids(self, section_id: int) -> Column | None:
        """Return the ids of a section's list in order; None where none is published."""
        known = self.current(section_id)
        if known is None:
            return None
        members: list[bytes] = []
        for number in range(known.segments):
            found: Any = self._client.zrange(self._segment(section_id, known.version, number), 0, -1, desc=True)
            members += found
        return np.array([int(member) for member in members], dtype=np.int64)

    def _current(self, section_id: int) -> str:
        return f"{self._prefix}{{{section_id}}}:heat"

    def _segment(self, section_id: int, version: str, number: int) -> str:
        return f"{self._current(section_id)}:{version}:{number}"
