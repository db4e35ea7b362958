"""Authentication: the token, and cookies signed with it. No I/O."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

_SHORT = timedelta(hours=12)
"""How long a login is valid in a browser without "remember me"."""


@dataclass(frozen=True, slots=True)
class Login:
    """A login: its random name, which is in its cookie, and how many seconds it has left."""

    name: str
    seconds: float


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

    def login_of(self, cookie: str, now: datetime) -> Login | None:
        """Return the login that a cookie of ours holds; None if we did not issue it, or if it has expired."""
        content, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(content).encode()):
            return None
        ends, _, name = content.partition(".")
        if not ends.isdecimal() or now.timestamp() >= int(ends):
            return None
        return Login(name, int(ends) - now.timestamp())

    def _sign(self, content: str) -> str:
        return hmac.new(self._key, content.encode(), hashlib.sha256).hexdigest()
