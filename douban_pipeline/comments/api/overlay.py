"""Additions to a page: decorations of its authors for everybody; own votes and friends' likes for one visitor.

Requested in two levels: votes and the list of friends concurrently, then what friends liked. All are weak dependencies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from douban_pipeline.comments import pages
from douban_pipeline.comments.types import Actor

if TYPE_CHECKING:
    from douban_pipeline.comments.api.context import Context

_FRIENDS_SHOWN = 3


def items_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all comments of a page, including the replies below them."""
    top = [*body.get("pinned", ()), *body.get("items", ())]
    return [*top, *(reply for item in top for reply in item.get("preview", ()))]


async def decorations(context: Context, body: dict[str, Any], degraded: list[str]) -> dict[str, Any]:
    """Return the decorations of a page's authors, by id; authors without any are missing."""
    plugs = context.services.plugs
    if not plugs.has_decorations:
        return {}
    shown = [*items_of(body), *([body["root"]] if "root" in body else [])]
    authors = sorted({int(item["author"]["id"]) for item in shown if item["author"]["id"]})
    unknown = [user for user in authors if context.badges.get(user) is None]
    if unknown:
        ask = partial(plugs.decorations, unknown)
        found = await context.dependencies.try_call("decorations", lambda: context.in_thread(ask), degraded)
        for user in unknown if found is not None else ():
            known = (found or {}).get(str(user))
            context.badges.put(user, known.model_dump(exclude_defaults=True) if known is not None else {})
    return {str(user): badge for user in authors if (badge := context.badges.get(user))}


async def personal(context: Context, visitor: Actor, body: dict[str, Any], degraded: list[str]) -> dict[str, Any]:
    """Return the personal part of a page: the visitor's votes and waiting comments, and what friends liked."""
    ids = [int(item["id"]) for item in items_of(body)]
    section_id = int(body.get("section", {}).get("id", 0))

    def own() -> dict[str, Any]:
        return context.sites.read(lambda site: pages.read_personal(site, visitor, section_id, ids))[0]

    votes, friends = await asyncio.gather(
        context.dependencies.try_call("personal", lambda: context.in_thread(own), degraded),
        _friends(context, visitor, degraded),
    )
    found = votes or {"votes": {}, "mine": []}
    if friends and ids:
        found["liked_by_friends"] = await _liked(context, friends, ids, degraded)
    return found


async def _friends(context: Context, visitor: Actor, degraded: list[str]) -> list[int]:
    plugs = context.services.plugs
    if not plugs.has_friends or not visitor.user_id:
        return []
    if (known := context.friends.get(visitor.user_id)) is not None:
        return known
    ask = partial(plugs.friends, visitor.user_id)
    found = await context.dependencies.try_call("friends", lambda: context.in_thread(ask), degraded)
    if found is not None:
        context.friends.put(visitor.user_id, found)
    return found or []


async def _liked(
    context: Context, friends: Sequence[int], ids: Sequence[int], degraded: list[str]
) -> dict[str, dict[str, Any]]:
    def read() -> dict[int, list[int]]:
        return context.sites.read(lambda site: pages.read_liked(site, friends, ids))[0]

    found = await context.dependencies.try_call("friends", lambda: context.in_thread(read), degraded)
    return {
        str(number): {"count": len(users), "users": [str(user) for user in sorted(users)[:_FRIENDS_SHOWN]]}
        for number, users in (found or {}).items()
    }
