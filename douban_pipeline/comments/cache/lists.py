"""Comment lists in Redis: sorted sets of ids. Updates change only lists that exist; lists in doubt are dropped.

A list holds the first ids of an order, up to a maximum; further ids are read from the database. A member `END` with the
lowest score marks a list as complete. Redis may be unavailable at any time: every call then reports it, and Redis is
not called again for `_PAUSE_SECONDS`.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.client import PubSub
from redis.retry import Retry

from douban_pipeline.comments.cache.flights import JointFlights
from douban_pipeline.comments.cache.page_scripts import PAGE
from douban_pipeline.comments.scoring.heat_lists import HeatLists
from douban_pipeline.comments.store.comment_lists import CommentPlace, Order
from douban_pipeline.core.clock import Clock

_LOG = logging.getLogger(__name__)
LONGEST_SECONDS = 0.5
"""Maximum wait of a worker that receives wake-ups: a message may be lost, and not every writer sends one."""


class WakeUps:
    """Wake-ups over Redis, for one thread."""

    def __init__(self, client: redis.Redis, channel: str) -> None:
        self._client, self._channel = client, channel
        self._heard: PubSub | None = None

    def wait(self, stopped: Event, seconds: float) -> None:
        """Return when there may be something to do, or ``stopped`` is set.

        Args:
            stopped: Ends the wait, after `LONGEST_SECONDS` at the latest.
        """
        try:
            if self._heard is None:
                self._heard = self._client.pubsub(ignore_subscribe_messages=True)
                self._heard.subscribe(self._channel)
                return  # messages sent before the subscription were missed
            message = self._heard.get_message(timeout=LONGEST_SECONDS)
            while message is not None:
                message = self._heard.get_message()
        except redis.RedisError as error:
            _LOG.debug("no wake-ups: %s", error)
            self.close()
            stopped.wait(seconds)

    def close(self) -> None:
        """Stop listening."""
        if self._heard is not None:
            self._heard.close()
            self._heard = None


_Result = TypeVar("_Result")

END = "end"
_ASKED_SECONDS = 5
_PAUSE_SECONDS = 1.0
"""Seconds during which Redis is not called after it failed."""

_FOLLOW = """
-- KEYS: the section's version, then its lists. ARGV: serial, seconds lists live, most members, then list, score, member
-- (an empty score takes the member out).
local version = tonumber(redis.call('GET', KEYS[1]) or '0')
if version > tonumber(ARGV[1]) then
  for i = 2, #KEYS do redis.call('DEL', KEYS[i]) end
  return -1
end
redis.call('SET', KEYS[1], ARGV[1], 'EX', 86400)
local most = tonumber(ARGV[3])
local done = 0
for i = 4, #ARGV, 3 do
  local key = KEYS[tonumber(ARGV[i])]
  if redis.call('EXPIRE', key, ARGV[2]) == 1 then
    redis.call('ZREM', key, ARGV[i + 2])
    if ARGV[i + 1] ~= '' then
      local last = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
      local score, lowest = tonumber(ARGV[i + 1]), tonumber(last[2] or 'inf')
      if score > lowest or (score == lowest and ARGV[i + 2] > last[1]) then
        redis.call('ZADD', key, ARGV[i + 1], ARGV[i + 2])
        local many = redis.call('ZCARD', key)
        if many > 2 * most then redis.call('ZREMRANGEBYRANK', key, 0, many - most - 1) end
      end
    end
    done = done + 1
  end
end
return done
"""
_PUBLISH = """
-- KEYS: the section's version, the list. ARGV: serial as of which it was read, seconds it lives, then score, member.
if tonumber(redis.call('GET', KEYS[1]) or '0') > tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[2])
for i = 3, #ARGV, 1000 do
  redis.call('ZADD', KEYS[2], unpack(ARGV, i, math.min(i + 999, #ARGV)))
end
redis.call('EXPIRE', KEYS[2], ARGV[2])
return 1
"""

_COUNT = """
-- KEYS: what is counted. ARGV: seconds that it lives.
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end
return count
"""


@dataclass(frozen=True, slots=True)
class ListName:
    """Identifies a list: the roots of a section in an order, or the replies to a root, oldest first."""

    section_id: int
    order: Order
    root_id: int = 0

    def score(self, place: CommentPlace) -> int:
        """Return a place's score in the sorted set; the highest score comes first."""
        return -place.key if self.order == Order.FLOOR else place.key

    def place(self, member: str, score: float) -> CommentPlace:
        """Return the place that a member and its score encode."""
        return CommentPlace(-int(score) if self.order == Order.FLOOR else int(score), int(member))


@dataclass(frozen=True, slots=True)
class ListChange:
    """A member to add to a list or to update; to remove where ``place`` is None."""

    name: ListName
    comment_id: int
    place: CommentPlace | None


@dataclass(frozen=True, slots=True)
class CachedPage:
    """Places of a list after a given place, and whether the list ends with them."""

    places: tuple[CommentPlace, ...]
    ended: bool


def member(comment_id: int) -> str:
    """Return an id as a list member, padded to a fixed length so that equal scores sort by id."""
    return f"{comment_id:019d}"


class RedisLists:
    """The comment lists in one Redis.

    Args:
        most: Maximum number of ids that a list is built with.
    """

    def __init__(
        self, client: redis.Redis, clock: Clock, *, prefix: str = "cmt:", seconds: int = 600, most: int = 1000
    ) -> None:
        self._client, self._clock, self._prefix = client, clock, prefix
        self._seconds, self.most = seconds, most
        self._away_until = 0.0
        self.heat = HeatLists(client, prefix)
        """Lists of whole sections by heat, as published by sweeps; call them through `attempt`."""
        self.flights = JointFlights(client, prefix, self.attempt)

    @property
    def away(self) -> bool:
        """Whether Redis failed within the last `_PAUSE_SECONDS` and is not called."""
        return self._clock.now().timestamp() < self._away_until

    def attempt(self, call: Callable[[], _Result]) -> _Result | None:
        """Return the result of ``call``; None where Redis is unavailable."""
        if self.away:
            return None
        try:
            return call()
        except redis.RedisError as error:
            _LOG.warning("Redis cannot be used, the database answers: %s", error)
            self._away_until = self._clock.now().timestamp() + _PAUSE_SECONDS
            return None

    def page(self, name: ListName, after: CommentPlace | None, most: int) -> CachedPage | None:
        """Return at most ``most`` places after ``after``, whether a comment is still there or not, as of one moment.

        None where the list is missing or Redis is unavailable.
        """
        return self.attempt(lambda: self._page(name, after, most))

    def _page(self, name: ListName, after: CommentPlace | None, most: int) -> CachedPage | None:
        given: list[Any] = [most] if after is None else [most, name.score(after), member(after.comment_id)]
        page: Any = self._client.eval(PAGE, 1, self._key(name), *given)
        if page is None:
            return None
        ended = bool(page) and page[-2] == END
        found = zip(page[::2], page[1::2], strict=True)
        return CachedPage(tuple(name.place(text, float(score)) for text, score in found if text != END), ended)

    def follow(self, section_id: int, serial: int, changes: Sequence[ListChange]) -> bool:
        """Update the existing lists of a section, as of a serial; lists that are ahead of the serial are dropped.

        Returns:
            Whether Redis was available.
        """
        names = list(dict.fromkeys(change.name for change in changes))
        keys = [self._version(section_id), *(self._key(name) for name in names)]
        given: list[Any] = [serial, self._seconds, self.most]
        for change in changes:
            score = "" if change.place is None else change.name.score(change.place)
            given += [names.index(change.name) + 2, score, member(change.comment_id)]
        return self.attempt(lambda: self._client.eval(_FOLLOW, len(keys), *keys, *given)) is not None

    def publish(self, name: ListName, serial: int, places: Sequence[CommentPlace], *, ended: bool) -> bool | None:
        """Replace a list unless its section has a newer serial; return whether it did, None if Redis is unavailable."""
        given: list[Any] = [serial, self._seconds]
        for place in places:
            given += [name.score(place), member(place.comment_id)]
        if ended:
            given += ["-inf", END]
        if len(given) == 2:
            return True
        keys = (self._version(name.section_id), self._key(name))
        done = self.attempt(lambda: self._client.eval(_PUBLISH, len(keys), *keys, *given))
        return None if done is None else bool(done)

    def ask_rebuild(self, name: ListName) -> bool:
        """Queue a list for rebuilding by a worker unless it was just queued; return whether it was queued now."""
        return bool(self.attempt(lambda: self._ask(name)))

    def _ask(self, name: ListName) -> bool:
        if not self._client.set(f"{self._key(name)}:asked", 1, nx=True, ex=_ASKED_SECONDS):
            return False
        message = json.dumps([name.section_id, str(name.order), name.root_id])
        self._client.lpush(self._queue, message)
        self._client.publish(self._channel, "")
        return True

    def asked(self) -> ListName | None:
        """Take a list from the rebuild queue; None where it is empty or Redis is unavailable."""
        found: Any = self.attempt(lambda: self._client.rpop(self._queue))
        if found is None:
            return None
        section_id, order, root_id = json.loads(found)
        return ListName(section_id, Order(order), root_id)

    def follow_heat(self, section_id: int, shown: Sequence[tuple[int, int]], gone: Sequence[int]) -> bool:
        """Put (heat, id) pairs where they belong in a section's list by heat and remove ids from it, like `follow`."""

        def work() -> bool:
            self.heat.put(section_id, shown)
            self.heat.remove(section_id, gone)
            return True

        return bool(self.attempt(work))

    def drop(self, names: Collection[ListName]) -> bool:
        """Delete lists; until they are rebuilt the database is read. Return whether Redis was available."""

        def work() -> bool:
            for name in names:
                if name.order == Order.HEAT:
                    self.heat.drop(name.section_id)
                else:
                    self._client.delete(self._key(name))
            return True

        return bool(self.attempt(work))

    def exists(self, name: ListName) -> bool:
        """Return whether a list exists."""
        return bool(self.attempt(lambda: self._client.exists(self._key(name))))

    def count(self, keys: Sequence[tuple[str, int]]) -> list[int] | None:
        """Increment the counter of each key; a counter expires the given seconds after its first increment.

        Returns:
            The counts, in order; None where Redis is unavailable.
        """

        def work() -> list[int]:
            pipe = self._client.pipeline(transaction=False)
            for key, seconds in keys:
                # One command a key: a counter whose expiry was not set because of an interruption would never expire.
                pipe.eval(_COUNT, 1, f"{self._prefix}{key}", seconds)
            return [int(counted) for counted in pipe.execute()]

        return self.attempt(work)

    def wake(self) -> None:
        """Wake the workers; a worker that misses the message finds the work at its next poll."""
        self.attempt(lambda: self._client.publish(self._channel, ""))

    def wake_ups(self) -> WakeUps:
        """Return the subscription with which a worker waits for `wake`."""
        return WakeUps(self._client, self._channel)

    def kept(self, name: str) -> str | None:
        """Return the value stored under a name; None where there is none or Redis is unavailable."""
        found: Any = self.attempt(lambda: self._client.get(f"{self._prefix}{name}"))
        return found

    def keep(self, name: str, value: str) -> None:
        """Store a value under a name, without expiry."""
        self.attempt(lambda: self._client.set(f"{self._prefix}{name}", value))

    def hold(self, name: str, owner: str, seconds: int) -> bool:
        """Acquire or renew a lease; return whether ``owner`` holds it now."""
        script = (
            "local o = redis.call('GET', KEYS[1]) if o and o ~= ARGV[1] then return 0 end "
            "redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2]) return 1"
        )
        return bool(self.attempt(lambda: self._client.eval(script, 1, f"{self._prefix}{name}", owner, seconds)))

    def drop_all(self) -> int | None:
        """Drop the lists of all sections; return the number of keys deleted, None where Redis is unavailable."""

        def work() -> int:
            keys = list(self._client.scan_iter(f"{_escaped(self._prefix)}{{*", count=1000))
            for start in range(0, len(keys), 1000):
                self._client.unlink(*keys[start : start + 1000])
            return len(keys)

        return self.attempt(work)

    def _key(self, name: ListName) -> str:
        # The braces are a hash tag: all keys of a section are on one node of a cluster.
        return f"{self._prefix}{{{name.section_id}}}:{name.root_id}:{name.order}"

    def _version(self, section_id: int) -> str:
        return f"{self._prefix}{{{section_id}}}:version"

    @property
    def _queue(self) -> str:
        return f"{self._prefix}rebuild"

    @property
    def _channel(self) -> str:
        return f"{self._prefix}wake"


def _escaped(prefix: str) -> str:
    """Return a prefix with the special characters of Redis patterns escaped."""
    return re.sub(r"([*?\[\]\\])", r"\\\1", prefix)


def open_lists(
    url: str, clock: Clock, *, prefix: str = "cmt:", seconds: int = 600, most: int = 1000, timeout: float = 0.25
) -> RedisLists:
    """Return the lists in the Redis at ``url``; does not connect yet."""
    client = redis.Redis.from_url(
        url,
        decode_responses=True,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), 0),  # no retries: reading from the database at once is faster than a second try
    )
    return RedisLists(client, clock, prefix=prefix, seconds=seconds, most=most)
