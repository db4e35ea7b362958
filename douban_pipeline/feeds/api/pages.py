"""The reader's pages over HTTP: ``/feeds/``. The service logs people in and refuses requests of foreign pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from sqlalchemy import Connection

from douban_pipeline.core.database import run_transaction
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.feeds import subscriptions
from douban_pipeline.feeds.api.parameters import read_parameters
from douban_pipeline.feeds.reading import pages, sources
from douban_pipeline.feeds.reading.pages import Wanted
from douban_pipeline.feeds.services import FeedsServices
from douban_pipeline.feeds.store import entry_lists
from douban_pipeline.feeds.subscriptions import SourceRequest

PREFIX = "/feeds"
_LARGEST = 2**53
# Articles show the pictures of their pages; nothing else of another host is loaded, and no script but ours runs.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; img-src 'self' https: http:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_View = Annotated[Literal["unread", "all"], Query()]
_Text = Annotated[str, Query(max_length=200)]


def pages_router(services: FeedsServices) -> APIRouter:
    """Return the router of the pages."""
    router = APIRouter()

    @router.get("")
    def without_slash(request: Request) -> Response:
        return RedirectResponse(f"{request.scope['path']}/", 307)

    @router.get("/")
    def entries(
        view: _View = "unread",
        source: _Text = "",
        folder: Annotated[str | None, Query(max_length=200)] = None,
        before: _Text = "",
    ) -> Response:
        return HTMLResponse(pages.entries_page(services, Wanted(view, source, folder, before)))

    @router.get("/entries/{entry_id}")
    def entry(
        entry_id: int,
        view: _View = "unread",
        source: _Text = "",
        folder: Annotated[str | None, Query(max_length=200)] = None,
    ) -> Response:
        wanted = Wanted(view, source, folder)
        found = pages.entry_page(services, entry_id, wanted) if 0 < entry_id < _LARGEST else None
        if found is None:
            raise HTTPException(404)
        return HTMLResponse(found, headers={"Content-Security-Policy": _POLICY})

    @router.get("/sources")
    def list_sources(
        q: _Text = "",
        state: Literal["", "failing", "active", "paused", "gone"] = "",
        folder: Annotated[str, Query(max_length=200)] = "*",
        after: _Text = "",
        done: _Text = "",
        of: _Text = "",
    ) -> Response:
        chosen = None if folder == "*" else folder
        page = sources.sources_page(
            services, words=q.strip(), state=state, folder=chosen, after=after, done=done, of=of
        )
        return HTMLResponse(page)

    @router.post("/sources")
    async def change(request: Request) -> Response:
        given = await read_parameters(request)
        source_id, what = given.get("source")[:64], given.get("as")
        if what not in ("added", "paused", "resumed", "removed"):
            raise HTTPException(422, "as 应为 added, paused, resumed 或 removed")
        if what == "added":
            entered = {name: given.get(name).strip() for name in sources.ENTERED}
            try:
                what, source_id = await run_in_threadpool(_follow, services, entered)
            except ProblemsError as error:
                page = await run_in_threadpool(sources.sources_page, services, problem=error.problems[0], given=entered)
                return HTMLResponse(page, 422)
        else:
            try:
                await run_in_threadpool(_change, services, source_id, what)
            except ProblemsError as error:
                raise HTTPException(404, str(error)) from error
        address = f"{request.scope['path']}?{urlencode({'done': what, 'of': source_id})}"
        return RedirectResponse(address, 303)

    @router.get("/reader.js")
    def script() -> Response:
        return Response(pages.script(), media_type="text/javascript; charset=utf-8")

    @router.post("/mark")
    async def mark(request: Request) -> Response:
        given = await read_parameters(request)
        ids = [int(each) for each in given.all("id") if each.isascii() and each.isdigit() and len(each) < 16]
        wanted = given.get("as")
        if wanted not in ("read", "unread") or not ids:
            raise HTTPException(422, "as 应为 read 或 unread，id 应为条目的编号")

        def work(connection: Connection) -> int:
            return entry_lists.mark(connection, ids, unread=wanted == "unread")

        changed = await run_in_threadpool(run_transaction, services.engine, work)
        if "application/json" in request.headers.get("accept", ""):
            return JSONResponse({"changed": changed})
        return RedirectResponse(_back(request, given.get("back"), "/mark"), 303)

    @router.post("/mark-all")
    async def mark_all(request: Request) -> Response:
        given = await read_parameters(request)
        through = given.number("through")
        if through is None or through >= _LARGEST:
            raise HTTPException(422, "through 应为页面显示时最后一个条目的编号")
        folder = given.get("folder") if "folder" in given else None
        chosen = Wanted(given.get("view") or "unread", given.get("source")[:200], folder).selection
        await run_in_threadpool(entry_lists.mark_all_read, services.engine, chosen, through=through)
        return RedirectResponse(_back(request, given.get("back"), "/mark-all"), 303)

    return router


def _follow(services: FeedsServices, entered: Mapping[str, str]) -> tuple[str, str]:
    """Follow a source, or the feed of a page; return what was done and the source's id."""
    wanted = SourceRequest(entered["kind"], entered["url"], entered["title"])
    wanted = replace(wanted, folder=entered["folder"], credential=entered["credential"])
    request, _ = subscriptions.find_feed(services, wanted)
    report = subscriptions.follow(services, [request], dry_run=False)
    done, found = next((name, some) for name in ("added", "edited", "known") if (some := getattr(report, name)))
    return done, found[0].source_id


def _change(services: FeedsServices, source_id: str, what: str) -> None:
    if what == "removed":
        subscriptions.remove(services, [source_id])
    else:
        paused = what == "paused"
        subscriptions.set_paused(services, [source_id], paused=paused, reason="在来源页面上暂停", dry_run=False)


def _back(request: Request, given: str, own: str) -> str:
    """Return the page to go back to: one of ours, whatever was sent."""
    base = str(request.scope["path"]).removesuffix(own)
    inside = given.isprintable() and not given.startswith(("/", "\\")) and ":" not in given.partition("?")[0]
    parts = given.partition("?")
    if not inside or ".." in parts[0] or "\\" in parts[0]:
        return f"{base}/"
    return f"{base}/{given.removeprefix('./')}"
