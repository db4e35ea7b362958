"""Authentication: the token, cookies signed with it, and a limit on guesses. No I/O."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections import deque
from datetime import datetime, timedelta

_SHORT = timedelta(hours=12)
"""How long a login is valid in a browser without "remember me"."""


class Keeper:
    """Checks the token, and issues cookies signed with it: changing the token invalidates all of them.

    Args:
        token: The required token; empty requires none.
        remember: How long a login with "remember me" is valid.
    """

    def __init__(self, token: str, remember: timedelta) -> None:
        self._token = hashlib.sha256(token.encode()).digest()
        self._key = hmac.new(token.encode(), b"douban_pipeline cookie 1", hashlib.sha256).digest()
        self._remember = remember
        self.asks = bool(token)

    def knows(self, token: str) -> bool:
        """Return whether a token is correct, in constant time."""
        return hmac.compare_digest(hashlib.sha256(token.encode()).digest(), self._token)

    def issue(self, now: datetime, *, remember: bool) -> tuple[str, int | None]:
        """Return a cookie's value, and its lifetime in seconds: None until the browser is closed."""
        lasts = self._remember if remember else _SHORT
        content = f"{int((now + lasts).timestamp())}.{secrets.token_hex(16)}"
        return f"{content}.{self._sign(content)}", int(lasts.total_seconds()) if remember else None

    def accepts(self, cookie: str, now: datetime) -> bool:
        """Return whether a cookie was issued by us and has not expired."""
        content, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(content).encode()):
            return False
        ends = content.partition(".")[0]
        return ends.isdecimal() and now.timestamp() < int(ends)

    def _sign(self, content: str) -> str:
        return hmac.new(self._key, content.encode(), hashlib.sha256).hexdigest()


class GuessLimit:
    """Limits wrong tokens within a period: per address, and over all addresses.

    Kept in memory: a restart resets it, but costs an attacker more than it gains.
    """

    def __init__(self, *, each: int = 5, all_together: int = 100, within: timedelta = timedelta(minutes=15)) -> None:
        self._each, self._all, self._within = each, all_together, within
        self._wrong: deque[tuple[datetime, str]] = deque()
        self._lock = threading.Lock()

    def wait(self, address: str, now: datetime) -> int:
        """Return how many seconds ``address`` must wait before another attempt; 0 for none."""
        with self._lock:
            while self._wrong and self._wrong[0][0] <= now - self._within:
                self._wrong.popleft()
            own = [moment for moment, whose in self._wrong if whose == address]
            if len(own) >= self._each:
                oldest = own[-self._each]
            elif len(self._wrong) >= self._all:
                oldest = self._wrong[0][0]
            else:
                return 0
        return max(1, int((oldest + self._within - now).total_seconds()) + 1)

    def count(self, address: str, now: datetime) -> None:
        """Record a wrong token."""
        with self._lock:
            self._wrong.append((now, address))
