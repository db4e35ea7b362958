"""Who may use the readers' API: whoever has the password, which is not the service's token.

A phone keeps the password; so it opens entries and sources and nothing else of the service. There is one reader an
installation, since the service has one token.
"""

from __future__ import annotations

import hashlib
import hmac

from fastapi import Request

from douban_pipeline.core.guesses import GuessGuard

USER = "reader"
"""The user name that readers ask for."""


class ReaderAccess:
    """Compares passwords and tokens in constant time, under the service's guard against guessing.

    Args:
        password: The password.
        guard: The guard, which counts wrong ones by address.
    """

    def __init__(self, password: str, guard: GuessGuard) -> None:
        self._guard = guard
        self._login = _hashed(f"{USER}\0{password}")
        # Made of the password, so that changing it ends every session, and none is lost by a restart.
        self.token = f"{USER}/" + hmac.new(password.encode(), b"feeds reader token 1", hashlib.sha256).hexdigest()
        self.edit_token = hmac.new(password.encode(), b"feeds reader edit 1", hashlib.sha256).hexdigest()

    async def logs_in(self, request: Request, user: str, password: str) -> bool:
        """Return whether user and password are right; raises `TooManyGuessesError`."""
        return await self._right(request, f"{user.strip()}\0{password}", self._login, hashed=True)

    async def knows(self, request: Request) -> bool:
        """Return whether a request has the token that a login gave; raises `TooManyGuessesError`."""
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        name, _, token = given.strip().partition("=")
        if kind.lower() != "googlelogin" or name.strip().lower() != "auth" or not token:
            return False
        return await self._right(request, token.strip(), self.token)

    async def _right(self, request: Request, given: str, wanted: str, *, hashed: bool = False) -> bool:
        address = request.client.host if request.client is not None else ""

        def same(tried: str) -> bool | None:
            shown = _hashed(tried) if hashed else tried
            return hmac.compare_digest(shown.encode("utf-8", "surrogatepass"), wanted.encode()) or None

        return await self._guard.compare("readers", address, given, same) is True


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
