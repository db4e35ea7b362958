"""The digest's pages over HTTP: the files of HOME/reports/digest, and redirects from the addresses in messages."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from markupsafe import Markup

from douban_pipeline.core.ui.templates import page_to_come
from douban_pipeline.digest.pages.files import FOLDER, analysis_page, daily_page
from douban_pipeline.digest.pages.html import SEARCH_SCRIPT

NOT_YET = "页面尚未生成，请稍后刷新"
_ABOUT = "这里将列出每天的日报和其中的分析。时间表 digest_slots 每到一个时段运行一次；第一个时段运行之后就有。"
_STEPS = (
    Markup("在 Dagster 启动作业 <code>run_digest_slot</code>，选好日期和时段，完成后重新载入本页。"),
    Markup("仍然没有：在服务器上运行 <code>douban-pipeline check --system digest</code>，它会说明缺什么。"),
)


def digest_router(reports: Path) -> APIRouter:
    """Return the router.

    File names are never taken from a request: a day, number or year is parsed, and the name is built from it.

    Args:
        reports: The folder of all reports.
    """
    router = APIRouter()
    root = reports / FOLDER

    def page(name: str) -> Response:
        path = root / name
        if not path.is_file() or not path.resolve().is_relative_to(root.resolve()):
            raise HTTPException(404, NOT_YET)
        return FileResponse(path)

    @router.get("/")
    @router.get("/index.html")
    def index() -> Response:
        if not (root / "index.html").is_file():
            return HTMLResponse(page_to_come("还没有日报", _ABOUT, _STEPS))
        return page("index.html")

    @router.get(f"/{SEARCH_SCRIPT}")
    def script() -> Response:
        return page(SEARCH_SCRIPT)

    @router.get("/days-{year:int}.html")
    def year_page(year: int) -> Response:
        return page(f"days-{year}.html")

    @router.get("/daily/{day}")
    def daily(day: str) -> Response:
        try:
            return page(f"{daily_page(date.fromisoformat(day.removesuffix('.html')))}.html")
        except ValueError:
            raise HTTPException(404) from None

    @router.get("/analysis/{number}")
    def analysis(number: str) -> Response:
        number = number.removesuffix(".html")
        if not (number.isascii() and number.isdecimal() and len(number) < 19):
            raise HTTPException(404)
        return page(f"{analysis_page(int(number))}.html")

    return router


def messages_router(prefix: str) -> APIRouter:
    """Return the router that redirects the addresses in messages to the pages under ``prefix``."""
    router = APIRouter()

    @router.get("/daily/{name}")
    @router.get("/analysis/{name}")
    def lead(request: Request) -> Response:
        return RedirectResponse(f"{prefix}{quote(request.url.path)}", 307)

    return router
