"""Paths for a user's notices: the list, the number of unread ones, marking as read."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from douban_pipeline.comments import noticing
from douban_pipeline.comments.api.context import Context, tagged
from douban_pipeline.comments.api.numbers import IdText
from douban_pipeline.comments.api.problems import Problem, ProblemRoute
from douban_pipeline.comments.store.notices import mark_read
from douban_pipeline.core.database import reading, run_transaction


class Read(BaseModel):
    """Notices to mark as read: some by id, or all up to an id."""

    model_config = ConfigDict(extra="forbid")
    ids: list[IdText] = Field(default_factory=list, max_length=200)
    upto: IdText = "0"


def notices_router(context: Context) -> APIRouter:
    """Return the router of the paths below ``/v1/notices``."""
    router = APIRouter(prefix="/v1/notices", route_class=ProblemRoute, tags=["notices"])
    engine = context.services.engine

    async def user(request: Request) -> int:
        actor = await context.writer(request)
        if not actor.user_id:
            raise Problem(401, "请先登录", {"WWW-Authenticate": "Bearer"})
        return actor.user_id

    async def in_thread(work: Any) -> Any:
        return await context.dependencies.call("notices", lambda: context.in_thread(work))

    @router.get("")
    async def notices(
        request: Request,
        before: IdText | None = None,
        size: Annotated[int, Query(ge=1, le=50)] = 20,
        unread: bool = False,
    ) -> Response:
        """Return notices, newest first: ``reply``, ``mention``, ``like``; ``status``, ``refused`` of own comments."""
        whose = await user(request)
        after = int(before) if before is not None else None

        def work() -> dict[str, Any]:
            with reading(engine) as connection:
                return noticing.read_notices(connection, whose, after, size, unread=unread)

        return tagged(request, await in_thread(work))

    @router.get("/count")
    async def count(request: Request) -> Response:
        """Return the number of unread notices; 100 means 100 or more."""
        whose = await user(request)

        def work() -> int:
            with reading(engine) as connection:
                return noticing.count_unread(connection, whose)

        return tagged(request, {"unread": await in_thread(work)})

    @router.post("/read")
    async def read(request: Request, body: Read) -> Response:
        """Mark notices as read."""
        whose = await user(request)
        ids, upto = [int(number) for number in body.ids], int(body.upto)

        def mark(connection: Connection) -> int:
            return mark_read(connection, whose, ids, upto)

        return tagged(request, {"marked": await in_thread(lambda: run_transaction(engine, mark))})

    return router
