"""Paths for operators and auditors: review queue, search, moderation, undo, and explanation of ranks."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Query, Response
from sqlalchemy import Connection, RowMapping

from douban_pipeline.comments import explanations
from douban_pipeline.comments.api.admin_models import (
    ExplainedComment,
    FoundComment,
    FoundPage,
    FoundRow,
    Moderated,
    ServiceState,
    StatusRequest,
    Undo,
    Undone,
)
from douban_pipeline.comments.api.context import Context
from douban_pipeline.comments.api.problems import CommentId, Moment, Number, Problem, ProblemRoute
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
_Result = TypeVar("_Result")


_Read = tuple[CommentView, list[RowMapping], list[RowMapping], dict[str, Any] | None]
"""A comment, the decisions on it, its earlier texts, and its stored heat."""


def admin_router(context: Context) -> APIRouter:
    """Return the router of the paths below ``/v1/admin``."""
    operator = Depends(context.operator)
    router = APIRouter(prefix="/v1/admin", route_class=ProblemRoute, tags=["admin"], dependencies=[operator])
    engine = context.services.engine

    async def in_database(work: Callable[[Connection], _Result]) -> _Result:
        def read() -> _Result:
            with reading(engine) as connection:
                return work(connection)

        # The primary database, so that decisions made a moment ago are visible.
        call = partial(context.in_thread, read)
        return await context.dependencies.call("page", call, expected=(Problem,))

    async def why(view: CommentView) -> tuple[int | None, list[str], list[str]]:
        """Return a comment's place in the served order by heat, sentences that explain it, and what is degraded."""
        if view.root_id:
            return None, ["回复按楼层排列，不参加热度排序。"], []
        degraded: list[str] = []
        weights, lists = context.services.settings.heat_weights, context.services.lists

        def read() -> tuple[int | None, list[str]]:
            with reading(engine) as connection:
                return explanations.explain_comment(connection, lists, view.section_id, view.comment_id, weights)

        call = partial(context.in_thread, read)
        said = await context.dependencies.try_call("explanation", call, degraded)
        place, sentences = said or (None, [])
        if not sentences and not degraded:
            shown = view.status == CommentStatus.NORMAL
            sentences = ["列表刚刚变动，请稍后再看。" if shown else "未显示的评论不在热度列表中。"]
        return place, sentences, degraded

    @router.get("/search")
    async def search(
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
    ) -> FoundPage:
        """Return comments of any status that meet all criteria, newest first; with status 1, those waiting for review.

        An item about which something waits to be applied, such as a decision of a moment ago, is ``pending``.
        """
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
        return {
            "items": [_row(view, facts, films, pending=view.comment_id in pending) for view in found.comments],
            "next": str(found.before) if found.before is not None else None,
            "degraded": degraded,
        }

    @router.get("/comments/{comment_id}")
    async def comment(comment_id: CommentId) -> ExplainedComment:
        """Return a comment, the decisions on it, and the explanation of its rank by heat."""

        def read(connection: Connection) -> _Read | None:
            view = get_comments(connection, [comment_id]).get(comment_id)
            if view is None:
                return None
            edits = comment_search.earlier_texts(connection, comment_id)
            decided = comment_search.select_moderation(connection, comment_id)
            return view, decided, edits, comment_search.stored_heat(connection, comment_id)

        found = await in_database(read)
        if found is None:
            raise Problem(404, "评论不存在")
        view, decided, edits, heat = found
        if heat is not None:
            heat["parts"] = {PART_NAMES.get(part, part): value for part, value in heat["parts"].items()}
        place, sentences, degraded = await why(view)
        return {
            **_item(view),
            "decided": [_decision(row) for row in decided],
            "edits": [{"content": row["content"], "at": row["created_at"].isoformat()} for row in edits],
            "heat": heat,
            "place_by_heat": place,
            "why": sentences,
            "degraded": degraded,
        }

    @router.post("/moderate", responses={202: {"model": Moderated}})
    async def moderate(response: Response, body: StatusRequest, actor: Actor = operator) -> Moderated:
        """Set the status of comments; a dry run returns which may not be changed, and why."""
        ids = [int(number) for number in body.ids]
        views = await in_database(lambda connection: get_comments(connection, ids))
        outcome = {number: _refusal(views.get(number), body.status, actor) for number in ids}
        refused = {str(number): refusal for number, refusal in outcome.items() if refusal}
        if body.dry_run:
            return {"dry_run": True, "refused": refused}
        batch = secrets.token_hex(8)
        payload = {"status": body.status, "reason": body.reason, "batch": batch}
        given = [
            EventInput(views[number].section_id, EventKind.SET_STATUS, actor, secrets.token_hex(20), number, payload)
            for number, refusal in outcome.items()
            if refusal is None
        ]
        await _write(context, given)
        response.status_code = 202
        return {"batch": batch, "refused": refused}

    @router.post("/undo", status_code=202)
    async def undo(body: Undo, actor: Actor = operator) -> Undone:
        """Undo the last decision on comments, or on all comments of a batch."""

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
        return {"undone": [str(number) for number in sorted(found)]}

    @router.get("/state")
    async def state() -> ServiceState:
        """Return the state of the service: dependencies, read sites, hot sections, how long events wait."""
        oldest = await in_database(events.oldest_pending)
        waits = (context.services.clock.now() - oldest).total_seconds() if oldest is not None else 0
        return {
            "dependencies": context.dependencies.states(),
            "sites": context.sites.states(),
            "hot": [(str(key), count) for key, count in context.hot.hottest(10)],
            "waiting_seconds": waits,
            "loads": context.loads,
            "redis": None if context.services.lists is None else not context.services.lists.away,
        }

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


def _decision(row: RowMapping) -> dict[str, Any]:
    return {
        "action": row["action"],
        "from": CommentStatus(row["old_status"]).name,
        "to": CommentStatus(row["new_status"]).name,
        "rank": RANK_NAMES[Rank(row["new_rank"])],
        "actor": row["actor"],
        "reason": row["reason"],
        "undone": row["undone"],
        "at": row["created_at"].isoformat(),
    }


def _row(
    view: CommentView, facts: comment_search.RowFacts, films: Mapping[int, tuple[str, bool]], *, pending: bool
) -> FoundRow:
    """Return a row: also its film or other object, its section's state, the address."""
    section = facts.sections[view.section_id]
    is_video = section["type"] == SectionType.VIDEO
    name, has_poster = films.get(section["object_id"], ("", False)) if is_video else ("", False)
    return {
        **_item(view),
        "pending": pending,
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


def _item(view: CommentView) -> FoundComment:
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
