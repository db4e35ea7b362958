"""Paths for other servers of the site: few fields, a key per server, a quota of requests per minute."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from douban_pipeline.comments import pages
from douban_pipeline.comments.api.context import Context, tagged
from douban_pipeline.comments.api.numbers import Number, ObjectId
from douban_pipeline.comments.api.problems import ProblemRoute
from douban_pipeline.comments.api.view import targets_of
from douban_pipeline.comments.store import sections
from douban_pipeline.comments.types import BIGGEST_ID, SectionType
from douban_pipeline.core.database import run_transaction

_FIELDS = ("id", "root", "parent", "floor", "author", "at", "pieces", "likes", "replies", "labels")


class SectionInput(BaseModel):
    """Owner and title of a section."""

    model_config = ConfigDict(extra="forbid")
    owner_id: Number = 0
    title: str = Field("", max_length=300)


def server_router(context: Context) -> APIRouter:
    """Return the router of the paths below ``/v1/server``."""
    router = APIRouter(prefix="/v1/server", route_class=ProblemRoute, tags=["server"])

    @router.get("/counts")
    async def counts(request: Request, of: Annotated[str, Query(max_length=2000)]) -> Response:
        """Return the number of comments shown for objects."""
        await context.server_key(request)
        targets = targets_of(of)
        found, _ = await context.read("page", lambda site: pages.read_counts(site, targets))
        return tagged(request, {"counts": found})

    @router.get("/comments")
    async def comments(request: Request, ids: Annotated[str, Query(max_length=2000)]) -> Response:
        """Return comments by id, only those that are shown; 50 at most."""
        await context.server_key(request)
        numbers = [int(part) for part in ids.split(",")[:50] if part.isdecimal() and int(part) <= BIGGEST_ID]
        found, _ = await context.read("page", lambda site: pages.read_comments(site, numbers))
        return tagged(request, {"comments": [{name: item[name] for name in _FIELDS} for item in found]})

    @router.put("/sections/{kind}/{object_id}")
    async def put_section(request: Request, kind: SectionType, object_id: ObjectId, body: SectionInput) -> Response:
        """Create a section with its owner if there is none; an existing one is not changed."""
        await context.server_key(request)

        def work() -> dict[str, Any]:
            number = run_transaction(
                context.services.engine,
                lambda connection: sections.ensure_section(
                    connection,
                    kind,
                    object_id,
                    context.services.clock.now(),
                    owner_id=body.owner_id,
                    title=body.title,
                ),
            )
            return {"id": str(number)}

        made = await context.dependencies.call("write", lambda: context.in_thread(work))
        return tagged(request, made)

    return router
