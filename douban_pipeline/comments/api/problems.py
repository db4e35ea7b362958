"""Errors as ``application/problem+json`` (RFC 9457), with details that users can act on; and ids in requests."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any

from fastapi import Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field
from starlette.exceptions import HTTPException

from douban_pipeline.comments.answers import ProblemAnswer
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
    429: "过于频繁",
    503: "暂时不可用",
}


class Problem(Exception):  # noqa: N818 (a response, not an internal error)
    """An error response."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})


def problem_response(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return the response for an error."""
    title = _TITLES.get(status, "错误")
    body: ProblemAnswer = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return JSONResponse(body, status, dict(headers or {}), "application/problem+json")


class ProblemRoute(APIRoute):
    """A route whose errors are returned as problems."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, with exceptions converted to responses."""
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            try:
                response = await handle(request)
            except Problem as problem:
                return problem_response(problem.status, problem.detail, problem.headers)
            except HTTPException as error:  # FastAPI's own, of a body that is no UTF-8
                return problem_response(error.status_code, "请求正文无法读取", error.headers)
            except RequestValidationError as error:
                first = error.errors()[0]
                where = ".".join(str(part) for part in first["loc"][1:])
                return problem_response(400, f"{where}: {first['msg']}" if where else str(first["msg"]))
            except NoSuchPageError:
                return problem_response(404, "评论或评论区不存在")
            except UnavailableError:
                return problem_response(503, "服务繁忙，请稍后再试", {"Retry-After": "2"})
            response.headers.setdefault("Cache-Control", "no-store")
            return response

        return handler


def _fitting(given: str) -> str:
    if int(given) > BIGGEST_ID:
        raise ValueError(f"{given} is greater than {BIGGEST_ID}")
    return given


ID_PATTERN = r"(?:[0-8]\d{18}|\d{1,18})"
"""Ids as the description of the API has them: a pattern for `BIGGEST_ID` to the digit would be four lines long."""
Number = Annotated[int, Field(ge=0, le=BIGGEST_ID)]
"""An id in a query."""


def _written_out(given: object) -> object:
    if isinstance(given, str) and re.fullmatch(r"[\d.+-]*", given):
        raise ValueError("a number is no time of day: write 2026-11-01T12:00:00+08:00")
    return given


def not_a_switch(given: object) -> object:
    """Refuse true and false, which pydantic takes for 1 and 0."""
    if isinstance(given, bool):
        raise ValueError("true and false are no numbers")
    return given


Moment = Annotated[AwareDatetime, BeforeValidator(_written_out)]
"""A time with its zone; pydantic takes numbers, too."""
OwnerId = Annotated[int, Field(ge=0, le=2**53 - 1), BeforeValidator(not_a_switch)]
"""A user in a body, as a number that JSON holds to the digit."""
CommentId = Annotated[int, Path(ge=0, le=BIGGEST_ID)]
ObjectId = Annotated[int, Path(ge=1, le=BIGGEST_ID)]
IdText = Annotated[
    str,
    Field(pattern=r"^\d{1,19}$", json_schema_extra={"pattern": f"^{ID_PATTERN}$"}),
    AfterValidator(_fitting),
]
"""An id as text, because JavaScript cannot hold all of them as numbers."""
