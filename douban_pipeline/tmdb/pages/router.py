"""The pages over HTTP: ``/tmdb/``. The service logs people in; nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse

from douban_pipeline.tmdb.pages.cards import PICTURES
from douban_pipeline.tmdb.pages.pages import FILES, TmdbPages, UnavailableError, file
from douban_pipeline.tmdb.types import BIGGEST_ID, EntityKey, EntityType

# Pictures are TMDB's own; nothing else of another host is loaded, and no script but ours and the drawing's runs.
_POLICY = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; "
    f"img-src 'self' data: {PICTURES}; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}
_Words = Annotated[str, Query(max_length=100)]


def pages_router(pages: TmdbPages) -> APIRouter:
    """Return the router of the pages."""
    router = APIRouter()

    def key_of(entity: EntityType, tmdb_id: int) -> EntityKey:
        if not 0 < tmdb_id <= BIGGEST_ID:
            raise HTTPException(404)
        return EntityKey(entity, tmdb_id)

    @router.get("/tmdb")
    def without_slash(request: Request) -> Response:
        return RedirectResponse(f"{request.scope['path']}/", 307)

    @router.get("/tmdb/")
    def home(q: _Words = "") -> Response:
        return _shown(lambda: pages.home(q.strip()))

    @router.get("/tmdb/way")
    def way(one: _Words = "", other: _Words = "") -> Response:
        return _shown(lambda: pages.way(one.strip(), other.strip()))

    @router.get("/tmdb/search.json")
    def suggestions(q: _Words = "") -> Response:
        try:
            return JSONResponse(pages.suggestions(q.strip()) if q.strip() else [])
        except UnavailableError:
            return JSONResponse({"error": "unavailable"}, 503)

    @router.get("/tmdb/graph/{entity}/{tmdb_id}.json")
    def graph(entity: EntityType, tmdb_id: int) -> Response:
        try:
            found = pages.graph(key_of(entity, tmdb_id))
        except UnavailableError:
            return JSONResponse({"error": "unavailable"}, 503)
        if found is None:
            raise HTTPException(404)
        return JSONResponse(found)

    @router.get("/tmdb/files/{name}")
    def loaded(name: str) -> Response:
        if name not in FILES:
            raise HTTPException(404)
        return Response(file(name), media_type=FILES[name], headers={"Cache-Control": "private, max-age=3600"})

    @router.get("/tmdb/{entity}/{tmdb_id}")
    def card(entity: EntityType, tmdb_id: int) -> Response:
        key = key_of(entity, tmdb_id)
        return _shown(lambda: pages.card(key))

    return router


def _shown(page: Callable[[], str | None]) -> Response:
    try:
        found = page()
    except UnavailableError:
        return HTMLResponse(
            "<!DOCTYPE html><html lang=zh-CN><title>TMDB</title><p>TMDB 的数据库暂时没有应答，请稍后刷新。</p>", 503
        )
    if found is None:
        raise HTTPException(404)
    return HTMLResponse(found, headers=_POLICY)
