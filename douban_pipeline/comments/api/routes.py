"""All paths of the comment service in one router: the API below ``/comments``, its pages below ``/demo``."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

from fastapi import APIRouter, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, JSONResponse

from douban_pipeline import __version__
from douban_pipeline.comments.api.admin import admin_router
from douban_pipeline.comments.api.context import Context
from douban_pipeline.comments.api.notices import notices_router
from douban_pipeline.comments.api.servers import server_router
from douban_pipeline.comments.api.view import view_router
from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.core.guesses import GuessGuard

PUBLIC = ("/comments/", "/demo")
"""Prefixes of paths for which the system authenticates visitors itself."""


def comments_router(services: CommentsServices, guard: GuessGuard | None = None) -> tuple[APIRouter, Context]:
    """Return the router and its context; see `Context`."""
    context = Context(services, guard)
    router = APIRouter()
    for part in (view_router(context), notices_router(context), server_router(context), admin_router(context)):
        router.include_router(part, prefix="/comments")
    described = list(router.routes)

    @router.get("/comments/openapi.json", include_in_schema=False)
    def description() -> JSONResponse:
        found = get_openapi(title="Comments", version=__version__, routes=described)
        return JSONResponse(found)

    @router.get("/demo", include_in_schema=False)
    def demo() -> Response:
        # The site's own service decides where avatars are, so any HTTPS address is allowed.
        return _page("comments.html", pictures=" https:" if services.plugs.has_decorations else "")

    @router.get("/demo/admin", include_in_schema=False)
    def admin() -> Response:
        return _page("admin.html")

    return router, context


def _page(name: str, *, pictures: str = "") -> Response:
    text = files(__package__).joinpath("pages", name).read_text(encoding="utf-8")
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL)
    assert script is not None
    mark = base64.b64encode(hashlib.sha256(script.group(1).encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{mark}'; img-src 'self' data:{pictures}; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    )
    return HTMLResponse(text, headers={"Content-Security-Policy": policy, "X-Frame-Options": "SAMEORIGIN"})
