"""All paths of the comment service in one router: the API below ``/comments``, its pages below ``/demo``.

The paths for notices and for other servers of the site are here, those of pages and operators in modules of their own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from importlib.resources import files
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.routing import APIRoute
from jinja2 import Environment
from pydantic import TypeAdapter
from sqlalchemy import Connection
from starlette.routing import BaseRoute

from douban_pipeline import __version__
from douban_pipeline.comments import answers, pages, user_notices
from douban_pipeline.comments.api.admin import admin_router
from douban_pipeline.comments.api.admin_page import admin_page
from douban_pipeline.comments.api.admin_tools import admin_tools_router
from douban_pipeline.comments.api.context import Context
from douban_pipeline.comments.api.problems import IdText, ObjectId, Problem, ProblemRoute
from douban_pipeline.comments.api.requests import Read, SectionInput, Targets
from douban_pipeline.comments.api.sessions import COOKIE
from douban_pipeline.comments.api.view import targets_of, view_router
from douban_pipeline.comments.pages import Target
from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.comments.store import sections
from douban_pipeline.comments.store.comment_lists import Order
from douban_pipeline.comments.types import BIGGEST_ID, SectionType
from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.guesses import GuessGuard

_Result = TypeVar("_Result")
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

    async def user_id(request: Request) -> int:
        actor = await context.writer(request)
        if not actor.user_id:
            raise Problem(401, "请先登录", {"WWW-Authenticate": "Bearer"})
        return actor.user_id

    own = Depends(user_id)

    async def in_thread(work: Callable[[], _Result]) -> _Result:
        return await context.dependencies.call("notices", lambda: context.in_thread(work))

    @router.get("")
    async def notices(
        user: int = own,
        before: IdText | None = None,
        size: Annotated[int, Query(ge=1, le=50)] = 20,
        unread: bool = False,
    ) -> answers.Notices:
        """Return notices, newest first: ``reply``, ``mention``, ``like``; ``status``, ``refused`` of own comments."""
        after = int(before) if before is not None else None

        def work() -> answers.Notices:
            with reading(engine) as connection:
                return user_notices.read_notices(connection, user, after, size, unread=unread)

        found = await in_thread(work)
        await context.overlay.give_titles(each["section"] for each in found["items"] if each["section"] is not None)
        return found

    @router.get("/count")
    async def count(user: int = own) -> answers.Unread:
        """Return the number of unread notices."""

        def work() -> int:
            with reading(engine) as connection:
                return user_notices.count_unread(connection, user)

        return {"unread": await in_thread(work)}

    @router.post("/read")
    async def read(body: Read, user: int = own) -> answers.Marked:
        """Mark notices as read."""
        ids, upto = [int(number) for number in body.ids], int(body.upto)

        def mark(connection: Connection) -> int:
            return user_notices.mark_read(connection, user, ids, upto)

        return {"marked": await in_thread(lambda: run_transaction(engine, mark))}

    return router


def server_router(context: Context) -> APIRouter:
    """Return the router of the paths below ``/v1/server``."""
    router = APIRouter(
        prefix="/v1/server", route_class=ProblemRoute, tags=["server"], dependencies=[Depends(context.server_key)]
    )

    @router.get("/counts")
    async def counts(of: Targets) -> answers.Counts:
        """Return the number of comments shown for objects."""
        targets = targets_of(of)
        found, _ = await context.read("page", lambda site: pages.read_counts(site, targets))
        return {"counts": found}

    @router.get("/comments")
    async def comments(ids: Annotated[str, Query(max_length=2000)]) -> answers.ServedComments:
        """Return comments by id, only those that are shown; 50 at most."""
        numbers = [int(part) for part in ids.split(",")[:50] if part.isdecimal() and int(part) <= BIGGEST_ID]
        found, _ = await context.read("page", lambda site: pages.read_comments(site, numbers))
        return {"comments": [*found]}  # what servers do not get is left out as it is sent

    @router.put("/sections/{kind}/{object_id}")
    async def put_section(kind: SectionType, object_id: ObjectId, body: SectionInput) -> answers.MadeSection:
        """Create a section with its owner if there is none; an existing one is not changed."""
        now = context.services.clock.now()

        def make(connection: Connection) -> int:
            return sections.ensure_section(connection, kind, object_id, now, owner_id=body.owner_id, title=body.title)

        work = partial(run_transaction, context.services.engine, make)
        return {"id": str(await context.dependencies.call("write", lambda: context.in_thread(work)))}

    return router


_SCHEMES: dict[str, dict[str, str]] = {
    "visitor": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A token of the site (HS256, TOKEN_SECRET): sub is the user's id, name and level are optional.",
    },
    "cms": {
        "type": "apiKey",
        "in": "cookie",
        "name": "user_check",
        "description": "The CMS's own login, with its cookies user_id and user_name; where CMS_LOGIN allows it.",
    },
    "server": {"type": "http", "scheme": "bearer", "description": "The key of a server of the site (API_KEYS)."},
    "operator": {"type": "http", "scheme": "bearer", "description": "ADMIN_TOKEN, or AUDIT_TOKEN."},
    "session": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "What POST /admin/session sets."},
}
_VISITOR: list[dict[str, list[str]]] = [{"visitor": []}, {"cms": []}]
_SECURITY: dict[str, list[dict[str, list[str]]]] = {
    "view": [*_VISITOR, {}],  # visitors may read, and guests write where the site lets them
    "notices": _VISITOR,
    "server": [{"server": []}],
    "admin": [{"operator": []}, {"session": []}],
}
_PROBLEM = {"$ref": "#/components/schemas/ProblemAnswer"}
_PROBLEMS = {
    "4XX": "The request is refused; `detail` says why, and what to do. `429` comes with `Retry-After`.",
    "503": "What it takes does not answer in time; try again after `Retry-After` seconds.",
}


def name_of(route: APIRoute) -> str:
    """Return what methods of clients that are made of the description are called, such as `view_page`."""
    return f"{route.tags[0]}_{route.name}"


def describe(routes: Sequence[BaseRoute]) -> dict[str, Any]:
    """Return the description of routes: each with its answers, its problems, and who may call it, by its tag."""
    found = get_openapi(title="Comments", version=__version__, routes=routes)
    components = found.setdefault("components", {})
    components["securitySchemes"] = _SCHEMES
    schemas = components.setdefault("schemas", {})
    schemas["ProblemAnswer"] = TypeAdapter(answers.ProblemAnswer).json_schema()
    for unused in ("HTTPValidationError", "ValidationError"):  # FastAPI's own, which `ProblemRoute` replaces
        schemas.pop(unused, None)
    for operation in (each for path in found["paths"].values() for each in path.values()):
        operation["security"] = next(_SECURITY[tag] for tag in operation["tags"] if tag in _SECURITY)
        operation["responses"].pop("422", None)
        for status, words in _PROBLEMS.items():
            content = {"application/problem+json": {"schema": _PROBLEM}}
            operation["responses"][status] = {"description": words, "content": content}
    return found
