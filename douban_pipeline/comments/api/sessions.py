"""Sessions of moderators that last: a signed cookie instead of the token that it was issued for."""

from __future__ import annotations

from datetime import timedelta

from fastapi import Request, Response

from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.types import Actor, Rank
from douban_pipeline.core.clock import Clock
from douban_pipeline.core.counters import Counters
from douban_pipeline.core.logins import Login, TokenKeeper

COOKIE = "douban_pipeline_moderator"
ASKED_BY = "x-operator"
"""Header that the moderators' page sends, and no page of another origin may: with it the cookie counts on every path,
also for what changes something. Without it, on the site's own pages, a moderator is a visitor like others."""
_PATH = "/comments"
_PURPOSE = b"douban_pipeline comments moderator 1"
_REMEMBERED = timedelta(days=30)
"""How long a session lasts in a browser that remembers it: a moderator looks in at least once a month."""
_MOST_NAME = 30


class ModeratorSessions:
    """Issues and reads the cookies; changing a token ends the sessions that were begun with it."""

    def __init__(self, settings: CommentsSettings, clock: Clock, counters: Counters) -> None:
        self._clock, self._counters = clock, counters
        self._keepers = {
            rank: TokenKeeper(token.get_secret_value(), _PURPOSE, _REMEMBERED)
            for rank, token in ((Rank.AUDIT, settings.audit_token), (Rank.OPERATOR, settings.admin_token))
        }

    def begin(self, request: Request, response: Response, actor: Actor, name: str, *, remember: bool) -> None:
        """Set the cookie of whoever sent the token of ``actor``."""
        keeper = self._keepers[actor.rank]
        value, kept = keeper.issue(self._clock.now(), remember=remember, person=moderator_name(name))
        secure = request.url.scheme == "https"
        response.set_cookie(COOKIE, value, max_age=kept, path=_PATH, httponly=True, secure=secure, samesite="strict")

    async def actor(self, request: Request) -> Actor | None:
        """Return the moderator whose cookie a request has; None without one, or if it has expired or was ended."""
        for rank in self._keepers:
            login = self._login(request, rank)
            if login is not None:
                [ended] = await self._counters.read(login.ended)
                return None if ended.number else moderator(rank, login.person)
        return None

    async def end(self, request: Request, response: Response) -> None:
        """End the session of a request, in all processes, and delete its cookie.

        Raises:
            CountersUnavailableError: It cannot be noted now; the session goes on.
        """
        for rank in self._keepers:
            login = self._login(request, rank)
            if login is not None:
                await self._counters.add({login.ended: login.seconds}, must_share=True)
        response.delete_cookie(COOKIE, path=_PATH, httponly=True, samesite="strict")

    def _login(self, request: Request, rank: Rank) -> Login | None:
        return self._keepers[rank].login_of(request.cookies.get(COOKIE, ""), self._clock.now())


def moderator(rank: Rank, name: str) -> Actor:
    """Return the operator or auditor of a name, which is in the log of what was done."""
    key = "audit" if rank == Rank.AUDIT else "ops"
    return Actor(f"{key}:{name}" if name else key, name=name or "管理员", rank=rank)


def moderator_name(given: str) -> str:
    """Return a name as it is logged: letters and digits."""
    return "".join(letter for letter in given if letter.isalnum())[:_MOST_NAME]
