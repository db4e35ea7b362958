"""HTTP API of the home page and the reports: the files directly under HOME/reports."""

from __future__ import annotations

import html
import re
from pathlib import Path

from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from markupsafe import Markup

from douban_pipeline.core.system import installed_names
from douban_pipeline.core.ui.launchpad_links import job_path
from douban_pipeline.core.ui.templates import page_to_come
from douban_pipeline.douban.links import LOCATION

FRONT_PAGE = "index.html"
_TYPES = {".html": "text/html; charset=utf-8", ".csv": "text/csv; charset=utf-8"}
_POLICY = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]*)"')
_HASH = re.compile(r"'sha256-[A-Za-z0-9+/]+=*'")
_IMAGES = re.compile(r"img-src ([^;]*)")
_SOURCE = re.compile(r"https?:(//[\w.-]+(:\d+)?)?", re.ASCII)
_ROWS, _FOLDER, _PIECE = (
    re.compile(r"[a-z_]+\.rows"),
    re.compile(r"\w[\w-]*", re.ASCII),
    re.compile(r"\w+\.js", re.ASCII),
)
"""Patterns of the files from which pages of lists load their rows, see `core.ui.lists.list_files`."""
_HEAD = 4096
"""Number of bytes at the beginning of a page that are searched for its own policy."""


def reports_router(reports: Path, *, ui_url: str = "") -> APIRouter:
    """Return the router of the home page and the reports.

    The name of a report in a request is only looked up among the files in the folder. Paths of list rows must match
    fixed patterns.

    Args:
        reports: The folder of all reports.
        ui_url: Address of Dagster's UI, for links while the home page is not written yet.
    """
    router = APIRouter()

    def written(name: str) -> Path | None:
        found = {path.name: path for path in reports.glob("*.*") if path.suffix in _TYPES and path.is_file()}
        path = found.get(name)
        return path if path is not None and path.resolve().is_relative_to(reports.resolve()) else None

    @router.get("/")
    def front() -> Response:
        path = written(FRONT_PAGE)
        if path is not None:
            return _page(path)
        names = installed_names()
        if "digest" in names and "douban" not in names:
            return RedirectResponse("digest/", 303)
        return _not_written(reports, ui_url)

    @router.get("/{name}")
    def report(name: str) -> Response:
        path = written(name)
        if path is None:
            raise HTTPException(404)
        return _page(path)

    @router.get("/{rows}/{folder}/{piece}")
    def rows_of_a_list(rows: str, folder: str, piece: str) -> Response:
        path = reports / rows / folder / piece
        if not (_ROWS.fullmatch(rows) and _FOLDER.fullmatch(folder) and _PIECE.fullmatch(piece) and path.is_file()):
            raise HTTPException(404)
        return FileResponse(path, media_type="text/javascript; charset=utf-8")

    return router


def _not_written(reports: Path, ui_url: str) -> Response:
    """Return the page that says what writes the home page, and how to write it now."""
    asset, automation = f"{ui_url}/assets/overview", f"{ui_url}/automation"
    job = f"{ui_url}{job_path('nightly_reports', LOCATION)}"
    steps = [
        Markup('在 Dagster 打开资产 <a href="{}">overview</a>，点 Materialize，几秒钟后重新载入本页。').format(asset),
        Markup('或者启动作业 <a href="{}">nightly_reports</a>：首页和全部报告一起写，它每晚也自动运行。').format(job),
        Markup('要让首页自己更新：<a href="{}">传感器 overview_sensor</a> 要开着，Dagster 的守护进程要在运行。').format(
            automation
        ),
        Markup(
            "仍然没有：在服务器上运行 <code>douban-pipeline check</code>，它会说明缺什么。写页面的和这个服务要用同一个 "
            "<code>DOUBAN_PIPELINE_HOME</code>，这里读的是 <code>{}</code>。"
        ).format(reports),
    ]
    about = "这里将是首页：是否一切正常、需要处理什么，以及每个列表和报告。传感器 overview_sensor 每两分钟写一次。"
    return HTMLResponse(page_to_come("首页尚未生成", about, steps))


def _page(path: Path) -> Response:
    """Return a file as a response that allows the scripts (by hash) and the pictures that its own policy names."""
    answer = FileResponse(path, media_type=_TYPES[path.suffix])
    with path.open("rb") as file:
        policy = _POLICY.search(file.read(_HEAD).decode(errors="replace"))
    own = html.unescape(policy[1]) if policy else ""
    scripts = " ".join(["'self'", *_HASH.findall(own)])
    images = _IMAGES.search(own)
    sources = [source for source in (images[1].split() if images else ()) if _SOURCE.fullmatch(source)]
    pictures = " ".join(["'self'", "data:", *sources])
    answer.headers["Content-Security-Policy"] = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {scripts}; img-src {pictures}; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    return answer
