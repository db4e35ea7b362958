"""Assembles pages of comments from lists, rows and texts: the shared part and a visitor's personal part.

Whatever a list contains, the database is queried whether each comment is shown before it is returned.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from douban_pipeline.comments import answers
from douban_pipeline.comments.cache.lists import CachedPage, ListName, RedisLists
from douban_pipeline.comments.sites import Site
from douban_pipeline.comments.store import comment_lists as store
from douban_pipeline.comments.store.comment_lists import CommentPlace, CommentView, Order
from douban_pipeline.comments.store.sections import find_section
from douban_pipeline.comments.text_pieces import pieces
from douban_pipeline.comments.types import BIGGEST_ID, EDIT_TIME, Actor, Attribute, SectionStatus
from douban_pipeline.core.database import reading

PREVIEW = 3
"""Maximum number of replies shown below a root at first."""
_LABELS = {
    int(bit): name  # plain numbers: every comment of every page asks for each
    for bit, name in {
        Attribute.OWNER_LIKED: "owner_liked",
        Attribute.OWNER_REPLIED: "owner_replied",
        Attribute.BY_OWNER: "by_owner",
        Attribute.FEATURED: "featured",
        Attribute.PINNED: "pinned",
        Attribute.PROMOTED: "promoted",
        Attribute.STAFF: "staff",
    }.items()
}


class NoSuchPageError(LookupError):
    """The requested object does not exist, or is not shown."""


@dataclass(frozen=True, slots=True)
class Target:
    """The object that a section belongs to."""

    type: int
    object_id: int


def place_of(cursor: str | None) -> CommentPlace | None:
    """Return the place that a cursor encodes.

    Raises:
        ValueError: It is not a valid cursor.
    """
    if not cursor:
        return None
    found = re.fullmatch(r"(-?\d{1,19})\.(\d{1,19})", cursor, re.ASCII)
    key, number = map(int, found.groups()) if found else (0, BIGGEST_ID + 1)
    if max(abs(key), number) > BIGGEST_ID:
        raise ValueError("游标无效")
    return CommentPlace(key, number)


def cursor_of(place: CommentPlace) -> str:
    """Return the cursor of a place."""
    return f"{place.key}.{place.comment_id}"


def read_roots(site: Site, target: Target, order: Order, after: CommentPlace | None, size: int) -> answers.Roots:
    """Return the shared part of a page of a section.

    Pinned comments are before the first page, and in no page of the order.

    Raises:
        NoSuchPageError: There is no such section, or nothing of it is shown.
    """
    with reading(site.engine) as connection:
        section = _shown_section(connection, target)
        section_id = section["section_id"]
        pinned = [int(number) for number in section["pinned"]]
        name = ListName(section_id, order)
        places, ended = _places(connection, site.lists, name, after, size + len(pinned))
        others = [place for place in places if place.comment_id not in pinned]
        roots = [place.comment_id for place in others[:size]]
        on_top = pinned if after is None else []
        views = _shown(connection, [*roots, *on_top])
        below = store.preview_replies(
            connection, section_id, [number for number in views if views[number].child_visible], PREVIEW
        )

    def item(number: int) -> answers.Root:
        return {**_item(views[number]), "preview": [_reply(view) for view in below.get(number, ()) if view.is_shown]}

    return {
        "section": _section(section),
        "sort": str(order),
        "pinned": [item(number) for number in on_top if number in views],
        "items": [item(number) for number in roots if number in views],
        "next": None if not others or (ended and len(others) <= size) else cursor_of(others[:size][-1]),
    }


def read_replies(site: Site, root_id: int, after: CommentPlace | None, size: int) -> answers.Replies:
    """Return a page of the replies to a root, oldest first.

    Raises:
        NoSuchPageError: The root is not shown.
    """
    with reading(site.engine) as connection:
        root = _shown(connection, [root_id]).get(root_id)
        if root is None or root.root_id:
            raise NoSuchPageError
        name = ListName(root.section_id, Order.FLOOR, root_id)
        places, ended = _places(connection, site.lists, name, after, size)
        items = [_reply(view) for view in _shown(connection, [place.comment_id for place in places]).values()]
    return {"root": _item(root), "items": items, "next": None if ended or not places else cursor_of(places[-1])}


def read_dialog(site: Site, comment_id: int, after: CommentPlace | None, size: int) -> answers.Dialog:
    """Return a page of the dialog that a reply belongs to, oldest first.

    Raises:
        NoSuchPageError: The comment is not shown, or is not a reply.
    """
    with reading(site.engine) as connection:
        view = _shown(connection, [comment_id]).get(comment_id)
        if view is None or not view.dialog_id:
            raise NoSuchPageError
        places = store.list_dialog(connection, view.dialog_id, after, size)
        items = [_reply(view) for view in _shown(connection, [place.comment_id for place in places]).values()]
    return {"items": items, "next": cursor_of(places[-1]) if len(places) == size else None}


_ON_PHONES = ("id", "parent", "at", "pieces", "likes", "replies", "labels", "edited", "ad", "reply_to")


def for_phones(body: dict[str, Any]) -> dict[str, Any]:
    """Return a page as phones get it: of each comment what a small list shows, and below a root its best reply alone.

    Nothing is said of what is 0, empty or unknown.
    """

    def item(whole: dict[str, Any]) -> dict[str, Any]:
        author = {"id": whole["author"]["id"], "name": whole["author"]["name"]}
        kept = {name: whole[name] for name in _ON_PHONES if whole.get(name)}
        below = {"preview": [item(reply) for reply in whole["preview"][:1]]} if whole.get("preview") else {}
        return {**kept, "author": author, **below}

    lists: dict[str, Any] = {name: [item(each) for each in body[name]] for name in ("pinned", "items") if name in body}
    return {**body, **lists, **({"root": item(body["root"])} if "root" in body else {})}


def read_counts(site: Site, targets: Sequence[Target]) -> list[answers.Count]:
    """Return the number of comments shown for each target; 0 where there is no section."""
    found: list[answers.Count] = []
    with reading(site.engine) as connection:
        for target in targets:
            section = find_section(connection, target.type, target.object_id)
            shown = section is not None and section["status"] != SectionStatus.HIDDEN
            count = section["visible_count"] if section is not None and shown else 0
            found.append({"type": target.type, "object_id": target.object_id, "count": count})
    return found


def read_comments(site: Site, ids: Sequence[int]) -> list[answers.Shown]:
    """Return those of the given comments that are shown, without personal data."""
    with reading(site.engine) as connection:
        views = _shown(connection, ids)
    return [_item(view) for view in views.values()]


def read_personal(site: Site, actor: Actor, section_id: int, ids: Collection[int]) -> answers.Personal:
    """Return the personal part of a page: the actor's votes, and their comments that wait for review."""
    with reading(site.engine) as connection:
        votes = store.votes_of(connection, actor.key, ids)
        own: list[CommentView] = []
        if actor.user_id and section_id:
            waiting = store.own_waiting(connection, section_id, actor.user_id)
            own = list(store.get_comments(connection, waiting).values())
    return {
        "votes": {str(number): int(vote) for number, vote in votes.items()},
        "mine": [{**_item(view), "waiting": True, "preview": []} for view in own],
    }


def read_liked(site: Site, users: Collection[int], ids: Collection[int]) -> dict[int, list[int]]:
    """Return by comment which of the given users like it."""
    with reading(site.engine) as connection:
        found = store.liked_by(connection, ids, [f"u:{user}" for user in users])
    return {number: [int(voter.removeprefix("u:")) for voter in voters] for number, voters in found.items()}


def _shown_section(connection: Connection, target: Target) -> Any:
    section = find_section(connection, target.type, target.object_id)
    if section is None or section["status"] == SectionStatus.HIDDEN:
        raise NoSuchPageError
    return section


def _places(
    connection: Connection, lists: RedisLists | None, name: ListName, after: CommentPlace | None, size: int
) -> tuple[list[CommentPlace], bool]:
    """Return the places of a page and whether it is the last one; the list first, then the database."""
    found: list[CommentPlace] = []
    if lists is not None:
        page = _cached(lists, name, after, size)
        if page is None:
            if after is None and name.order != Order.HEAT:
                lists.ask_rebuild(name)
        else:
            found = list(page.places[:size])
            if page.ended or len(found) == size:
                return found, page.ended
            after = found[-1] if found else after
    wanted = size - len(found)
    if name.root_id:
        found += store.list_replies(connection, name.root_id, name.section_id, after, wanted)
    else:
        found += store.list_roots(connection, name.section_id, name.order, after, wanted)
    return found, len(found) < size


def _cached(lists: RedisLists, name: ListName, after: CommentPlace | None, size: int) -> CachedPage | None:
    if name.order != Order.HEAT:
        return lists.page(name, after, size)
    heat, follows = lists.heat, (after.key, after.comment_id) if after is not None else None
    found = lists.attempt(lambda: heat.page(name.section_id, follows, size))
    if found is None or (after is None and not found):
        return None
    # The list holds the whole section. The tables may briefly have other heat, so they do not continue where it ends.
    return CachedPage(tuple(CommentPlace(*place) for place in found), ended=len(found) < size)


def _shown(connection: Connection, ids: Sequence[int]) -> dict[int, CommentView]:
    """Return those of ``ids`` that the database shows now, in the order of ``ids``."""
    views = store.get_comments(connection, ids)
    return {number: views[number] for number in ids if number in views and views[number].is_shown}


def _section(section: Any) -> answers.Section:
    return {
        "id": str(section["section_id"]),
        "type": section["type"],
        "object_id": section["object_id"],
        "title": section["title"],
        "closed": section["status"] == SectionStatus.CLOSED,
        "owner_id": str(section["owner_id"]),
        "count": section["visible_count"],
        "roots": section["root_count"],
        "edit_seconds": int(EDIT_TIME.total_seconds()),
    }


def _name_of(publisher_id: int, meta: Mapping[str, Any]) -> str:
    return str(meta.get("name") or (f"用户{publisher_id}" if publisher_id else "游客"))


def _reply(view: CommentView) -> answers.Reply:
    """Return a reply, with the name of whom it replies to (`reply_to`), unless that is the root."""
    above = None if view.above_id is None else _name_of(view.above_id, view.above_meta or {})
    return {**_item(view), "reply_to": above}


def _item(view: CommentView) -> answers.Shown:
    return {
        "id": str(view.comment_id),
        "root": str(view.root_id) if view.root_id else None,
        "parent": str(view.parent_id) if view.parent_id else None,
        "dialog": str(view.dialog_id) if view.dialog_id else None,
        "floor": view.floor,
        "author": {
            "id": str(view.publisher_id) if view.publisher_id else None,
            "name": _name_of(view.publisher_id, view.meta),
            "level": view.level,
        },
        "at": view.created_at.isoformat(),
        "pieces": pieces(view.content),
        "likes": view.like_count,
        "dislikes": view.dislike_count,
        "replies": view.child_visible,
        "labels": [name for bit, name in _LABELS.items() if view.attributes & bit] if view.attributes else [],
        "edited": view.meta.get("edited"),
        "ad": view.meta.get("ads"),
    }
