"""Additions to a page: decorations of its authors for everybody; own votes and friends' likes for one visitor."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, Generic, TypeVar

from sqlalchemy.exc import DBAPIError

from douban_pipeline.comments import answers, pages
from douban_pipeline.comments.dependencies import Dependencies
from douban_pipeline.comments.identity import CmsUsers
from douban_pipeline.comments.plugs import Decoration
from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.comments.sites import Sites
from douban_pipeline.comments.types import Actor, SectionType
from douban_pipeline.core.database import reading
from douban_pipeline.core.database_errors import is_cut

_LOG = logging.getLogger(__name__)

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")
_Result = TypeVar("_Result")
_FRIENDS_SHOWN = 3
_REMEMBERED, _REMEMBERED_SECONDS = 20_000, 60.0
"""Maximum number of users whose friends and badges, and of videos whose names, are cached; for how many seconds."""


class Remembered(Generic[_Key, _Value]):
    """Values by key, each with a time to live.

    Args:
        most: Maximum number of values; when it is reached, all are dropped.
        clock: Monotonic clock in seconds.
    """

    def __init__(self, seconds: float, most: int, clock: Callable[[], float]) -> None:
        self._seconds, self._most, self._clock = seconds, most, clock
        self._kept: dict[_Key, tuple[float, _Value]] = {}

    def get(self, key: _Key) -> _Value | None:
        """Return the value of a key; None where there is none or it has expired."""
        until, value = self._kept.get(key, (0.0, None))
        return value if until > self._clock() else None

    def put(self, key: _Key, value: _Value) -> None:
        """Store a value."""
        if len(self._kept) >= self._most:
            self._kept = {}
        self._kept[key] = (self._clock() + self._seconds, value)


class Overlay:
    """Reads the additions to pages; all they need are weak dependencies, named in ``degraded`` where they fail."""

    def __init__(
        self,
        services: CommentsServices,
        sites: Sites,
        dependencies: Dependencies,
        threads: Executor,
        users: CmsUsers | None,
    ) -> None:
        self._services, self._sites, self._users = services, sites, users
        self._dependencies, self._threads = dependencies, threads
        self._friends: Remembered[int, list[int]] = Remembered(_REMEMBERED_SECONDS, _REMEMBERED, time.monotonic)
        self._names: Remembered[int, tuple[str, bool]] = Remembered(_REMEMBERED_SECONDS, _REMEMBERED, time.monotonic)
        self._badges: Remembered[int, dict[str, str]] = Remembered(_REMEMBERED_SECONDS, _REMEMBERED, time.monotonic)

    async def decorations(self, body: dict[str, Any], degraded: list[str]) -> dict[str, Any]:
        """Return the decorations of a page's authors, by id; authors without any are missing."""
        plugs = self._services.plugs
        if not plugs.has_decorations and self._users is None:
            return {}
        ask = plugs.decorations if plugs.has_decorations else self._portraits
        shown = [*items_of(body), *([body["root"]] if "root" in body else [])]
        authors = sorted({int(item["author"]["id"]) for item in shown if item["author"]["id"]})
        unknown = [user for user in authors if self._badges.get(user) is None]
        if unknown:
            found = await self._ask("decorations", partial(ask, unknown), degraded)
            for user in unknown if found is not None else ():
                known = (found or {}).get(str(user))
                self._badges.put(user, known.model_dump(exclude_defaults=True) if known is not None else {})
        return {str(user): badge for user in authors if (badge := self._badges.get(user))}

    async def film_names(self, vod_ids: Collection[int], degraded: list[str]) -> dict[int, tuple[str, bool]]:
        """Return name of each video, and whether it has a poster; none where the CMS cannot be asked."""
        if not self._services.settings.library_url.get_secret_value():
            return {}
        if unknown := [number for number in vod_ids if self._names.get(number) is None]:

            def read() -> dict[int, tuple[str, bool]]:
                films = self._services.films
                return films.names(unknown) if films is not None else {}

            found = await self._ask("films", read, degraded)
            for number in unknown if found is not None else ():
                self._names.put(number, (found or {}).get(number, ("", False)))
        return {number: known for number in vod_ids if (known := self._names.get(number)) is not None}

    async def give_titles(self, sections: Iterable[answers.Section | answers.NoticeSection]) -> None:
        """Give sections of videos without a title of the site's the name that the CMS has now, if it can be asked."""
        untitled = [each for each in sections if not each["title"] and each["type"] == SectionType.VIDEO]
        names = await self.film_names({each["object_id"] for each in untitled}, []) if untitled else {}
        for each in untitled:
            each["title"], _ = names.get(each["object_id"], ("", False))

    def _portraits(self, users: Sequence[int]) -> dict[str, Decoration]:
        """Return the pictures that users chose in the CMS; none from then on where its table may not be read."""
        if self._users is None:
            return {}
        try:
            with reading(self._services.engine) as connection:
                found = self._users.portraits(connection, users)
        except DBAPIError as error:
            if is_cut(error):
                raise
            _LOG.warning("pictures of the CMS's users are not shown, its table cannot be read: %s", error.orig)
            self._users = None
            return {}
        return {str(user): Decoration(avatar=path) for user, path in found.items()}

    async def personal(self, visitor: Actor, body: dict[str, Any], degraded: list[str]) -> answers.Personal:
        """Return the personal part of a page: the visitor's votes and waiting comments, and what friends liked.

        Votes and the list of friends are asked concurrently, what friends liked after them.
        """
        ids = [int(item["id"]) for item in items_of(body)]
        section_id = int(body.get("section", {}).get("id", 0))

        def own() -> answers.Personal:
            return self._sites.read(lambda site: pages.read_personal(site, visitor, section_id, ids))[0]

        votes, friends = await asyncio.gather(
            self._ask("personal", own, degraded),
            self._friends_of(visitor, degraded),
        )
        found: answers.Personal = votes or {"votes": {}, "mine": []}
        if friends and ids:
            found["liked_by_friends"] = await self._liked(friends, ids, degraded)
        return found

    def _ask(self, name: str, work: Callable[[], _Result], degraded: list[str]) -> Awaitable[_Result | None]:
        loop = asyncio.get_running_loop()
        return self._dependencies.try_call(name, lambda: loop.run_in_executor(self._threads, work), degraded)

    async def _friends_of(self, visitor: Actor, degraded: list[str]) -> list[int]:
        plugs = self._services.plugs
        if not plugs.has_friends or not visitor.user_id:
            return []
        if (known := self._friends.get(visitor.user_id)) is not None:
            return known
        found = await self._ask("friends", partial(plugs.friends, visitor.user_id), degraded)
        if found is not None:
            self._friends.put(visitor.user_id, found)
        return found or []

    async def _liked(
        self, friends: Sequence[int], ids: Sequence[int], degraded: list[str]
    ) -> dict[str, answers.Friends]:
        def read() -> dict[int, list[int]]:
            return self._sites.read(lambda site: pages.read_liked(site, friends, ids))[0]

        found = await self._ask("friends", read, degraded)
        return {
            str(number): {"count": len(users), "users": [str(user) for user in sorted(users)[:_FRIENDS_SHOWN]]}
            for number, users in (found or {}).items()
        }


def items_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all comments of a page, including the replies below them."""
    top = [*body.get("pinned", ()), *body.get("items", ())]
    return [*top, *(reply for item in top for reply in item.get("preview", ()))]
