"""Paths for the component on a page: one call a page, and what visitors do."""

from __future__ import annotations

import hashlib
import secrets
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from douban_pipeline.comments import pages
from douban_pipeline.comments.api.context import Context, SharedPage, accepted, address_of, answer_with, encode, tagged
from douban_pipeline.comments.api.problems import Problem, ProblemRoute
from douban_pipeline.comments.pages import Target
from douban_pipeline.comments.rendering import mentions, pieces
from douban_pipeline.comments.review import clean
from douban_pipeline.comments.scoring.impressions import add_impressions
from douban_pipeline.comments.store import events, sections
from douban_pipeline.comments.store.events import EventInput
from douban_pipeline.comments.store.reading import Order, get_comments
from douban_pipeline.comments.types import Actor, CommentStatus, EventKind, Rank, SectionStatus, SectionType
from douban_pipeline.core.database import reading, run_transaction

_Size = Annotated[int, Query(ge=1, le=50)]
_Cursor = Annotated[str | None, Query(max_length=40)]
_KEY = "idempotency-key"


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewComment(_Body):
    """A comment that is to be published."""

    content: str = Field(min_length=1, max_length=16_000)
    parent: str | None = Field(None, pattern=r"^\d{1,19}$")
    name: str = Field("", max_length=60, description="Of a guest.")


class Opinion(_Body):
    """1 like, -1 dislike, 0 neither."""

    value: int = Field(ge=-1, le=1)


class Complaint(_Body):
    """Why a comment is reported."""

    reason: str = Field("other", max_length=32)
    detail: str = Field("", max_length=300)


class Switch(_Body):
    """On or off."""

    on: bool


class SectionChange(_Body):
    """Whether a section takes no more comments, and whether people read them first."""

    closed: bool | None = None
    review_first: bool | None = None


class Shown(_Body):
    """Comments that were on somebody's screen."""

    ids: list[Annotated[str, Field(pattern=r"^\d{1,19}$")]] = Field(max_length=200)


def view_router(context: Context) -> APIRouter:
    """Return the paths below ``/v1``."""
    router = APIRouter(prefix="/v1", route_class=ProblemRoute, tags=["view"])
    writing = _Writing(context)

    @router.get("/sections/{kind}/{object_id}/page")
    async def page(
        request: Request,
        kind: SectionType,
        object_id: int,
        sort: Order = Order.HEAT,
        cursor: _Cursor = None,
        size: _Size = 20,
    ) -> Response:
        """One page of a section: the section, pinned comments, roots with replies, and where it goes on."""
        target, after = Target(kind, object_id), _place(cursor)
        key = ("roots", target, sort, cursor, size)
        shared = await context.shared_page(key, target, lambda site: pages.read_roots(site, target, sort, after, size))
        return await _answer(context, request, shared)

    @router.get("/comments/{comment_id}/replies")
    async def replies(request: Request, comment_id: int, cursor: _Cursor = None, size: _Size = 20) -> Response:
        """A page of the replies to a root, the oldest first."""
        after = _place(cursor)
        shared = await context.shared_page(
            ("replies", comment_id, cursor, size),
            comment_id,
            lambda site: pages.read_replies(site, comment_id, after, size),
        )
        return await _answer(context, request, shared)

    @router.get("/comments/{comment_id}/dialog")
    async def dialog(request: Request, comment_id: int, cursor: _Cursor = None, size: _Size = 20) -> Response:
        """The dialog that a reply belongs to."""
        after = _place(cursor)
        found = await context.read("page", lambda site: pages.read_dialog(site, comment_id, after, size))
        shared = SharedPage(*found)
        return await _answer(context, request, shared)

    @router.get("/counts")
    async def counts(request: Request, of: Annotated[str, Query(max_length=2000)]) -> Response:
        """How many comments are shown of objects, such as ``1:17,1:18``; 100 at most."""
        targets = targets_of(of)
        found, _ = await context.read("page", lambda site: pages.read_counts(site, targets))
        return tagged(request, {"counts": found})

    @router.post("/sections/{kind}/{object_id}/comments", status_code=202)
    async def publish(request: Request, kind: SectionType, object_id: int, body: NewComment) -> Response:
        """Publish a comment; what is needed to show it at once comes back, the rest follows within a second."""
        actor = await context.writer(request)
        return accepted(await writing.publish(request, actor, Target(kind, object_id), body))

    @router.put("/comments/{comment_id}/vote", status_code=202)
    async def vote(request: Request, comment_id: int, body: Opinion) -> Response:
        """Like, dislike, or take that back."""
        actor = await context.writer(request)
        return await writing.about(request, actor, comment_id, EventKind.VOTE, value=body.value)

    @router.post("/comments/{comment_id}/report", status_code=202)
    async def report(request: Request, comment_id: int, body: Complaint) -> Response:
        """Report a comment."""
        actor = await context.writer(request)
        return await writing.about(request, actor, comment_id, EventKind.REPORT, reason=body.reason, detail=body.detail)

    @router.delete("/comments/{comment_id}/report", status_code=202)
    async def withdraw(request: Request, comment_id: int) -> Response:
        """Take a report back."""
        actor = await context.writer(request)
        return await writing.about(request, actor, comment_id, EventKind.WITHDRAW_REPORT)

    @router.delete("/comments/{comment_id}", status_code=202)
    async def delete(request: Request, comment_id: int) -> Response:
        """Delete one's own comment, or one in one's own section."""
        actor = await context.writer(request)
        return await writing.about(
            request, actor, comment_id, EventKind.SET_STATUS, may=_may_delete, status=CommentStatus.DELETED
        )

    @router.post("/comments/{comment_id}/undo", status_code=202)
    async def undo(request: Request, comment_id: int) -> Response:
        """Take back one's own deletion."""
        actor = await context.writer(request)
        return await writing.about(request, actor, comment_id, EventKind.UNDO_STATUS, may=_may_delete)

    @router.put("/comments/{comment_id}/pin", status_code=202)
    async def pin(request: Request, comment_id: int, body: Switch) -> Response:
        """Pin a comment to the top of its section, or not."""
        actor = await context.writer(request)
        return await writing.about(request, actor, comment_id, EventKind.PIN, may=_may_manage, on=body.on)

    @router.put("/comments/{comment_id}/feature", status_code=202)
    async def feature(request: Request, comment_id: int, body: Switch) -> Response:
        """Mark a comment as featured, or not."""
        actor = await context.writer(request)
        return await writing.about(request, actor, comment_id, EventKind.FEATURE, may=_may_manage, on=body.on)

    @router.patch("/sections/{kind}/{object_id}", status_code=202)
    async def change_section(request: Request, kind: SectionType, object_id: int, body: SectionChange) -> Response:
        """Close a section, open it, or have people read first."""
        actor = await context.writer(request)
        return await writing.change_section(request, actor, Target(kind, object_id), body)

    @router.post("/impressions", status_code=202)
    async def impressions(request: Request, body: Shown) -> Response:
        """Report what was shown; nothing depends on it but the order of heat."""
        if await context.counted(f"shown:{address_of(request)}", 60) <= 60:
            seen = {int(number): 1 for number in body.ids}
            await context.dependencies.try_call(
                "impressions", lambda: context.in_thread(partial(writing.note_shown, seen)), []
            )
        return accepted({"accepted": True})

    return router


async def _answer(context: Context, request: Request, page: SharedPage) -> Response:
    """Lay what one person sees over what everybody sees."""
    lists, shared = context.services.lists, page.body
    degraded = ["redis"] if lists is not None and lists.away else []
    visitor = await context.visitor(request)
    if visitor is None and not degraded:
        if page.encoded is None:
            page.encoded = encode({**shared, "notice": page.notice or None, "degraded": []})
        return answer_with(request, *page.encoded)
    body: dict[str, Any] = {**shared, "notice": page.notice or None}
    ids = [int(item["id"]) for item in _items(shared)]
    if visitor is not None and (ids or "section" in shared):
        section_id = int(shared.get("section", {}).get("id", 0))
        personal = await context.dependencies.try_call(
            "personal",
            lambda: context.in_thread(
                lambda: context.sites.read(lambda site: pages.read_personal(site, visitor, section_id, ids))[0]
            ),
            degraded,
        )
        body |= personal or {"votes": {}, "mine": []}
        body["me"] = {"id": str(visitor.user_id) if visitor.user_id else None, "name": visitor.name}
    body["degraded"] = degraded
    return tagged(request, body)


def _items(shared: dict[str, Any]) -> list[dict[str, Any]]:
    top = [*shared.get("pinned", ()), *shared.get("items", ())]
    return [*top, *(reply for item in top for reply in item.get("preview", ()))]


def _place(cursor: str | None) -> Any:
    try:
        return pages.place_of(cursor)
    except ValueError as error:
        raise Problem(400, str(error)) from None


def targets_of(given: str) -> list[Target]:
    """Return what ``1:17,1:18`` names.

    Raises:
        Problem: It cannot be read.
    """
    found = []
    for item in given.split(",")[:100]:
        kind, _, number = item.partition(":")
        if not kind.isdecimal() or not number.isdecimal():
            raise Problem(400, "of 应写作 类型:编号，以逗号分隔")
        found.append(Target(int(kind), int(number)))
    return found


def _may_delete(actor: Actor, owner_id: int, publisher_id: int) -> Actor:
    """Return the actor with the rank to delete.

    Raises:
        Problem: They may not.
    """
    if actor.rank >= Rank.OPERATOR or (actor.user_id and actor.user_id == publisher_id):
        return actor
    return _may_manage(actor, owner_id, publisher_id)


def _may_manage(actor: Actor, owner_id: int, _publisher_id: int) -> Actor:
    if actor.rank >= Rank.OPERATOR:
        return actor
    if actor.user_id and actor.user_id == owner_id:
        return Actor(actor.key, actor.user_id, actor.name, actor.level, Rank.OWNER)
    raise Problem(403, "只有评论的作者、楼主或管理员可以这样做")


class _Writing:
    """What visitors ask for becomes events."""

    def __init__(self, context: Context) -> None:
        self._context, self._services = context, context.services

    async def _in_thread(self, work: Any) -> Any:
        context = self._context
        return await context.dependencies.call("write", lambda: context.in_thread(work), expected=(Problem,))

    async def publish(self, request: Request, actor: Actor, target: Target, body: NewComment) -> dict[str, Any]:
        """Write the event of a new comment, and return what shows it."""
        content = clean(body.content)
        settings = self._context.settings
        if not content:
            raise Problem(400, "内容为空")
        if len(content) > settings.max_length:
            raise Problem(413, f"评论最多 {settings.max_length} 字")
        limit = settings.publish_per_minute
        if limit and actor.rank < Rank.OPERATOR and await self._context.counted(f"publish:{actor.key}", 60) > limit:
            raise Problem(429, "发布过于频繁，请稍后再试", {"Retry-After": "60"})
        payload = {
            "content": content,
            "name": actor.name or body.name,
            "level": actor.level,
            "ip": address_of(request),
            "mentions": mentions(content),
            "parent_id": int(body.parent) if body.parent else 0,
        }
        key = _request_key(request, actor, "publish")
        comment_id = await self._in_thread(
            lambda: self._append_comment(actor, target, payload, key, named=_KEY in request.headers)
        )
        return {
            "id": str(comment_id),
            "state": "accepted",
            "parent": body.parent,
            "author": {"id": str(actor.user_id) if actor.user_id else None, "name": payload["name"] or "游客"},
            "at": self._services.clock.now().isoformat(),
            "pieces": pieces(content),
        }

    def _append_comment(self, actor: Actor, target: Target, payload: dict[str, Any], key: str, *, named: bool) -> int:
        number, now = self._services.numbers.next(), self._services.clock.now()

        def work(connection: Any) -> int:
            section = sections.find_section(connection, target.type, target.object_id)
            if section is not None and section["status"] != SectionStatus.ACTIVE and actor.rank < Rank.OPERATOR:
                raise Problem(409, "评论区已关闭")
            section_id = (
                section["section_id"]
                if section is not None
                else sections.ensure_section(connection, target.type, target.object_id, now)
            )
            given = EventInput(section_id, EventKind.PUBLISH, actor, key, number, payload)
            events.append(connection, [given], now)
            if not named:
                return number
            found = events.find_event(connection, key)
            assert found is not None
            return int(found["comment_id"])

        return run_transaction(self._services.engine, work)

    async def about(
        self, request: Request, actor: Actor, comment_id: int, kind: EventKind, *, may: Any = None, **payload: Any
    ) -> Response:
        """Write an event about a comment."""
        if await self._context.counted(f"act:{actor.key}", 60) > 600:
            raise Problem(429, "操作过于频繁，请稍后再试", {"Retry-After": "60"})
        key = _request_key(request, actor, f"{kind}:{comment_id}")
        await self._in_thread(lambda: self._append(actor, comment_id, kind, key, may, payload))
        return accepted({"accepted": True})

    def _append(
        self, actor: Actor, comment_id: int, kind: EventKind, key: str, may: Any, payload: dict[str, Any]
    ) -> None:
        engine = self._services.engine
        with reading(engine) as connection:
            view = get_comments(connection, [comment_id], {comment_id: ""}).get(comment_id)
            pending = None if view is not None else events.find_publish(connection, comment_id)
            if view is None and pending is None:
                raise Problem(404, "评论不存在")
            section_id = view.section_id if view is not None else int(pending["section_id"])  # type: ignore[index]
            publisher = view.publisher_id if view is not None else int(pending["user_id"])  # type: ignore[index]
            if may is not None:
                section = sections.get_section(connection, section_id)
                actor = may(actor, section["owner_id"] if section is not None else 0, publisher)
        given = EventInput(section_id, kind, actor, key, comment_id, payload)
        run_transaction(engine, lambda connection: events.append(connection, [given], self._services.clock.now()))

    async def change_section(self, request: Request, actor: Actor, target: Target, body: SectionChange) -> Response:
        """Write the event that changes a section."""
        payload: dict[str, Any] = {}
        if body.closed is not None:
            payload["status"] = SectionStatus.CLOSED if body.closed else SectionStatus.ACTIVE
        if body.review_first is not None:
            payload["settings"] = {"review_first": body.review_first}
        key = _request_key(request, actor, "section")

        def work(connection: Any) -> None:
            section = sections.find_section(connection, target.type, target.object_id)
            if section is None:
                raise Problem(404, "评论区不存在")
            person = _may_manage(actor, section["owner_id"], 0)
            given = EventInput(section["section_id"], EventKind.SET_SECTION, person, key, payload=payload)
            events.append(connection, [given], self._services.clock.now())

        await self._in_thread(lambda: run_transaction(self._services.engine, work))
        return accepted({"accepted": True})

    def note_shown(self, seen: dict[int, int]) -> None:
        """Add to how often comments were shown."""
        now = self._services.clock.now()
        run_transaction(self._services.engine, lambda connection: add_impressions(connection, seen, now))


def _request_key(request: Request, actor: Actor, what: str) -> str:
    """Return the key of a request: that which it names, or one of its own."""
    given = request.headers.get(_KEY, "")
    if not given:
        return secrets.token_hex(20)
    return hashlib.sha256(f"{actor.key}\n{what}\n{given}".encode()).hexdigest()[:64]
