"""All paths of the comment service in one router: the API below ``/comments``, its pages below ``/demo``.

The paths for notices and for other servers of the site are here, those of pages and operators in modules of their own.
"""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from jinja2 import Environment
from sqlalchemy import Connection

from douban_pipeline.comments import pages, user_notices
from douban_pipeline.comments.api import answers
from douban_pipeline.comments.api.admin import admin_router
from douban_pipeline.comments.api.admin_page import admin_page
from douban_pipeline.comments.api.admin_tools import admin_tools_router
from douban_pipeline.comments.api.context import Context, tagged
from douban_pipeline.comments.api.description import describe, name_of
from douban_pipeline.comments.api.problems import IdText, ObjectId, Problem, ProblemRoute
from douban_pipeline.comments.api.requests import Read, SectionInput, Targets
from douban_pipeline.comments.api.view import targets_of, view_router
from douban_pipeline.comments.pages import Target
from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.comments.store import sections
from douban_pipeline.comments.store.comment_lists import Order
from douban_pipeline.comments.types import BIGGEST_ID, SectionType
from douban_pipeline.comments.user_notices import mark_read
from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.guesses import GuessGuard

PUBLIC = ("/comments/", "/demo")
"""Prefixes of paths for which the system authenticates visitors itself."""


def comments_router(services: CommentsServices, guard: GuessGuard | None = None) -> tuple[APIRouter, Context]:
    """Return the router and its context; see `Context`."""
    context = Context(services, guard)
    router = APIRouter()
    for part in (
        view_router(context),
        notices_router(context),
        server_router(context),
        admin_router(context),
        admin_tools_router(context),
    ):
        router.include_router(part, prefix="/comments", generate_unique_id_function=name_of)
    described = list(router.routes)

    @router.get("/comments/openapi.json", include_in_schema=False)
    def description() -> JSONResponse:
        return JSONResponse(describe(described))

    @router.get("/comments/comments.js", include_in_schema=False)
    def script(request: Request) -> Response:
        """Return the custom element that the page below and other sites' pages show comments with."""
        headers = {"ETag": mark, "Cache-Control": "public, max-age=300", "Cross-Origin-Resource-Policy": "cross-origin"}
        if mark in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(program, 200, headers, "text/javascript; charset=utf-8")

    program = _read("comments.js").replace('"comments.css"', json.dumps(_read("comments.css")))
    mark = f'"{hashlib.sha256(program.encode()).hexdigest()[:20]}"'
    list_page = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(_read("comments.html"))

    @router.get("/demo", include_in_schema=False)
    async def demo(
        type: SectionType = SectionType.VIDEO,
        id: Annotated[int, Query(ge=1, le=BIGGEST_ID)] = 1,
        sort: Order = Order.HEAT,
        cursor: Annotated[str | None, Query(max_length=40)] = None,
    ) -> Response:
        """Return a page of comments; without JavaScript it is a list to read."""
        found = await context.read_only(Target(type, id), sort, cursor)
        text = list_page.render(type=int(type), object=id, sort=sort.value, found=found)
        # The site's own service decides where avatars are, so any HTTPS address is allowed.
        pictures = " https:" if services.plugs.has_decorations else ""
        around = " ".join(["'self'", *sorted(context.settings.allowed_origins)])
        headers = _page_headers("'self'", pictures, around)
        if context.settings.allowed_origins:
            headers.pop("X-Frame-Options")  # which cannot name other sites, as frame-ancestors does
        return HTMLResponse(text, headers=headers)

    router.include_router(admin_page(services.settings))

    return router, context


def _read(name: str) -> str:
    return files(__package__).joinpath("pages", name).read_text(encoding="utf-8")


def _page_headers(scripts: str, pictures: str = "", around: str = "'self'") -> dict[str, str]:
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {scripts}; img-src 'self' data:{pictures}; "
        f"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors {around}"
    )
    return {"Content-Security-Policy": policy, "X-Frame-Options": "SAMEORIGIN"}


def notices_router(context: Context) -> APIRouter:
    """Return the router of the paths below ``/v1/notices``."""
    router = APIRouter(prefix="/v1/notices", route_class=ProblemRoute, tags=["notices"])
    engine = context.services.engine

    async def user(request: Request) -> int:
        actor = await context.writer(request)
        if not actor.user_id:
            raise Problem(401, "请先登录", {"WWW-Authenticate": "Bearer"})
        return actor.user_id

    async def in_thread(work: Any) -> Any:
        return await context.dependencies.call("notices", lambda: context.in_thread(work))

    @router.get("", response_model=answers.Notices)
    async def notices(
        request: Request,
        before: IdText | None = None,
        size: Annotated[int, Query(ge=1, le=50)] = 20,
        unread: bool = False,
    ) -> Response:
        """Return notices, newest first: ``reply``, ``mention``, ``like``; ``status``, ``refused`` of own comments."""
        whose = await user(request)
        after = int(before) if before is not None else None

        def work() -> dict[str, Any]:
            with reading(engine) as connection:
                return user_notices.read_notices(connection, whose, after, size, unread=unread)

        found = await in_thread(work)
        await context.overlay.give_titles(each["section"] for each in found["items"] if each["section"] is not None)
        return tagged(request, found)

    @router.get("/count", response_model=answers.Unread)
    async def count(request: Request) -> Response:
        """Return the number of unread notices; 100 means 100 or more."""
        whose = await user(request)

        def work() -> int:
            with reading(engine) as connection:
                return user_notices.count_unread(connection, whose)

        return tagged(request, {"unread": await in_thread(work)})

    @router.post("/read", response_model=answers.Marked)
    async def read(request: Request, body: Read) -> Response:
        """Mark notices as read."""
        whose = await user(request)
        ids, upto = [int(number) for number in body.ids], int(body.upto)

        def mark(connection: Connection) -> int:
            return mark_read(connection, whose, ids, upto)

        return tagged(request, {"marked": await in_thread(lambda: run_transaction(engine, mark))})

    return router


_FIELDS = ("id", "root", "parent", "floor", "author", "at", "pieces", "likes", "replies", "labels")


def server_router(context: Context) -> APIRouter:
    """Return the router of the paths below ``/v1/server``."""
    router = APIRouter(prefix="/v1/server", route_class=ProblemRoute, tags=["server"])

    @router.get("/counts", response_model=answers.Counts)
    async def counts(request: Request, of: Targets) -> Response:
        """Return the number of comments shown for objects."""
        await context.server_key(request)
        targets = targets_of(of)
        found, _ = await context.read("page", lambda site: pages.read_counts(site, targets))
        return tagged(request, {"counts": found})

    @router.get("/comments", response_model=answers.ServedComments)
    async def comments(request: Request, ids: Annotated[str, Query(max_length=2000)]) -> Response:
        """Return comments by id, only those that are shown; 50 at most."""
        await context.server_key(request)
        numbers = [int(part) for part in ids.split(",")[:50] if part.isdecimal() and int(part) <= BIGGEST_ID]
        found, _ = await context.read("page", lambda site: pages.read_comments(site, numbers))
        return tagged(request, {"comments": [{name: item[name] for name in _FIELDS} for item in found]})

    @router.put("/sections/{kind}/{object_id}", response_model=answers.MadeSection)
    async def put_section(request: Request, kind: SectionType, object_id: ObjectId, body: SectionInput) -> Response:
        """Create a section with its owner if there is none; an existing one is not changed."""
        await context.server_key(request)

        def work() -> dict[str, Any]:
            number = run_transaction(
                context.services.engine,
                lambda connection: sections.ensure_section(
                    connection,
                    kind,
                    object_id,
                    context.services.clock.now(),
                    owner_id=body.owner_id,
                    title=body.title,
                ),
            )
            return {"id": str(number)}

        made = await context.dependencies.call("write", lambda: context.in_thread(work))
        return tagged(request, made)

    return router
