"""Paths for operators and auditors: review queue, search, moderation, undo, and explanation of ranks."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool
from sqlalchemy import Connection

from douban_pipeline.comments import explanations
from douban_pipeline.comments.api import admin_models
from douban_pipeline.comments.api.context import Context, accepted, tagged
from douban_pipeline.comments.api.problems import CommentId, IdText, Moment, Number, Problem, ProblemRoute, not_a_switch
from douban_pipeline.comments.event_handlers.priority import RANK_NAMES, status_refusal
from douban_pipeline.comments.event_handlers.status_steps import ERASED
from douban_pipeline.comments.heat.explanation import PART_NAMES
from douban_pipeline.comments.store import comment_search, events
from douban_pipeline.comments.store.comment_lists import CommentView, get_comments
from douban_pipeline.comments.store.comment_search import SearchRequest
from douban_pipeline.comments.store.events import EventInput
from douban_pipeline.comments.trust import ADDRESS, subject_of
from douban_pipeline.comments.types import (
    Actor,
    Attribute,
    CommentStatus,
    EventKind,
    Rank,
    SectionStatus,
    SectionType,
)
from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.errors import ProblemsError

_PAGE = 50


class StatusRequest(BaseModel):
    """Request to set the status of comments; by default a dry run that only reports what would change."""

    model_config = ConfigDict(extra="forbid")
    ids: list[IdText] = Field(min_length=1, max_length=500)
    status: Annotated[CommentStatus, BeforeValidator(not_a_switch)]
    reason: str = Field(min_length=2, max_length=300)
    dry_run: StrictBool = True


class Undo(BaseModel):
    """Request to undo the last decision on comments, or on the comments of a batch."""

    model_config = ConfigDict(extra="forbid")
    ids: list[IdText] = Field(default_factory=list, max_length=500)
    batch: str = Field("", max_length=64)
    reason: str = Field("", max_length=300)


def admin_router(context: Context) -> APIRouter:
    """Return the router of the paths below ``/v1/admin``."""
    router = APIRouter(prefix="/v1/admin", route_class=ProblemRoute, tags=["admin"])
    engine = context.services.engine

    async def in_database(work: Any) -> Any:
        def read() -> Any:
            with reading(engine) as connection:
                return work(connection)

        # The primary database, so that decisions made a moment ago are visible.
        call = partial(context.in_thread, read)
        return await context.dependencies.call("page", call, expected=(Problem,))

    async def why(found: dict[str, Any]) -> dict[str, Any]:
        """Return a comment's place in the served order by heat and sentences that explain it, if that is possible."""
        if found["root"] is not None:
            return {"place_by_heat": None, "why": ["回复按楼层排列，不参加热度排序。"], "degraded": []}
        degraded: list[str] = []
        weights, lists = context.services.settings.heat_weights, context.services.lists

        def read() -> tuple[int | None, list[str]]:
            section_id, comment_id = int(found["section"]), int(found["id"])
            with reading(engine) as connection:
                return explanations.explain_comment(connection, lists, section_id, comment_id, weights)

        call = partial(context.in_thread, read)
        said = await context.dependencies.try_call("explanation", call, degraded)
        place, why = said or (None, [])
        if not why and not degraded:
            shown = found["status"] == CommentStatus.NORMAL.name
            why = ["列表刚刚变动，请稍后再看。" if shown else "未显示的评论不在热度列表中。"]
        return {"place_by_heat": place, "why": why, "degraded": degraded}

    @router.get("/search", response_model=admin_models.FoundPage)
    async def search(
        request: Request,
        text: Annotated[str, Query(max_length=100)] = "",
        user: Number = 0,
        section: Number = 0,
        status: CommentStatus | None = None,
        before: Number = 0,
        kind: Annotated[SectionType | None, Query(alias="type")] = None,
        object_id: Annotated[Number, Query(alias="object")] = 0,
        since: Moment | None = None,
        until: Moment | None = None,
        reports: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
        address: Annotated[str, Query(max_length=48)] = "",
        reason: Annotated[str, Query(max_length=32)] = "",
    ) -> Response:
        """Return comments of any status that meet all criteria, newest first; with status 1, those waiting for review.

        An item about which something waits to be applied, such as a decision of a moment ago, is ``pending``.
        """
        await context.operator(request)
        try:
            network = subject_of(ADDRESS, address) if address.strip() else ""
        except ProblemsError as error:
            raise Problem(400, str(error)) from None
        asked = SearchRequest(
            text.strip(),
            user,
            section,
            status,
            before,
            kind or 0,
            object_id,
            since,
            until,
            reports=reports,
            address=network,
            reason=reason,
        )

        def find(connection: Connection) -> tuple[comment_search.SearchPage, set[int], comment_search.RowFacts]:
            page = comment_search.search_comments(connection, asked, _PAGE)
            pending = events.pending_about(connection, [view.comment_id for view in page.comments])
            return page, pending, comment_search.row_facts(connection, page.comments)

        found, pending, facts = await in_database(find)
        degraded: list[str] = []
        videos = {row["object_id"] for row in facts.sections.values() if row["type"] == SectionType.VIDEO}
        films = await context.overlay.film_names(videos, degraded)
        body = {
            "items": [
                {**_item(view), **_facts(view, facts, films), "pending": view.comment_id in pending}
                for view in found.comments
            ],
            "next": str(found.before) if found.before is not None else None,
            "degraded": degraded,
        }
        return tagged(request, body)

    @router.get("/comments/{comment_id}", response_model=admin_models.ExplainedComment)
    async def comment(request: Request, comment_id: CommentId) -> Response:
        """Return a comment, the decisions on it, and the explanation of its rank by heat."""
        await context.operator(request)
        found = await in_database(lambda connection: _explained(connection, comment_id))
        if found is None:
            raise Problem(404, "评论不存在")
        return tagged(request, {**found, **await why(found)})

    @router.post("/moderate", response_model=admin_models.Moderated, responses={202: {"model": admin_models.Moderated}})
    async def moderate(request: Request, body: StatusRequest) -> Response:
        """Set the status of comments; a dry run returns which may not be changed, and why."""
        actor = await context.operator(request)
        ids = [int(number) for number in body.ids]
        views = await in_database(lambda connection: get_comments(connection, ids))
        outcome = {str(number): _refusal(views.get(number), body.status, actor) for number in ids}
        if body.dry_run:
            return tagged(request, {"dry_run": True, "refused": {k: v for k, v in outcome.items() if v}})
        batch = secrets.token_hex(8)
        given = [
            EventInput(
                views[number].section_id,
                EventKind.SET_STATUS,
                actor,
                secrets.token_hex(20),
                number,
                {"status": body.status, "reason": body.reason, "batch": batch},
            )
            for number in ids
            if outcome[str(number)] is None
        ]
        await _write(context, given)
        return accepted({"batch": batch, "refused": {k: v for k, v in outcome.items() if v}})

    @router.post("/undo", status_code=202, response_model=admin_models.Undone)
    async def undo(request: Request, body: Undo) -> Response:
        """Undo the last decision on comments, or on all comments of a batch."""
        actor = await context.operator(request)

        def find(connection: Connection) -> dict[int, int]:
            ids = [int(number) for number in body.ids]
            ids += comment_search.batch_comments(connection, body.batch) if body.batch else []
            return comment_search.sections_of(connection, ids)

        found = await in_database(find)
        given = [
            EventInput(section, EventKind.UNDO_STATUS, actor, secrets.token_hex(20), number, {"reason": body.reason})
            for number, section in sorted(found.items())
        ]
        await _write(context, given)
        return accepted({"undone": [str(number) for number in sorted(found)]})

    @router.get("/state", response_model=admin_models.ServiceState)
    async def state(request: Request) -> Response:
        """Return the state of the service: dependencies, read sites, hot sections, how long events wait."""
        await context.operator(request)
        oldest = await in_database(events.oldest_pending)
        waits = (context.services.clock.now() - oldest).total_seconds() if oldest is not None else 0
        body = {
            "dependencies": context.dependencies.states(),
            "sites": context.sites.states(),
            "hot": [[str(key), count] for key, count in context.hot.hottest(10)],
            "waiting_seconds": waits,
            "loads": context.loads,
            "redis": None if context.services.lists is None else not context.services.lists.away,
        }
        return tagged(request, body)

    return router


async def _write(context: Context, given: list[EventInput]) -> None:
    if not given:
        return
    now = context.services.clock.now()

    def work() -> None:
        run_transaction(context.services.engine, lambda connection: events.append(connection, given, now))
        context.services.wake_workers()

    await context.dependencies.call("write", partial(context.in_thread, work))


def _refusal(view: CommentView | None, status: CommentStatus, actor: Actor) -> str | None:
    if view is None:
        return "评论不存在"
    return status_refusal(view.status, Rank(view.status_rank), status, actor.rank, own=False)


def _explained(connection: Connection, comment_id: int) -> dict[str, Any] | None:
    view = get_comments(connection, [comment_id]).get(comment_id)
    if view is None:
        return None
    decided = [
        {
            "action": row["action"],
            "from": CommentStatus(row["old_status"]).name,
            "to": CommentStatus(row["new_status"]).name,
            "rank": RANK_NAMES[Rank(row["new_rank"])],
            "actor": row["actor"],
            "reason": row["reason"],
            "undone": row["undone"],
            "at": row["created_at"].isoformat(),
        }
        for row in comment_search.select_moderation(connection, comment_id)
    ]
    edits = [
        {"content": row["content"], "at": row["created_at"].isoformat()}
        for row in comment_search.earlier_texts(connection, comment_id)
    ]
    heat = comment_search.stored_heat(connection, comment_id)
    if heat is not None:
        heat["parts"] = {PART_NAMES.get(part, part): value for part, value in heat["parts"].items()}
    return {**_item(view), "decided": decided, "edits": edits, "heat": heat}


def _facts(view: CommentView, facts: comment_search.RowFacts, films: Mapping[int, tuple[str, bool]]) -> dict[str, Any]:
    """Return what a row says besides the comment: its film or other object, its section's state, the address."""
    section = facts.sections[view.section_id]
    name, has_poster = (
        films.get(section["object_id"], ("", False)) if section["type"] == SectionType.VIDEO else ("", False)
    )
    return {
        "object": {
            "type": section["type"],
            "id": str(section["object_id"]),
            "title": section["title"] or name,
            "poster": has_poster,
            "closed": section["status"] != SectionStatus.ACTIVE,
            "review_first": bool(section["settings"].get("review_first")),
        },
        "address": facts.addresses.get(view.comment_id),
        "reported": facts.reports.get(view.comment_id, {}),
        "edits": facts.edits.get(view.comment_id, 0),
        "pinned": bool(view.attributes & Attribute.PINNED),
        "featured": bool(view.attributes & Attribute.FEATURED),
        "promoted": bool(view.attributes & Attribute.PROMOTED),
        "erased": bool(view.meta.get(ERASED)),
    }


def _item(view: CommentView) -> dict[str, Any]:
    return {
        "id": str(view.comment_id),
        "section": str(view.section_id),
        "root": str(view.root_id) if view.root_id else None,
        "user": str(view.publisher_id) if view.publisher_id else None,
        "name": view.meta.get("name", ""),
        "floor": view.floor,
        "at": view.created_at.isoformat(),
        "content": view.content,
        "status": view.status.name,
        "rank": RANK_NAMES[Rank(view.status_rank)],
        "by": view.status_actor,
        "reasons": view.meta.get("reasons", []),
        "likes": view.like_count,
        "dislikes": view.dislike_count,
        "reports": view.report_count,
        "replies": view.child_visible,
    }
