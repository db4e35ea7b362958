"""Converts visitors' requests to events: checks them, and writes concurrent requests in one transaction."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import Request
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError

from douban_pipeline.comments import answers, identity
from douban_pipeline.comments.api.context import Context, address_of
from douban_pipeline.comments.api.problems import Problem
from douban_pipeline.comments.api.request_batches import Gathering
from douban_pipeline.comments.api.requests import MAX_LENGTH
from douban_pipeline.comments.ids import moment_of
from douban_pipeline.comments.pages import Target
from douban_pipeline.comments.scoring.impressions import add_views
from douban_pipeline.comments.store import comment_lists, events, moderators, sections
from douban_pipeline.comments.store.events import EventInput
from douban_pipeline.comments.store.sections import Whereabouts
from douban_pipeline.comments.text_pieces import mentions, pieces
from douban_pipeline.comments.trust import TrustLevel
from douban_pipeline.comments.types import (
    EDIT_TIME,
    Actor,
    CommentStatus,
    EventKind,
    EventState,
    Rank,
    SectionStatus,
)
from douban_pipeline.comments.user_notices import STATES
from douban_pipeline.comments.word_forms import clean
from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.database_errors import is_cut
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.guesses import household

_KEY = "idempotency-key"
_OTHER_REQUEST = "这个 Idempotency-Key 已用于另一个请求；请换一个键再试"
_OF_THE_VISITOR = frozenset({"ip", "level", "name"})

May = Callable[[Actor, int, int], Actor]
"""Returns the actor with the required rank, given the section's owner and the comment's author; raises a `Problem`."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """An event requested by a visitor, about an existing comment or about the section of a target.

    Attributes:
        named: Whether the request has an idempotency key, so that its event may exist already.
    """

    actor: Actor
    kind: EventKind
    key: str
    payload: Mapping[str, Any]
    comment_id: int = 0
    target: Target | None = None
    may: May | None = None
    named: bool = False
    address: str = ""

    @property
    def withdraws(self) -> bool:
        """Whether it only takes something back, which a banned visitor may still do: delete, withdraw a like."""
        if self.kind == EventKind.SET_STATUS:
            return self.payload.get("status") == CommentStatus.DELETED
        return self.kind == EventKind.WITHDRAW_REPORT or (self.kind == EventKind.VOTE and not self.payload.get("value"))

    @property
    def needs_comment(self) -> bool:
        """Whether it makes no sense of a deleted comment: an opinion, a report, another text."""
        return not self.withdraws and self.kind in (EventKind.VOTE, EventKind.REPORT, EventKind.EDIT)


class Writing:
    """Writes visitors' requests as events."""

    def __init__(self, context: Context) -> None:
        self._context, self._services = context, context.services
        self._gathering: Gathering[_Wanted, int] = Gathering(self._write_in_thread)

    async def publish(
        self,
        request: Request,
        actor: Actor,
        target: Target,
        content: str,
        parent: str | None,
        name: str,
        ad: answers.Advertisement | None = None,
    ) -> answers.Published:
        """Write the event of a new comment, and return what is needed to display it.

        Raises:
            Problem: The comment is refused.
        """
        content = self._checked(content)
        name = identity.cleaned(actor.name or name)
        if actor.is_guest and actor.rank < Rank.OPERATOR and identity.is_reserved(name):
            raise Problem(400, "这个名称只给本站工作人员使用，请换一个")
        settings = self._context.settings
        if ad is not None and actor.rank < Rank.OPERATOR:
            raise Problem(403, "只有管理员可以发布推广")
        limit = settings.publish_per_minute
        who = _counted_as(request, actor)
        if limit and actor.rank < Rank.OPERATOR and await self._context.counted(f"publish:{who}", 60) > limit:
            raise Problem(429, "发布过于频繁，请稍后再试", {"Retry-After": "60"})
        payload = {
            "content": content,
            "name": name,
            "level": actor.level,
            "ip": address_of(request),
            "mentions": mentions(content),
            "parent_id": int(parent) if parent else 0,
            **({"ads": dict(ad)} if ad is not None else {}),
        }
        key = _request_key(request, actor, "publish")
        comment_id = await self._write(
            _Wanted(
                actor,
                EventKind.PUBLISH,
                key,
                payload,
                target=target,
                named=_KEY in request.headers,
                address=address_of(request),
            )
        )
        return {
            "id": str(comment_id),
            "state": "accepted",
            "parent": parent,
            "author": {"id": str(actor.user_id) if actor.user_id else None, "name": name or "游客"},
            "at": self._services.clock.now().isoformat(),
            "pieces": pieces(content),
            "labels": ["staff"] if actor.rank >= Rank.OPERATOR else [],
            "ad": ad,
        }

    async def edit(self, request: Request, actor: Actor, comment_id: int, content: str) -> answers.Edited:
        """Write the event that replaces the text of one's own comment, and return what is needed to display it.

        Raises:
            Problem: The text is refused, it is too late, or it is another's comment.
        """
        content = self._checked(content)
        now = self._services.clock.now()
        if now - moment_of(comment_id) > EDIT_TIME:
            raise Problem(409, "已经过了可以编辑的时间")
        await self.about(request, actor, comment_id, EventKind.EDIT, may=_is_author, content=content)
        return {"id": str(comment_id), "pieces": pieces(content), "edited": now.isoformat()}

    async def outcome(self, actor: Actor, comment_id: int) -> answers.Outcome:
        """Return what became of a text that the visitor sent: ``pending``, ``refused`` with the reason, or its status.

        Raises:
            Problem: The visitor sent no such text.
        """

        def read() -> tuple[EventState, str, CommentStatus | None] | None:
            with reading(self._services.engine) as connection:
                found = events.outcome_of(connection, comment_id, actor.key)
                view = comment_lists.get_comments(connection, [comment_id]).get(comment_id)
                return found and (*found, view.status if view is not None else None)

        found = await self._context.dependencies.call("write", partial(self._context.in_thread, read))
        if found is None:
            raise Problem(404, "评论不存在")
        state, refusal, status = found
        if state == EventState.PENDING:
            return {"state": "pending", "detail": ""}
        if refusal or status is None:
            unexpected = not refusal or refusal.startswith(events.UNEXPECTED)
            return {"state": "refused", "detail": "无法处理，请稍后再试" if unexpected else refusal}
        return {"state": STATES[status], "detail": ""}

    @staticmethod
    def _checked(content: str) -> str:
        content = clean(content)
        if not content:
            raise Problem(400, "内容为空")
        if len(content) > MAX_LENGTH:
            raise Problem(400, f"评论最多 {MAX_LENGTH} 字")
        return content

    async def about(
        self,
        request: Request,
        actor: Actor,
        comment_id: int,
        kind: EventKind,
        *,
        may: May | None = None,
        **payload: Any,
    ) -> None:
        """Write an event about a comment.

        Raises:
            Problem: There is no such comment, or the actor may not change it.
        """
        self._context.refuse_unborn(comment_id)
        if await self._context.counted(f"act:{_counted_as(request, actor)}", 60) > 600:
            raise Problem(429, "操作过于频繁，请稍后再试", {"Retry-After": "60"})
        key = _request_key(request, actor, f"{kind}:{comment_id}")
        await self._write(_Wanted(actor, kind, key, payload, comment_id, may=may, address=address_of(request)))

    async def change_section(
        self, request: Request, actor: Actor, target: Target, may: May, payload: Mapping[str, Any]
    ) -> None:
        """Write an event that changes a section.

        Raises:
            Problem: There is no such section, or the actor may not change it.
        """
        key = _request_key(request, actor, "section")
        await self._write(_Wanted(actor, EventKind.SET_SECTION, key, payload, target=target, may=may))

    async def _write(self, wanted: _Wanted) -> int:
        return await self._context.dependencies.call("write", partial(self._gathering.run, wanted), expected=(Problem,))

    async def _write_in_thread(self, wanted: Sequence[_Wanted]) -> Sequence[int | Exception]:
        return await self._context.in_thread(partial(self._write_all, wanted))

    def _write_all(self, wanted: Sequence[_Wanted]) -> Sequence[int | Exception]:
        """Write events in one transaction; return for each its comment id, or the error why it was not written."""
        ids = [self._services.numbers.next() if each.kind == EventKind.PUBLISH else each.comment_id for each in wanted]
        try:
            outcomes = run_transaction(self._services.engine, lambda connection: self._append(connection, wanted, ids))
        except DBAPIError as error:
            if len(wanted) == 1 or is_cut(error):
                raise
            # An event that the database rejects must not fail the others.
            return [self._write_alone(each) for each in wanted]
        self._services.wake_workers()
        return outcomes

    def _write_alone(self, wanted: _Wanted) -> int | Exception:
        try:
            return self._write_all([wanted])[0]
        except (DBAPIError, DatabaseError) as error:
            return error

    def _append(self, connection: Connection, wanted: Sequence[_Wanted], ids: Sequence[int]) -> list[int | Exception]:
        now = self._services.clock.now()
        targets = {each.target for each in wanted if each.target is not None}
        found = sections.find_sections(connection, {(each.type, each.object_id) for each in targets})
        about = {each.comment_id for each in wanted if each.comment_id}
        places = sections.whereabouts(connection, about)
        visitors = {(each.actor.user_id, each.address) for each in wanted if each.actor.rank < Rank.OPERATOR}
        levels = moderators.levels_of(connection, visitors, now) if visitors else {}
        outcomes: list[int | Exception] = []
        given: list[EventInput] = []
        for each, number in zip(wanted, ids, strict=True):
            try:
                actor = each.actor
                level = levels.get((actor.user_id, each.address)) if actor.rank < Rank.OPERATOR else None
                if level is not None and level.level is TrustLevel.BANNED and not each.withdraws:
                    raise Problem(403, level.ban_refusal())
                if each.target is None:
                    place = places.get(each.comment_id)
                    if place is None or (place.deleted and each.needs_comment):
                        raise Problem(404, "评论不存在")
                else:
                    at = (each.target.type, each.target.object_id)
                    if at not in found and each.kind == EventKind.PUBLISH:
                        made = sections.ensure_section(connection, *at, now)
                        found[at] = Whereabouts(made, 0, status=SectionStatus.ACTIVE)
                    place = found.get(at)
                    if place is None:
                        raise Problem(404, "评论区不存在")
                    closed = place.status != SectionStatus.ACTIVE and actor.rank < Rank.OPERATOR
                    if closed and each.kind == EventKind.PUBLISH:
                        raise Problem(409, "评论区已关闭")
                if each.may is not None:
                    actor = each.may(actor, place.owner_id, place.publisher_id)
            except Problem as problem:
                outcomes.append(problem)
                continue
            outcomes.append(number)
            given.append(EventInput(place.section_id, each.kind, actor, each.key, number, each.payload))
        events.append(connection, given, now)
        # A repeated request returns the comment id of the first one.
        named = {each.request_key: each for each in given}
        before = events.of_requests(connection, [each.key for each in wanted if each.named and each.key in named])
        for place_of, each in enumerate(wanted):
            if isinstance(outcomes[place_of], int) and each.key in before:
                first = before[each.key]
                same = first.section_id == named[each.key].section_id and _same(first.payload, each.payload)
                outcomes[place_of] = first.comment_id if same else Problem(409, _OTHER_REQUEST)
        return outcomes

    def note_shown(self, seen: Collection[int], viewer: Actor) -> int:
        """Count comments that a visitor saw and had not seen before; return their number."""
        now = self._services.clock.now()

        def note() -> int:
            return run_transaction(
                self._services.engine, lambda connection: add_views(connection, seen, viewer.key, now)
            )

        try:
            return note()
        except IntegrityError:  # the same report is being written at this moment
            return note()


def _same(first: Mapping[str, Any], again: Mapping[str, Any]) -> bool:
    """Return whether two requests say the same; who asked and from where may differ."""
    return all(first.get(name) == again.get(name) for name in {*first, *again} - _OF_THE_VISITOR)


def _is_author(actor: Actor, _owner_id: int, publisher_id: int) -> Actor:
    if not actor.user_id or actor.user_id != publisher_id:
        raise Problem(403, "只能编辑自己的评论")
    return actor


def _counted_as(request: Request, actor: Actor) -> str:
    """Return whose requests are limited together: a person's, or those of all guests at an address.

    A guest who changes the name of the browser is another guest, but not at another address.
    """
    return f"guests:{household(address_of(request))}" if actor.is_guest else actor.key


def _request_key(request: Request, actor: Actor, what: str) -> str:
    """Return the request key: derived from the idempotency key if there is one, otherwise random."""
    given = request.headers.get(_KEY, "")
    if not given:
        return secrets.token_hex(20)
    return hashlib.sha256(f"{actor.key}\n{what}\n{given}".encode()).hexdigest()[:64]
