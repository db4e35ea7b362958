"""The digest's pages over HTTP, made from the tables, and redirects from the addresses in messages."""

from __future__ import annotations

from datetime import date
from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from markupsafe import Markup

from douban_pipeline.core.database import reading
from douban_pipeline.core.ui.templates import page_to_come
from douban_pipeline.digest.page_data import analysis_view, day_entries, day_view
from douban_pipeline.digest.pages.html import (
    SEARCH_SCRIPT,
    render_analysis,
    render_daily,
    render_index,
    search_script,
)
from douban_pipeline.digest.services import DigestServices

INDEX_DAYS = 366
"""Days on the first page of the index; each year also has a page of its own."""
NOT_YET = "页面尚未生成，请稍后刷新"
_ABOUT = "这里将列出每天的日报和其中的分析。时间表 digest_slots 每到一个时段运行一次；第一个时段运行之后就有。"
_STEPS = (
    Markup("在 Dagster 启动作业 <code>run_digest_slot</code>，选好日期和时段，完成后重新载入本页。"),
    Markup("仍然没有：在服务器上运行 <code>douban-pipeline check --system digest</code>，它会说明缺什么。"),
)


def digest_router(services: DigestServices) -> APIRouter:
    """Return the router."""
    router = APIRouter()
    zone = services.settings.zone

    def days(year: int | None) -> Response:
        with reading(services.engine) as connection:
            found = day_entries(services, connection)
        years = sorted({each.report_date.year for each in found}, reverse=True)
        if not found:
            return HTMLResponse(page_to_come("还没有日报", _ABOUT, _STEPS))
        if year is None:
            shown, title = found[:INDEX_DAYS], "日报"
            about = f"最近 {len(shown)} 天，共 {len(found)} 天" if len(found) > len(shown) else f"共 {len(found)} 天"
        else:
            shown, title = [each for each in found if each.report_date.year == year], f"{year} 年的日报"
            about = f"{len(shown)} 天"
        if not shown:
            raise HTTPException(404)
        return HTMLResponse(render_index(shown, title, years, about))

    @router.get("/")
    @router.get("/index.html")
    def index() -> Response:
        return days(None)

    @router.get("/days-{year:int}.html")
    def year_page(year: int) -> Response:
        return days(year)

    @router.get(f"/{SEARCH_SCRIPT}")
    def script() -> Response:
        return Response(search_script(), media_type="text/javascript; charset=utf-8")

    @router.get("/daily/{name}")
    def daily(name: str) -> Response:
        try:
            day = date.fromisoformat(name.removesuffix(".html"))
        except ValueError:
            raise HTTPException(404) from None
        with reading(services.engine) as connection:
            view = day_view(services, connection, day)
        if view is None:
            raise HTTPException(404, NOT_YET)
        return HTMLResponse(render_daily(view, zone))

    @router.get("/analysis/{name}")
    def analysis(name: str) -> Response:
        number = name.removesuffix(".html")
        if not (number.isascii() and number.isdecimal() and len(number) < 19):
            raise HTTPException(404)
        with reading(services.engine) as connection:
            view = analysis_view(services, connection, int(number))
        if view is None:
            raise HTTPException(404, NOT_YET)
        return HTMLResponse(render_analysis(view, zone))

    return router


def messages_router(prefix: str) -> APIRouter:
    """Return the router that redirects the addresses in messages to the pages under ``prefix``."""
    router = APIRouter()

    @router.get("/daily/{name}")
    @router.get("/analysis/{name}")
    def lead(request: Request) -> Response:
        return RedirectResponse(f"{prefix}{quote(request.url.path)}", 307)

    return router
