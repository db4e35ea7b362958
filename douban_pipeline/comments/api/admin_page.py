"""The moderators' page: its document, style and scripts; what it shows, the paths below ``/v1/admin`` tell it."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from douban_pipeline.comments.api.admin_texts import CONDITIONS, KEYS, TEXTS
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.store.comment_search import REASONS
from douban_pipeline.comments.types import SectionType
from douban_pipeline.core.language import Language, translated
from douban_pipeline.core.ui.templates import render, script_json

_SCRIPTS = ("admin.js", "admin-queue.js", "admin-tools.js")
_REPORTED = ("spam", "abuse", "spoiler", "illegal", "other", "imported")
_DELETED_FOR = ("spam", "abuse", "illegal", "spoiler", "flood", "other")
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def admin_page(settings: CommentsSettings) -> APIRouter:
    """Return the router of the page and its scripts."""
    router = APIRouter()
    scripts = {name: _read(name) for name in _SCRIPTS}
    marks = {name: f'"{hashlib.sha256(text.encode()).hexdigest()[:20]}"' for name, text in scripts.items()}
    site = settings.site_url.rstrip("/") + settings.site_page if settings.site_url and settings.site_page else ""
    pages: dict[Language, str] = {wanted: _rendered(wanted, site) for wanted in ("zh", "en")}

    @router.get("/comments/admin", include_in_schema=False)
    def page(request: Request, lang: Literal["zh", "en"] | None = None) -> Response:
        found = lang or _first_language(request.headers.get("accept-language", ""))
        return HTMLResponse(pages[found], headers={"Content-Security-Policy": _POLICY, "Vary": "Accept-Language"})

    def script(name: str) -> None:
        @router.get(f"/comments/{name}", include_in_schema=False)
        def read(request: Request) -> Response:
            headers = {"ETag": marks[name], "Cache-Control": "private, no-cache"}
            if marks[name] in request.headers.get("if-none-match", ""):
                return Response(status_code=304, headers=headers)
            return Response(scripts[name], 200, headers, "text/javascript; charset=utf-8")

    for name in _SCRIPTS:
        script(name)
    return router


def _rendered(wanted: Language, site: str) -> str:
    texts = {name: translated(text, wanted) for name, text in TEXTS.items()}
    return render(
        __package__,
        "pages/admin.html.j2",
        lang="zh-Hans" if wanted == "zh" else "en",
        other="en" if wanted == "zh" else "zh",
        other_name="English" if wanted == "zh" else "中文",
        t=texts,
        texts=script_json({**texts, "lang": "zh-CN" if wanted == "zh" else "en"}),
        style=Markup(_read("admin.css")),  # noqa: S704 - our own file
        page=site,
        kinds=[(int(kind), texts[f"kind_{int(kind)}"]) for kind in SectionType],
        reasons=(*REASONS, "model", "cms", *_REPORTED),
        delete_reasons=_DELETED_FOR,
        conditions=CONDITIONS,
        keys=KEYS,
    )


def _first_language(accepted: str) -> Language:
    """Return the first of our languages that a browser accepts, Chinese if none."""
    for each in accepted.split(","):
        name = each.split(";")[0].strip().lower()
        if name.startswith("en"):
            return "en"
        if name.startswith("zh"):
            return "zh"
    return "zh"


def _read(name: str) -> str:
    return files(__package__).joinpath("pages", name).read_text(encoding="utf-8")
