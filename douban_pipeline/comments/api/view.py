"""Paths for the page component: one call per page, and the actions of visitors."""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi import APIRouter, Depends, Request, Response

from douban_pipeline.comments import answers, pages
from douban_pipeline.comments.api.context import (
    PAGE_SIZE,
    Context,
    SharedPage,
    address_of,
    answer_with,
    encode,
    tagged,
)
from douban_pipeline.comments.api.event_writer import May, Writing
from douban_pipeline.comments.api.overlay import items_of
from douban_pipeline.comments.api.problems import CommentId, ObjectId, Problem, ProblemRoute
from douban_pipeline.comments.api.requests import (
    Complaint,
    Cursor,
    Device,
    Draft,
    NewComment,
    Opinion,
    SectionChange,
    ShownComments,
    Size,
    Switch,
    Targets,
    Typed,
)
from douban_pipeline.comments.identity import TokenError, guests_at
from douban_pipeline.comments.pages import Target
from douban_pipeline.comments.store.comment_lists import Order
from douban_pipeline.comments.text_pieces import pieces
from douban_pipeline.comments.types import (
    BIGGEST_ID,
    Actor,
    CommentStatus,
    EventKind,
    Rank,
    SectionStatus,
    SectionType,
)
from douban_pipeline.comments.word_forms import clean
from douban_pipeline.core.guesses import household


def view_router(context: Context) -> APIRouter:
    """Return the router of the paths below ``/v1``."""
    router = APIRouter(prefix="/v1", route_class=ProblemRoute, tags=["view"])
    writing = Writing(context)

    async def about(
        request: Request, actor: Actor, comment_id: int, kind: EventKind, *, may: May | None = None, **payload: Any
    ) -> answers.Accepted:
        await writing.about(request, actor, comment_id, kind, may=may, **payload)
        return {"accepted": True}

    async def reporting(request: Request) -> Actor:
        return _all_guests(await context.writer(request), request)

    anybody, writer, reporter = Depends(context.visitor), Depends(context.writer), Depends(reporting)
    operator = Depends(context.operator)

    @router.get("/sections/{kind}/{object_id}/page", response_model=answers.SectionPage | answers.PhonePage)
    async def page(
        request: Request,
        kind: SectionType,
        object_id: ObjectId,
        sort: Order = Order.HEAT,
        cursor: Cursor = None,
        size: Size = PAGE_SIZE,
        device: Device = Device.DESKTOP,
    ) -> Response:
        """Return a page of a section: the section, pinned comments, roots with replies, and the next cursor."""
        target, after = Target(kind, object_id), _place(cursor)
        key = ("roots", target, sort, cursor, size)
        shared = await context.shared_page(
            key, target, lambda site: pages.read_roots(site, target, sort, after, size), first=after is None
        )
        return await _answer(context, request, shared, device)

    @router.get("/comments/{comment_id}/replies", response_model=answers.RepliesPage | answers.PhoneReplies)
    async def replies(
        request: Request,
        comment_id: CommentId,
        cursor: Cursor = None,
        size: Size = 20,
        device: Device = Device.DESKTOP,
    ) -> Response:
        """Return a page of the replies to a root, oldest first."""
        context.refuse_unborn(comment_id)
        after = _place(cursor)
        shared = await context.shared_page(
            ("replies", comment_id, cursor, size),
            comment_id,
            lambda site: pages.read_replies(site, comment_id, after, size),
        )
        return await _answer(context, request, shared, device)

    @router.get("/comments/{comment_id}/dialog", response_model=answers.DialogPage)
    async def dialog(request: Request, comment_id: CommentId, cursor: Cursor = None, size: Size = 20) -> Response:
        """Return a page of the dialog that a reply belongs to."""
        context.refuse_unborn(comment_id)
        after = _place(cursor)
        shared = await context.shared_page(
            ("dialog", comment_id, cursor, size),
            comment_id,
            lambda site: pages.read_dialog(site, comment_id, after, size),
        )
        return await _answer(context, request, shared)

    @router.get("/counts", response_model=answers.Counts)
    async def counts(request: Request, of: Targets) -> Response:
        """Return the number of comments shown for objects, such as ``1:17,1:18``; 100 at most."""
        targets = targets_of(of)
        found, _ = await context.read("page", lambda site: pages.read_counts(site, targets))
        return tagged(request, {"counts": found})

    @router.post("/sections/{kind}/{object_id}/comments", status_code=202)
    async def publish(
        request: Request,
        kind: SectionType,
        object_id: ObjectId,
        body: NewComment,
        actor: Actor = writer,
    ) -> answers.Published:
        """Publish a comment; return what is needed to display it at once. It is applied within a second."""
        ad: answers.Advertisement | None = None if body.ad is None else {"title": body.ad.title, "link": body.ad.link}
        return await writing.publish(request, actor, Target(kind, object_id), body.content, body.parent, body.name, ad)

    @router.get("/comments/{comment_id}/outcome")
    async def outcome(comment_id: CommentId, actor: Actor = writer) -> answers.Outcome:
        """Return what became of the comment, or of the edit, that the visitor sent last: it may yet be refused."""
        return await writing.outcome(actor, comment_id)

    @router.post("/preview")
    async def preview(request: Request, body: Typed) -> answers.Preview:
        """Return how a text will be shown, as far as no word of it is masked; nothing is stored."""
        if await context.counted(f"preview:{household(address_of(request))}", 60) > 60:
            raise Problem(429, "预览过于频繁，请稍后再试", {"Retry-After": "60"})
        return {"pieces": pieces(clean(body.content))}

    @router.get("/me")
    async def me(visitor: Actor | None = anybody) -> answers.Me:
        """Return who asks: a user, a guest (without id) if guests may write, or null."""
        return {"me": _who(visitor) if visitor is not None else None}

    @router.put("/comments/{comment_id}/vote", status_code=202)
    async def vote(request: Request, comment_id: CommentId, body: Opinion, actor: Actor = writer) -> answers.Accepted:
        """Like or dislike a comment, or withdraw the vote."""
        return await about(request, actor, comment_id, EventKind.VOTE, value=body.value)

    @router.post("/comments/{comment_id}/report", status_code=202)
    async def report(
        request: Request, comment_id: CommentId, body: Complaint, actor: Actor = reporter
    ) -> answers.Accepted:
        """Report a comment. All guests at an address report it once."""
        return await about(request, actor, comment_id, EventKind.REPORT, reason=body.reason, detail=body.detail)

    @router.delete("/comments/{comment_id}/report", status_code=202)
    async def withdraw(request: Request, comment_id: CommentId, actor: Actor = reporter) -> answers.Accepted:
        """Withdraw a report."""
        return await about(request, actor, comment_id, EventKind.WITHDRAW_REPORT)

    @router.delete("/comments/{comment_id}", status_code=202)
    async def delete(request: Request, comment_id: CommentId, actor: Actor = writer) -> answers.Accepted:
        """Delete one's own comment, or a comment in one's own section."""
        deleted = CommentStatus.DELETED
        return await about(request, actor, comment_id, EventKind.SET_STATUS, may=_may_delete, status=deleted)

    @router.patch("/comments/{comment_id}", status_code=202)
    async def edit(request: Request, comment_id: CommentId, body: Draft, actor: Actor = writer) -> answers.Edited:
        """Replace the text of one's own comment within `edit_seconds`; what it said before is kept for reviewers."""
        return await writing.edit(request, actor, comment_id, body.content)

    @router.post("/comments/{comment_id}/undo", status_code=202)
    async def undo(request: Request, comment_id: CommentId, actor: Actor = writer) -> answers.Accepted:
        """Undo one's own deletion."""
        return await about(request, actor, comment_id, EventKind.UNDO_STATUS, may=_may_delete)

    @router.put("/comments/{comment_id}/pin", status_code=202)
    async def pin(request: Request, comment_id: CommentId, body: Switch, actor: Actor = writer) -> answers.Accepted:
        """Pin a comment to the top of its section, or unpin it."""
        return await about(request, actor, comment_id, EventKind.PIN, may=_may_manage, on=body.on)

    @router.put("/comments/{comment_id}/feature", status_code=202)
    async def feature(request: Request, comment_id: CommentId, body: Switch, actor: Actor = writer) -> answers.Accepted:
        """Mark a comment as featured, or remove the mark."""
        return await about(request, actor, comment_id, EventKind.FEATURE, may=_may_manage, on=body.on)

    @router.put("/comments/{comment_id}/promote", status_code=202)
    async def promote(
        request: Request, comment_id: CommentId, body: Switch, actor: Actor = operator
    ) -> answers.Accepted:
        """Mark a comment as an advertisement, or remove the mark; for operators only."""
        return await about(request, actor, comment_id, EventKind.PROMOTE, on=body.on)

    @router.patch("/sections/{kind}/{object_id}", status_code=202)
    async def change_section(
        request: Request,
        kind: SectionType,
        object_id: ObjectId,
        body: SectionChange,
        actor: Actor = writer,
    ) -> answers.Accepted:
        """Close or open a section, or set whether comments are reviewed first."""
        payload: dict[str, Any] = {}
        if body.closed is not None:
            payload["status"] = SectionStatus.CLOSED if body.closed else SectionStatus.ACTIVE
        if body.review_first is not None:
            payload["settings"] = {"review_first": body.review_first}
        await writing.change_section(request, actor, Target(kind, object_id), _may_manage, payload)
        return {"accepted": True}

    @router.post("/impressions", status_code=202)
    async def impressions(request: Request, body: ShownComments, visitor: Actor | None = anybody) -> answers.Counted:
        """Record which comments of a page were displayed, once a visitor; used for the order by heat only.

        All guests at an address are one visitor, as for reports: both lower a comment and cost their sender nothing.
        """
        try:
            served = context.views.read(body.view, context.services.clock.now())
        except TokenError:
            raise Problem(403, "展现凭证（view）无效或已过期，请重新读取列表") from None
        seen = served & {int(number) for number in body.ids}
        counted = None
        if seen and await context.counted(f"shown:{household(address_of(request))}", 60) <= 60:
            note = partial(writing.note_shown, seen, _all_guests(visitor, request))
            counted = await context.dependencies.try_call("impressions", lambda: context.in_thread(note), [])
        return {"counted": counted or 0}

    return router


async def _answer(context: Context, request: Request, page: SharedPage, device: Device = Device.DESKTOP) -> Response:
    """Return the response: a shared page combined with the visitor's personal data."""
    lists = context.services.lists
    degraded = [*page.degraded, *(["redis"] if lists is not None and lists.away else [])]
    visitor = await context.visitor(request)
    view = _view(context, page)
    if visitor is None and not degraded:
        if device not in page.encoded:
            page.encoded[device] = encode(
                {**_shared(page, device), **view, "notice": page.notice or None, "degraded": []}
            )
        return answer_with(request, *page.encoded[device])
    shared = _shared(page, device)
    body = {**shared, **view, "notice": page.notice or None}
    if visitor is not None and (items_of(shared) or "section" in shared):
        body |= await context.overlay.personal(visitor, shared, degraded)
        body["me"] = _who(visitor)
    body["degraded"] = degraded
    return tagged(request, body)


def _shared(page: SharedPage, device: Device) -> dict[str, Any]:
    return pages.for_phones(page.body) if device == Device.PHONE else page.body


def _who(visitor: Actor) -> answers.Who:
    return {"id": str(visitor.user_id) if visitor.user_id else None, "name": visitor.name}


def _all_guests(actor: Actor | None, request: Request) -> Actor:
    """Return a visitor as reports and impressions count them: all guests at an address are one."""
    return guests_at(address_of(request)) if actor is None or actor.is_guest else actor


def _view(context: Context, page: SharedPage) -> dict[str, str]:
    """Return the token of the roots that a page of a section shows; replies have no order that impressions change."""
    if "section" not in page.body:
        return {}
    now = context.services.clock.now()
    window = context.views.window(now)
    if page.view is None or page.view[0] != window:
        ids = [int(item["id"]) for item in (*page.body["pinned"], *page.body["items"])]
        page.view = (window, context.views.issue(int(page.body["section"]["id"]), ids, now))
        page.encoded.clear()
    return {"view": page.view[1]}


def _place(cursor: str | None) -> Any:
    try:
        return pages.place_of(cursor)
    except ValueError as error:
        raise Problem(400, str(error)) from None


def targets_of(given: str) -> list[Target]:
    """Return the targets named by a text such as ``1:17,1:18``.

    Raises:
        Problem: The text is invalid.
    """
    found = []
    for item in given.split(",")[:100]:
        kind, _, number = item.partition(":")
        if not kind.isdecimal() or not number.isdecimal():
            raise Problem(400, "of 应写作 类型:编号，以逗号分隔")
        if max(int(kind), int(number)) > BIGGEST_ID:
            raise Problem(400, "of 里的编号过大")
        found.append(Target(int(kind), int(number)))
    return found


def _may_delete(actor: Actor, owner_id: int, publisher_id: int) -> Actor:
    """Return the actor with the rank needed to delete.

    Raises:
        Problem: The actor may not delete.
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
