"""The application: login, cookies, headers and health checks around the systems' routes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from http import HTTPStatus
from urllib.parse import parse_qs, quote, unquote, urlsplit

from fastapi import FastAPI, Request, Response
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from douban_pipeline import __version__
from douban_pipeline.core.clock import Clock, SystemClock
from douban_pipeline.core.counters import Counters, CountersUnavailableError
from douban_pipeline.core.guesses import GuessGuard, TooManyGuessesError
from douban_pipeline.core.logins import Login, TokenKeeper
from douban_pipeline.core.mounts import Mount
from douban_pipeline.core.settings_base import is_loopback
from douban_pipeline.core.system import tables_versions
from douban_pipeline.core.ui.templates import render
from douban_pipeline.serve.middleware import BodyLimit, CrossOrigin, Forwarding
from douban_pipeline.serve.settings import ServeSettings

COOKIE = "douban_pipeline"
_PURPOSE = b"douban_pipeline cookie 1"
_OPEN = ("/healthz", "/login", "/logout", "/favicon.ico")
_ICON = (
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><rect width='16' height='16' rx='4' fill='#2f7d4f'/>"
    "<path d='M6 4.5v7l6-3.5z' fill='#fff'/></svg>"
)
_SAFE = ("GET", "HEAD", "OPTIONS")
_MOST_FORM = 4096
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not no-referrer: a form's Origin would be null then, like that of a foreign page.
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}
"""Headers of every answer that does not set them itself."""


def create_app(
    settings: ServeSettings, mounts: Sequence[Mount], clock: Clock | None = None, guard: GuessGuard | None = None
) -> FastAPI:
    """Return the application.

    Args:
        settings: The service's settings.
        mounts: The systems to serve.
        clock: Source of the current time; the system's clock by default.
        guard: The guard against guessing, closed together with the application; by default one of this process alone.
    """
    clock = clock or SystemClock()
    guard = guard or GuessGuard(Counters(clock))
    door = _Door(settings, mounts, clock, guard)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        for mount in mounts:
            if mount.close is not None:
                await asyncio.to_thread(mount.close)
        guard.counters.close()

    app = FastAPI(title="douban_pipeline", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    # Not at its highest level, which takes twice the time for a hundredth less; streams of events stay as they are.
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=6)
    app.add_middleware(BodyLimit, other={each.prefix: each.most_body for each in mounts if each.most_body})
    app.add_middleware(_Doorway, door=door)
    app.add_middleware(CrossOrigin, paths={path: mount.origins for mount in mounts for path in mount.public})
    app.add_middleware(Forwarding, proxies=settings.proxy_networks, user_header=settings.user_header)
    app.get("/healthz")(door.health)
    app.get("/favicon.ico")(_icon)
    app.get("/login")(door.show_login)
    app.post("/login")(door.log_in)
    app.post("/logout")(door.log_out)
    for mount in mounts:
        app.include_router(mount.router, prefix=mount.prefix)
    app.add_exception_handler(HTTPException, _problem)
    return app


class _Doorway:
    """Lets authorised requests through, and sets the headers of every answer.

    Starlette's middleware decorator is not used: it adds a task and a stream to every request.
    """

    def __init__(self, app: ASGIApp, door: _Door) -> None:
        self._app, self._door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        request.state.user = self._door.user(request)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if scope["scheme"] == "https":
                    headers.setdefault("Strict-Transport-Security", "max-age=31536000")
            await send(message)

        await (await self._door.refusal(request) or self._app)(scope, receive, send_with_headers)


class _Door:
    def __init__(self, settings: ServeSettings, mounts: Sequence[Mount], clock: Clock, guard: GuessGuard) -> None:
        lasts = timedelta(days=settings.remember_me_days)
        self._keeper = TokenKeeper(settings.token.get_secret_value(), _PURPOSE, lasts)
        self._guard = guard
        self._mounts = mounts
        self._public = tuple(path for mount in mounts for path in mount.public)
        self._clock = clock
        self._days = settings.remember_me_days
        self._user_header = settings.user_header

    def user(self, request: Request) -> str:
        """Return the user given by a named proxy's header, if a setting names one; other headers are ignored."""
        return unquote(request.headers.get(self._user_header, "")).strip() if self._user_header else ""

    async def refusal(self, request: Request) -> Response | None:
        """Return the answer to an unauthorised request, None for an authorised one."""
        # Not that of request.url, which older releases of Starlette read from a header of the client's, the host.
        path = request.scope["path"]
        if not self._keeper.asks and not is_loopback(f"http://{request.headers.get('host', '')}"):
            # Without a login, check the host: a foreign page could let its own name resolve to this machine.
            return _plain("只接受以本机地址（127.0.0.1 或 localhost）访问；要从别处访问，请设置 SERVE_TOKEN", 421)
        if any(path == public or path.startswith(f"{public.rstrip('/')}/") for public in self._public):
            return None
        try:
            bearer = await self._has_bearer(request)
        except TooManyGuessesError as refused:
            return _plain(_too_often(refused), 429, {"Retry-After": str(refused.seconds)})
        if request.method not in _SAFE and not bearer and not _same_origin(request) and not _is_program(request):
            return _plain("请求来自别的网站，已拒绝", 403)
        if not self._keeper.asks or path in _OPEN or bearer or await self._login(request):
            return None
        if request.method == "GET" and _wants_page(request):
            target = f"{path}?{request.url.query}" if request.url.query else path
            return RedirectResponse(f"/login?next={quote(target, safe='')}", 303)
        return _plain("需要登录", 401, {"WWW-Authenticate": "Bearer"})

    async def _has_bearer(self, request: Request) -> bool:
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if not self._keeper.asks or kind.lower() != "bearer":
            return False
        return await self._is_right(request, given.strip())

    async def _is_right(self, request: Request, token: str) -> bool:
        """Return whether a token is right; raises `TooManyGuessesError` without comparing it."""
        found = await self._guard.compare(
            "service", _address(request), token, lambda given: self._keeper.knows(given) or None
        )
        return found is True

    async def _login(self, request: Request) -> Login | None:
        """Return the login of a request's cookie; None without one, or if it has expired or was ended."""
        login = self._keeper.login_of(request.cookies.get(COOKIE, ""), self._clock.now())
        if login is None:
            return None
        [ended] = await self._guard.counters.read(login.ended)
        return None if ended.number else login

    def health(self) -> JSONResponse:
        """Report whether the service and its systems answer; unauthenticated, so it gives no details of a problem.

        A load balancer takes the service away at 503: what is amiss with a system that answers is in the body alone.
        """
        installed = [mount for mount in self._mounts if mount.installed]
        ill = [mount.name for mount in installed if mount.problem is not None and mount.problem()]
        found = {mount.name: mount.worry() for mount in installed if mount.worry is not None and mount.name not in ill}
        worries = {name: worry for name, worry in found.items() if worry}
        states = {**dict.fromkeys(worries, "warn"), **dict.fromkeys(ill, "ill")}
        systems = {mount.name: states.get(mount.name, "ok") for mount in installed}
        status = "ill" if ill else "warn" if worries else "ok"
        body = {"status": status, "systems": systems, "worries": worries, "release": __version__}
        return JSONResponse({**body, "tables": tables_versions()}, 503 if ill else 200)

    async def show_login(self, request: Request) -> Response:
        """Show the form."""
        target = _inside(request.query_params.get("next", "/"))
        if not self._keeper.asks or await self._login(request):
            return RedirectResponse(target, 303)
        return self._form(target)

    async def log_in(self, request: Request) -> Response:
        """Handle the form, and set a cookie if the token is correct."""
        form = await _read_form(request)
        if form is None:
            return _plain("表单过大或无法读取", 400)
        target = _inside(form.get("next", "/"))
        try:
            right = await self._is_right(request, form.get("token", "").strip())
        except TooManyGuessesError as refused:
            return self._form(target, _too_often(refused), 429, {"Retry-After": str(refused.seconds)})
        if not right:
            return self._form(target, "令牌不正确", 403)
        value, kept = self._keeper.issue(self._clock.now(), remember=form.get("remember") == "yes")
        response = RedirectResponse(target, 303)
        secure = request.url.scheme == "https"
        # Lax, not Strict: a user who follows a link in a message stays logged in.
        response.set_cookie(COOKIE, value, max_age=kept, httponly=True, samesite="lax", secure=secure, path="/")
        return response

    async def log_out(self, request: Request) -> Response:
        """End the login in all processes, whoever kept its cookie, and delete the cookie in the browser."""
        login = await self._login(request)
        if login is not None:
            try:
                await self._guard.counters.add({login.ended: login.seconds}, must_share=True)
            except CountersUnavailableError:
                text = "没有退出：数据库暂时无法写入，请稍后再退出一次"
                return _plain(text, 503, {"Retry-After": "30"})
        response = RedirectResponse("/login", 303)
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="lax")
        return response

    def _form(
        self, target: str, error: str = "", status: int = 200, headers: dict[str, str] | None = None
    ) -> HTMLResponse:
        page = render(
            __package__,
            "login.html.j2",
            title="登录",
            badge="",
            about="",
            lang="zh-Hans",
            chapters=[{"key": "login", "title": "请输入访问令牌"}],
            target=target,
            error=error,
            days=self._days,
        )
        return HTMLResponse(page, status, headers)


def _icon() -> Response:
    """Return the icon of all pages, which browsers ask for by themselves."""
    return Response(_ICON, media_type="image/svg+xml", headers={"Cache-Control": "public, max-age=86400"})


async def _problem(request: Request, error: Exception) -> Response:
    """Answer a refused request: with a page where a person's browser asks for one, as FastAPI does otherwise."""
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        error.headers = {"Allow": ", ".join(_allowed(request))}
    if request.method != "GET" or not _wants_page(request):
        return await http_exception_handler(request, error)
    missing = error.status_code == 404
    unexplained = error.detail == HTTPStatus(error.status_code).phrase
    said = "地址可能有误，或它指向的内容已经不在。" if missing and unexplained else str(error.detail)
    page = render(
        __package__,
        "problem.html.j2",
        title="没有这个页面" if missing else "此刻无法显示",
        badge="",
        about=request.url.path,
        lang="zh-Hans",
        chapters=[{"key": "problem", "title": "怎么办"}],
        said=said,
    )
    return HTMLResponse(page, error.status_code, error.headers)


def _allowed(request: Request) -> Iterator[str]:
    """Yield all methods of a path; Starlette names those of the first of its routes alone."""
    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"):
        scope = {**request.scope, "method": method}
        if any(route.matches(scope)[0] == Match.FULL for route in request.app.routes):
            yield method


def _wants_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _too_often(refused: TooManyGuessesError) -> str:
    return f"尝试次数过多，请 {-(-refused.seconds // 60)} 分钟后再试"


def _same_origin(request: Request) -> bool:
    """Return whether a request was sent by one of our pages, according to the browser."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc == request.headers.get("host")


def _is_program(request: Request) -> bool:
    """Return whether no browser page can have sent a request: it has another user agent, or JSON with a preflight."""
    named = "sec-fetch-site" in request.headers or "origin" in request.headers or COOKIE in request.cookies
    return not named and request.headers.get("content-type", "").partition(";")[0].strip() == "application/json"


def _inside(target: str) -> str:
    """Return a path of this service, never another site's address, whatever the link contained."""
    plain = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if plain else "/"


def _address(request: Request) -> str:
    return request.client.host if request.client is not None else ""


async def _read_form(request: Request) -> dict[str, str] | None:
    """Return the fields of a form; None if it is too large or not a form."""
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > _MOST_FORM:
            return None
    try:
        return {name: values[0] for name, values in parse_qs(content.decode()).items()}
    except ValueError:
        return None


def _plain(text: str, status: int, headers: dict[str, str] | None = None) -> Response:
    return Response(text, status, headers, "text/plain; charset=utf-8")
