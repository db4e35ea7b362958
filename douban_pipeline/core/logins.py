"""Logins that last: cookies signed with the token that a person gave, for everything that has one token for people."""

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
    """A login: its random name, which is in its cookie, how many seconds it has left, and who logged in.

    Attributes:
        name: Its random name.
        seconds: How many seconds it has left.
        person: The name that a person gave; empty where none was asked for.
    """

    name: str
    seconds: float
    person: str = ""

    @property
    def ended(self) -> str:
        """Name of the count that says that the login was ended."""
        return f"ended:{self.name}"


class TokenKeeper:
    """Checks the token, and issues cookies signed with it: changing the token invalidates all of them.

    Args:
        token: The required token; empty requires none.
        purpose: What the logins are for: those of one purpose are worth nothing for another with the same token.
        remember: How long a login with "remember me" is valid.
    """

    def __init__(self, token: str, purpose: bytes, remember: timedelta) -> None:
        self._token = hashlib.sha256(token.encode()).digest()
        self._key = hmac.new(token.encode(), purpose, hashlib.sha256).digest()
        self._remember = remember
        self.asks = bool(token)

    def knows(self, token: str) -> bool:
        """Return whether a token is correct, in constant time."""
        return hmac.compare_digest(hashlib.sha256(token.encode()).digest(), self._token)

    def issue(self, now: datetime, *, remember: bool, person: str = "") -> tuple[str, int | None]:
        """Return a cookie's value, and its lifetime in seconds: None until the browser is closed."""
        lasts = self._remember if remember else _SHORT
        content = f"{int((now + lasts).timestamp())}.{secrets.token_hex(16)}"
        content += f".{person.encode().hex()}" if person else ""
        return f"{content}.{self._sign(content)}", int(lasts.total_seconds()) if remember else None

    def login_of(self, cookie: str, now: datetime) -> Login | None:
        """Return the login that a cookie of ours holds; None if we did not issue it, or if it has expired."""
        content, _, signature = cookie.rpartition(".")
        if not self.asks or not hmac.compare_digest(signature.encode(), self._sign(content).encode()):
            return None
        ends, _, rest = content.partition(".")
        if not ends.isdecimal() or now.timestamp() >= int(ends):
            return None
        name, _, person = rest.partition(".")
        return Login(name, int(ends) - now.timestamp(), bytes.fromhex(person).decode())

    def _sign(self, content: str) -> str:
        return hmac.new(self._key, content.encode(), hashlib.sha256).hexdigest()
