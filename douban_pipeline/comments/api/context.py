"""Request context of the service: read sites, limits, local copies, shared pages, and authentication."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from fastapi import Request, Response

from douban_pipeline import __version__
from douban_pipeline.comments import pages
from douban_pipeline.comments.api.overlay import Overlay
from douban_pipeline.comments.api.problems import Problem
from douban_pipeline.comments.api.request_batches import Gathering
from douban_pipeline.comments.api.sessions import ASKED_BY, COOKIE, ModeratorSessions, moderator, moderator_name
from douban_pipeline.comments.cache.flights import Fetched, HotKeys, LoopFlights
from douban_pipeline.comments.cache.lists import open_lists
from douban_pipeline.comments.dependencies import Dependencies, UnavailableError
from douban_pipeline.comments.identity import CmsUsers, TokenError, UnsignedError, ViewTokens, guest, read_token
from douban_pipeline.comments.ids import first_of
from douban_pipeline.comments.pages import NoSuchPageError
from douban_pipeline.comments.services import LIST_SECONDS, LIST_SIZE, CommentsServices
from douban_pipeline.comments.settings import PREFIX, read_api_keys, read_sites
from douban_pipeline.comments.sites import Site, Sites
from douban_pipeline.comments.store.comment_lists import Order
from douban_pipeline.comments.types import Actor, Rank
from douban_pipeline.core.counters import Counters
from douban_pipeline.core.database import open_engine, outage, reading
from douban_pipeline.core.guesses import GuessGuard, TooManyGuessesError, is_unguessable

PAGE_SIZE = 20
"""Number of roots of a page, unless a request names another."""
HOT_PER_SECOND = 50
"""Requests per second from which a section is hot: a tenth of what one process serves."""
LOCAL_MS = 250
"""Milliseconds for which a hot section's page is cached: visitors do not notice, and one read serves all."""
MAX_LAG = timedelta(seconds=5)
"""Maximum lag of a replica before another one is read."""
_AHEAD = timedelta(days=1)
"""How far the clocks of other hosts may have been ahead of this one's."""

_Result = TypeVar("_Result")
_THREADS = 32
_ASK = {"WWW-Authenticate": "Bearer"}
_LOCAL_MOST = 2000
"""Maximum number of local copies of pages."""


@dataclass(slots=True)
class SharedPage:
    """The impersonal part of a page, its notice, and its encoded forms for anonymous visitors, by device.

    ``view`` is the token of what it shows, with the window in which it was issued; ``encoded`` contains it.
    ``until`` is the time until which a copy may be served while the section is hot, in seconds of the monotonic clock.
    """

    body: dict[str, Any]
    notice: str
    degraded: list[str] = field(default_factory=list)
    encoded: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    view: tuple[int, str] | None = None
    until: float = 0.0


class Context:
    """State and helpers that all paths of the service share.

    Args:
        services: The comment system; nothing connects before the first request.
        guard: The guard against guessing; by default one of this process alone.
    """

    def __init__(self, services: CommentsServices, guard: GuessGuard | None = None) -> None:
        self.services, self.settings = services, services.settings
        self._guard = guard or GuessGuard(Counters(services.clock))
        self.dependencies = Dependencies()
        self.flights: LoopFlights[SharedPage] = LoopFlights()
        self.hot = HotKeys(HOT_PER_SECOND)
        self.local_ms = LOCAL_MS
        self.sites = _open_sites(services)
        self.local: dict[Hashable, SharedPage] = {}
        self.loads = 0
        """Number of shared pages that this process read itself."""
        self.views = ViewTokens(self.settings)
        self.moderators = ModeratorSessions(self.settings, services.clock, self._guard.counters)
        self._users = CmsUsers(self.settings.table_prefix)
        self._pool = ThreadPoolExecutor(_THREADS, "comments-service")
        pictured = self._users if self.settings.cms_login else None
        self.overlay = Overlay(services, self.sites, self.dependencies, self._pool, pictured)
        self._counting: Gathering[tuple[str, int], int | None] = Gathering(self._count)
        self._keys = read_api_keys(self.settings.api_keys.get_secret_value())

    async def in_thread(self, work: Callable[[], _Result]) -> _Result:
        """Run blocking work in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def read(self, name: str, work: Callable[[Site], _Result]) -> tuple[_Result, str]:
        """Read from the read sites under the limits of a dependency; return the result and a notice about its age.

        Raises:
            UnavailableError: No read site answers in time.
            NoSuchPageError: The requested object does not exist.
        """
        return await self._limited(name, partial(self.sites.read, work))

    async def _limited(self, name: str, work: Callable[[], _Result]) -> _Result:
        return await self.dependencies.call(name, lambda: self.in_thread(work), expected=(NoSuchPageError,))

    async def shared_page(
        self, key: Hashable, section: Hashable, work: Callable[[Site], Any], *, first: bool = False
    ) -> SharedPage:
        """Return the impersonal part of a page.

        For a hot section it is a local copy if that is fresh enough; concurrent requests for the same page share one
        read. The ``first`` page of a section, the most requested one, is read by one process for all that need it then.
        """
        moment = time.monotonic()
        is_hot = self.hot.hit(section, moment)
        if is_hot and (known := self.local.get(key)) is not None and known.until > moment:
            return known

        joint = self.services.lists.flights if first and self.services.lists is not None else None

        def good_ms() -> int:
            return self.local_ms if self.hot.is_hot(section) else 0

        def fetch() -> Fetched[tuple[dict[str, Any], str]]:
            if joint is None:
                return Fetched(self.sites.read(work), True, self.local_ms)
            return joint.run(f"{__version__}:{key}", partial(self.sites.read, work), good_ms)

        async def read() -> SharedPage:
            found = await self._limited("page", fetch)
            self.loads += found.own
            good = min(found.good_ms, self.local_ms) / 1000
            page = SharedPage(*found.result, until=time.monotonic() + good)
            if "section" in page.body:
                await self.overlay.give_titles([page.body["section"]])
            if badges := await self.overlay.decorations(page.body, page.degraded):
                page.body["decorations"] = badges
            return page

        page = await self.flights.run(key, read)
        if is_hot and self.local_ms:
            if len(self.local) >= _LOCAL_MOST:
                self.local = {kept: value for kept, value in self.local.items() if value.until > moment}
            self.local[key] = page
        return page

    def refuse_unborn(self, comment_id: int) -> None:
        """Refuse an id that no comment can have yet without asking the database: ids grow with time.

        Raises:
            NoSuchPageError: It is of a time to come.
        """
        if comment_id >= first_of(self.services.clock.now() + _AHEAD):
            raise NoSuchPageError

    async def read_only(self, target: pages.Target, order: Order, cursor: str | None) -> dict[str, Any] | None:
        """Return a page of a section as anybody sees it; None where there is none, or nothing can be read now."""
        try:
            after = pages.place_of(cursor)
            found = await self.shared_page(
                ("roots", target, order, cursor, PAGE_SIZE),
                target,
                lambda site: pages.read_roots(site, target, order, after, PAGE_SIZE),
                first=after is None,
            )
        except (NoSuchPageError, UnavailableError, ValueError):
            return None
        return found.body

    async def visitor(self, request: Request) -> Actor | None:
        """Return the visitor; None for a guest who may only read.

        Raises:
            Problem: The token is not valid.
        """
        if token := bearer_of(request):
            found = await self._known(request, token)
            if isinstance(found, Actor):
                return found
            raise Problem(401, "这个密钥只用于服务端接口" if found else "令牌不正确", _ASK)
        if ASKED_BY in request.headers and (moderator := await self._by_cookie(request)) is not None:
            return moderator
        if self.settings.cms_login and request.cookies.get("user_check") and self._is_own(request):
            cookies = dict(request.cookies)
            logged_in = await self.dependencies.call(
                "identity", lambda: self.in_thread(lambda: self._logged_in(cookies))
            )
            if logged_in is not None:
                return logged_in
        if self.settings.guests:
            return guest(address_of(request), request.headers.get("user-agent", ""))
        return None

    def _is_own(self, request: Request) -> bool:
        """Return whether a request with cookies may change something: a page of this site or a listed one sent it.

        Browsers set both headers, pages cannot.
        """
        return _same_site(request) or request.headers.get("origin", "").casefold() in self.settings.allowed_origins

    def _logged_in(self, cookies: dict[str, str]) -> Actor | None:
        with reading(self.services.engine) as connection:
            return self._users.logged_in(connection, cookies)

    async def writer(self, request: Request) -> Actor:
        """Return the visitor who sends a change.

        Raises:
            Problem: The visitor is not logged in and guests may not write.
        """
        found = await self.visitor(request)
        if found is None:
            raise Problem(401, "请先登录", _ASK)
        return found

    async def _known(self, request: Request, token: str) -> Actor | str | None:
        """Return whose a token is: a visitor, an operator or auditor, or the name of a server; None if nobody's.

        Raises:
            Problem: It is a visitor's but not valid now, or its sender has guessed too often.
        """
        try:
            return read_token(token, self.settings.token_secret.get_secret_value(), self.services.clock.now())
        except UnsignedError:
            pass  # not a visitor's
        except TokenError as error:
            raise Problem(401, str(error), _ASK) from None

        def find(given: str) -> Actor | str | None:
            return self._person(given) or self._server(given)

        try:
            if is_unguessable(token) and (found := find(token)) is not None:
                return found  # whatever others at its address have tried
            return await self._guard.compare("comments", address_of(request), token, find)
        except TooManyGuessesError as refused:
            minutes = -(-refused.seconds // 60)
            wait = {"Retry-After": str(refused.seconds)}
            raise Problem(429, f"错误的令牌过多，请 {minutes} 分钟后再试", wait) from None

    def _server(self, token: str) -> str | None:
        """Return the name of the server that a key identifies; None if it is no server's."""
        names = [name for name, (key, _) in self._keys.items() if hmac.compare_digest(token.encode(), key.encode())]
        return names[0] if names else None

    def _person(self, token: str) -> Actor | None:
        """Return the operator or auditor that a token identifies; None if it is neither's."""
        for secret, rank in (
            (self.settings.audit_token, Rank.AUDIT),
            (self.settings.admin_token, Rank.OPERATOR),
        ):
            expected = secret.get_secret_value()
            if expected and hmac.compare_digest(token.encode(), expected.encode()):
                return moderator(rank, "")
        return None

    async def operator(self, request: Request) -> Actor:
        """Return the operator or auditor who sends a request, with a token or with the cookie of a session.

        With a token, the header ``X-Operator`` gives the person's name for the log; a session has it already.

        Raises:
            Problem: Neither is an operator's or an auditor's, or its sender has guessed too often.
        """
        if token := bearer_of(request):
            found = await self._known(request, token)
            if isinstance(found, Actor) and found.rank >= Rank.OPERATOR:
                return moderator(found.rank, moderator_name(request.headers.get(ASKED_BY, "")))
        elif (logged_in := await self._by_cookie(request)) is not None:
            return logged_in
        raise Problem(401, "需要管理令牌", _ASK)

    async def _by_cookie(self, request: Request) -> Actor | None:
        """Return the moderator of a request's cookie, if it only reads, or our page sent it."""
        is_ours = request.method in ("GET", "HEAD") or ASKED_BY in request.headers
        return await self.moderators.actor(request) if COOKIE in request.cookies and is_ours else None

    async def server_key(self, request: Request) -> str:
        """Return the name of the server that sends the request, if it is within its quota.

        Raises:
            Problem: Its key is unknown, or its quota used up, or its sender has guessed too often.
        """
        name = await self._known(request, token) if (token := bearer_of(request)) else None
        if not isinstance(name, str):
            raise Problem(401, "需要服务端密钥", _ASK)
        if await self.counted(f"server:{name}", 60) > self._keys[name][1]:
            raise Problem(429, "本分钟的配额已用完", {"Retry-After": "60"})
        return name

    async def counted(self, key: str, seconds: int) -> int:
        """Increment a counter that ends after ``seconds``, shared by all processes: by Redis, else by the database."""
        moment = int(time.time() // seconds)
        if self.services.lists is not None:
            shared = await self._counting.run((f"count:{key}:{moment}", seconds))
            if shared is not None:
                return shared
        [count] = await self._guard.counters.add({f"comments {key}": seconds})
        return count.number

    async def _count(self, keys: Sequence[tuple[str, int]]) -> Sequence[int | Exception | None]:
        lists = self.services.lists
        assert lists is not None
        counted = await self.in_thread(partial(lists.count, keys))
        return counted if counted is not None else [None] * len(keys)

    def close(self) -> None:
        """Stop the threads and close the connections to read sites."""
        self._pool.shutdown()
        self.sites.close()

    def problem(self) -> str | None:
        """Return why the system cannot answer, for monitoring; None if it can."""
        return outage(self.services.engine)


def _open_sites(services: CommentsServices) -> Sites:
    settings = services.settings
    named = read_sites(settings.read_sites.get_secret_value())
    if not named:
        return Sites([Site("main", services.engine, services.lists)], services.clock, None)
    sites = []
    for name, (database, cache) in named.items():
        lists = None
        if cache:
            lists = open_lists(
                cache,
                services.clock,
                prefix=settings.redis_prefix,
                seconds=LIST_SECONDS,
                most=LIST_SIZE,
            )
        sites.append(Site(name, open_engine(database, setting=f"{PREFIX}READ_SITES"), lists))
    return Sites(sites, services.clock, MAX_LAG)


def bearer_of(request: Request) -> str:
    """Return the bearer token of a request; empty without one."""
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    return given.strip() if kind.lower() == "bearer" else ""


def address_of(request: Request) -> str:
    """Return the client's address as the server sees it."""
    return request.client.host if request.client is not None else ""


def _same_site(request: Request) -> bool:
    """Return whether a request with cookies may change something: it only reads, or a page of this site sent it."""
    return request.method in ("GET", "HEAD") or request.headers.get("sec-fetch-site") in ("same-origin", "none")


def encode(body: Mapping[str, Any]) -> tuple[bytes, str]:
    """Return a response body as JSON, and its ETag."""
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return content, f'W/"{hashlib.sha1(content, usedforsecurity=False).hexdigest()[:20]}"'


def tagged(request: Request, body: Mapping[str, Any]) -> Response:
    """Return a response with a body and its ETag, or 304 if the client has it already."""
    return answer_with(request, *encode(body))


def answer_with(request: Request, content: bytes, tag: str) -> Response:
    """Return a response with the result of `encode`, or 304 if the client has it already."""
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, 200, headers, "application/json")
