"""The description of the API (OpenAPI): what the routes declare, and what holds for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from douban_pipeline import __version__
from douban_pipeline.comments.api.answers import ProblemAnswer
from douban_pipeline.comments.api.sessions import COOKIE

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
    schemas["ProblemAnswer"] = ProblemAnswer.model_json_schema()
    for unused in ("HTTPValidationError", "ValidationError"):  # FastAPI's own, which `ProblemRoute` replaces
        schemas.pop(unused, None)
    for path in found["paths"].values():
        for method, operation in path.items():
            _complete(method, operation)
    return found


def _complete(method: str, operation: dict[str, Any]) -> None:
    operation["security"] = next(_SECURITY[tag] for tag in operation["tags"] if tag in _SECURITY)
    answers = operation["responses"]
    answers.pop("422", None)
    for status, words in _PROBLEMS.items():
        answers[status] = {"description": words, "content": {"application/problem+json": {"schema": _PROBLEM}}}
    if method == "get" and "application/json" in answers["200"].get("content", {}):
        answers["304"] = {"description": "Not changed since the `ETag` that `If-None-Match` names."}
