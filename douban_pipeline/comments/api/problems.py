"""Errors as ``application/problem+json`` (RFC 9457), with details that users can act on; and ids in requests."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any

from fastapi import Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import AfterValidator, Field

from douban_pipeline.comments.dependencies import UnavailableError
from douban_pipeline.comments.pages import NoSuchPageError
from douban_pipeline.comments.types import BIGGEST_ID

_LOG = logging.getLogger(__name__)
_TITLES = {
    400: "请求有误",
    401: "需要登录",
    403: "没有权限",
    404: "不存在",
    409: "无法执行",
    413: "内容过长",
    429: "过于频繁",
    503: "暂时不可用",
}


class Problem(Exception):  # noqa: N818 (a response, not an internal error)
    """An error response.

    Attributes:
        status: HTTP status.
        detail: What the user can do about it.
        headers: Additional headers of the response.
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})


def problem_response(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return the response for an error."""
    body = {"type": "about:blank", "title": _TITLES.get(status, "错误"), "status": status, "detail": detail}
    return JSONResponse(body, status, dict(headers or {}), "application/problem+json")


class ProblemRoute(APIRoute):
    """A route whose errors are returned as problems."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, with exceptions converted to responses."""
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            try:
                return await handle(request)
            except Problem as problem:
                return problem_response(problem.status, problem.detail, problem.headers)
            except RequestValidationError as error:
                first = error.errors()[0]
                where = ".".join(str(part) for part in first["loc"][1:])
                return problem_response(400, f"{where}: {first['msg']}" if where else str(first["msg"]))
            except NoSuchPageError:
                return problem_response(404, "评论或评论区不存在")
            except UnavailableError:
                return problem_response(503, "服务繁忙，请稍后再试", {"Retry-After": "2"})

        return handler


def _fitting(given: str) -> str:
    if int(given) > BIGGEST_ID:
        raise ValueError(f"{given} is greater than {BIGGEST_ID}")
    return given


Number = Annotated[int, Field(ge=0, le=BIGGEST_ID)]
"""An id in a query."""
CommentId = Annotated[int, Path(ge=0, le=BIGGEST_ID)]
ObjectId = Annotated[int, Path(ge=1, le=BIGGEST_ID)]
IdText = Annotated[str, Field(pattern=r"^\d{1,19}$"), AfterValidator(_fitting)]
"""An id as text, because JavaScript cannot hold all of them as numbers."""
