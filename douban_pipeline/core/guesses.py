"""One guard against guessing, for every token and password that the service compares.

Wrong ones are counted by door (who asks for them) and address, and by door in all, in all processes together
(`core.counters`). An address with too many is refused without a comparison until its count ends. Another address is
not: a flood of guesses from many addresses leaves each a single guess, but locks nobody out who has the right token.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar
from weakref import WeakValueDictionary

from douban_pipeline.core.counters import Counters

_Found = TypeVar("_Found")
EACH = 5
"""Wrong tokens that an address may try within `WITHIN`."""
ALL = 100
"""Wrong tokens from all addresses within `WITHIN`, after which each address may try only one."""
WITHIN = timedelta(minutes=15)
_KNOWN = timedelta(minutes=1)
"""How long a process accepts a right token from its address again without asking the database."""
_UNGUESSABLE = 32
"""Least characters of a random token, 128 bits if they are hexadecimal digits."""
_MOST = 10_000
"""Most addresses of each kind that a process remembers."""


class TooManyGuessesError(Exception):
    """An address tried too many wrong tokens; ``seconds`` is how long it must wait."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"too many wrong tokens; wait {seconds} s")
        self.seconds = seconds


class GuessGuard:
    """Compares what an address sends, unless it has guessed too often. For one event loop.

    Args:
        counters: The shared counts.
    """

    def __init__(self, counters: Counters) -> None:
        self.counters = counters
        self._refused: dict[str, datetime] = {}
        self._right: dict[tuple[str, bytes], datetime] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def compare(self, door: str, address: str, given: str, find: Callable[[str], _Found | None]) -> _Found | None:
        """Return what ``find`` returns for ``given``; None, counted as a guess, if it is nobody's.

        Args:
            door: What asks for it; guesses at one door do not count at another.
            address: The address that sent it.
            given: The token or password.
            find: Returns whose it is, in constant time; None if it is wrong.

        Raises:
            TooManyGuessesError: The address has to wait; ``given`` was not compared, or its count came too late.
        """
        clock, who = self.counters.clock, f"{door}:{household(address)}"
        mark = (who, hashlib.sha256(given.encode("utf-8", "surrogatepass")).digest())
        if (until := self._right.get(mark)) is not None and clock.now() < until and (found := find(given)) is not None:
            return found
        self._refuse(who)
        lock = self._locks.setdefault(who, asyncio.Lock())
        async with lock:  # guesses sent together are tried one after the other
            self._refuse(who)
            names = {f"guess:{who}": WITHIN.total_seconds(), f"guess:{door}": WITHIN.total_seconds()}
            own, every = await self.counters.read(*names)
            allowed = EACH if every.number < ALL else 1
            if own.number < allowed:
                if (found := find(given)) is not None:
                    _note(self._right, mark, clock.now() + _KNOWN)
                    return found
                own, _ = await self.counters.add(names)
                if own.number <= allowed:
                    return None
            _note(self._refused, who, own.ends)
        raise TooManyGuessesError(own.wait(clock.now()))

    def _refuse(self, who: str) -> None:
        now = self.counters.clock.now()
        if (until := self._refused.get(who)) is not None and now < until:
            raise TooManyGuessesError(max(1, int((until - now).total_seconds()) + 1))


_Key = TypeVar("_Key")


def _note(kept: dict[_Key, datetime], key: _Key, until: datetime) -> None:
    if len(kept) >= _MOST:
        kept.clear()
    kept[key] = until


def is_unguessable(token: str) -> bool:
    """Return whether a token is one that no number of guesses finds: long, and of many different characters."""
    return len(token) >= _UNGUESSABLE and len(set(token)) >= _UNGUESSABLE // 4


def household(address: str) -> str:
    """Return what an address is counted as: itself, or the network of 64 bits of an IPv6 one, which one line has."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:  # a socket has none
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.ip_network((int(found), 64), strict=False))
