"""The digest's pages over HTTP: the files of HOME/reports/digest, and redirects from the addresses in messages."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import FileResponse, PlainTextResponse, RedirectResponse

from douban_pipeline.digest.pages.files import FOLDER, analysis_page, daily_page
from douban_pipeline.digest.pages.html import SEARCH_SCRIPT

NOT_YET = "页面尚未生成，请稍后刷新"


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
            return PlainTextResponse(NOT_YET, 404)
        return FileResponse(path)

    @router.get("/")
    @router.get("/index.html")
    def index() -> Response:
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
