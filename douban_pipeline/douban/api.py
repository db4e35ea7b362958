"""HTTP API of the front page, the lists, and the reports that are files directly under HOME/reports."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Lock

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.douban.reports.lists.catalogue import LISTS, list_page
from douban_pipeline.douban.reports.lists.overview import front_page
from douban_pipeline.douban.reports.lists.spec import csv_file
from douban_pipeline.douban.reports.lists.system_states import SystemState, system_states
from douban_pipeline.douban.services import Services

STATES_SECONDS = 60.0
"""How long the states of the other systems are kept: to look at them connects to each."""
_TYPES = {".html": "text/html; charset=utf-8", ".csv": "text/csv; charset=utf-8"}


class _States:
    """The states of the other systems, looked at anew once they are old."""

    def __init__(self, services: Services) -> None:
        self._names = services.settings.systems
        self._lock = Lock()
        self._found: list[SystemState] = []
        self._until = 0.0

    def current(self) -> list[SystemState]:
        with self._lock:
            if time.monotonic() >= self._until:
                self._found = system_states(self._names)
                self._until = time.monotonic() + STATES_SECONDS
            return self._found


def pages_router(services: Services) -> APIRouter:
    """Return the router of the front page and the lists, which are read from the database when they are opened."""
    router, states = APIRouter(), _States(services)

    @router.get("/")
    def front() -> Response:
        try:
            return _page(*front_page(services.ready(), states.current()))
        except (DatabaseError, SQLAlchemyError) as error:
            names = services.settings.systems
            if "digest" in names and "douban" not in names:
                return RedirectResponse("digest/", 303)
            raise _unreadable(error) from error

    @router.get("/lists/{name}")
    def listed(name: str, request: Request) -> Response:
        if name.removesuffix(".csv") not in LISTS:
            raise HTTPException(404)
        if name.endswith(".csv"):
            return _file(services.reports.path, csv_file(name.removesuffix(".csv")))
        try:
            return _page(*list_page(services.ready(), name, request.query_params))
        except (DatabaseError, SQLAlchemyError) as error:
            raise _unreadable(error) from error

    return router


def files_router(reports: Path) -> APIRouter:
    """Return the router of the files of reports; a name in a request is only looked up among those in the folder."""
    router = APIRouter()

    @router.get("/{name}")
    def report(name: str) -> Response:
        return _file(reports, name)

    return router


def _file(reports: Path, name: str) -> Response:
    found = {path.name: path for path in reports.glob("*.*") if path.suffix in _TYPES and path.is_file()}
    path = found.get(name)
    if path is None or not path.resolve().is_relative_to(reports.resolve()):
        raise HTTPException(404)
    return FileResponse(path, media_type=_TYPES[path.suffix])


def _page(page: str, policy: str) -> Response:
    return HTMLResponse(page, headers={"Content-Security-Policy": f"{policy}; frame-ancestors 'none'"})


def _unreadable(error: Exception) -> HTTPException:
    return HTTPException(
        503, f"数据库此刻无法读取（{type(error).__name__}）：在服务器上运行 douban-pipeline check，它会说明缺什么"
    )
