"""The API of Fever, which some readers speak: ``/feeds/fever/``. What clients send is in its tests.

Every call is one address with names of what is wanted; one request may ask for several. Sources and folders have small
numbers, see `source_lists.numbers`; an entry's number is its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from sqlalchemy import Connection, Row, func, select

from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.guesses import TooManyGuessesError
from douban_pipeline.feeds.api.access import ReaderAccess
from douban_pipeline.feeds.api.google_reader import NO_FOLDER
from douban_pipeline.feeds.api.parameters import Parameters, read_parameters
from douban_pipeline.feeds.reading.content import safe_html
from douban_pipeline.feeds.services import FeedsServices
from douban_pipeline.feeds.store import entry_lists, icons, source_lists
from douban_pipeline.feeds.store.entry_lists import Selection
from douban_pipeline.feeds.store.tables import entry, poll
from douban_pipeline.feeds.types import digest

PREFIX = "/feeds/fever"
MOST_ITEMS = 50
"""Entries of an answer, as the API says."""
MOST_IDS = 50_000
"""Newest ids of a list without pages: 700 KB."""
_VERSION = 3
_LARGEST = 2**53
_EVERYTHING = "0"
"""Number of the group that has all sources."""


def fever_router(services: FeedsServices, access: ReaderAccess) -> APIRouter:
    """Return the router of the API, which asks for the password's hash itself."""
    router, answers = APIRouter(), Fever(services)

    async def answer(request: Request) -> Response:
        given = await read_parameters(request)
        try:
            if not await access.knows_fever(request, given.get("api_key")):
                return JSONResponse({"api_version": _VERSION, "auth": 0})
        except TooManyGuessesError as refused:
            return JSONResponse({"api_version": _VERSION, "auth": 0}, 429, {"Retry-After": str(refused.seconds)})
        return JSONResponse(await run_in_threadpool(answers.answer, given))

    router.api_route("", methods=["GET", "POST"])(answer)
    router.api_route("/", methods=["GET", "POST"])(answer)
    return router


class Fever:
    """Answers requests of the API.

    Args:
        services: The feeds' services.
    """

    def __init__(self, services: FeedsServices) -> None:
        self._services = services

    def answer(self, given: Parameters) -> dict[str, Any]:
        """Return the answer to a request of somebody known."""
        if given.get("mark") and given.get("as"):
            self._mark(given)
        with reading(self._services.engine) as connection:
            polled = int(connection.execute(select(func.max(poll.c.at))).scalar() or 0)
        found: dict[str, Any] = {"api_version": _VERSION, "auth": 1, "last_refreshed_on_time": polled}
        if "groups" in given or "feeds" in given:
            found |= self._sources(groups="groups" in given, feeds="feeds" in given)
        if "favicons" in given:
            found["favicons"] = self._favicons()
        if "links" in given:
            found["links"] = []
        if "items" in given:
            found |= self._items(given)
        if "unread_item_ids" in given:
            found["unread_item_ids"] = self._ids(Selection(unread=True))
        if "saved_item_ids" in given:
            found["saved_item_ids"] = self._ids(Selection(starred=True))
        return found

    def _icons(self, connection: Connection, followed: Sequence[Row[Any]]) -> dict[str, tuple[str, str]]:
        """Return the name and the data of the icon of each source that has one."""
        addresses = {row.source_id: icons.icon_address(row.url, row.favicon) for row in followed}
        data = icons.read_icons(connection, addresses.values())
        hashes = {source_id: digest(address) for source_id, address in addresses.items() if address}
        return {source_id: (f"icon:{hashed}", data[hashed]) for source_id, hashed in hashes.items() if hashed in data}

    def _favicons(self) -> list[dict[str, Any]]:
        with reading(self._services.engine) as connection:
            found = dict(self._icons(connection, source_lists.followed(connection)).values())
        numbers = source_lists.numbers(self._services.engine, [*found])
        return [{"id": numbers[name], "data": data} for name, data in found.items()]

    def _sources(self, *, groups: bool, feeds: bool) -> dict[str, Any]:
        with reading(self._services.engine) as connection:
            followed = source_lists.followed(connection)
            pictured = {source_id: name for source_id, (name, _) in self._icons(connection, followed).items()}
        # Every source is in a group: some readers fail at one that is in none.
        names = sorted({row.folder or NO_FOLDER for row in followed})
        numbers = source_lists.numbers(
            self._services.engine,
            [
                *(f"folder:{name}" for name in names),
                *(f"source:{row.source_id}" for row in followed),
                *pictured.values(),
            ],
        )
        members: dict[str, list[str]] = {name: [] for name in names}
        for row in followed:
            members[row.folder or NO_FOLDER].append(str(numbers[f"source:{row.source_id}"]))
        found: dict[str, Any] = {
            "feeds_groups": [
                {"group_id": numbers[f"folder:{name}"], "feed_ids": ",".join(members[name])} for name in names
            ]
        }
        if groups:
            found["groups"] = [{"id": numbers[f"folder:{name}"], "title": name} for name in names]
        if feeds:
            found["feeds"] = [
                {
                    "id": numbers[f"source:{row.source_id}"],
                    "favicon_id": numbers[pictured[row.source_id]] if row.source_id in pictured else 0,
                    "title": row.title or row.url,
                    "url": row.url,
                    "site_url": row.url,
                    "is_spark": 0,
                    "last_updated_on_time": row.last_article_at or 0,
                }
                for row in followed
            ]
        return found

    def _items(self, given: Parameters) -> dict[str, Any]:
        key = entry.c.entry_id
        query = select(key).order_by(key).limit(MOST_ITEMS)
        if given.get("with_ids"):
            parts = [part.strip() for part in given.get("with_ids").split(",")[:MOST_ITEMS]]
            wanted = [int(part) for part in parts if part.isascii() and part.isdigit() and len(part) < 16]
        else:
            since, most = given.number("since_id"), given.number("max_id")
            if most is not None:
                query = select(key).order_by(key.desc()).limit(MOST_ITEMS)
                query = query.where(key < min(most, _LARGEST)) if most else query
            else:
                query = query.where(key > min(since or 0, _LARGEST))
            with reading(self._services.engine) as connection:
                wanted = list(connection.execute(query).scalars())
        with reading(self._services.engine) as connection:
            rows = entry_lists.read_entries(connection, wanted)
            total = entry_lists.newest_key(connection)  # counting a million rows for each page would cost more
        places = {each: place for place, each in enumerate(wanted)}
        rows.sort(key=lambda row: places[row.entry_id])
        numbers = source_lists.numbers(self._services.engine, [f"source:{row.source_id}" for row in rows])
        items = [
            {
                "id": row.entry_id,
                "feed_id": numbers[f"source:{row.source_id}"],
                "title": row.title,
                "author": "",
                "html": safe_html(row.content, row.summary, row.link),
                "url": row.link,
                "is_saved": row.starred,
                "is_read": int(not row.unread),
                "created_on_time": row.published_at,
            }
            for row in rows
        ]
        return {"items": items, "total_items": total}

    def _ids(self, chosen: Selection) -> str:
        with reading(self._services.engine) as connection:
            page = entry_lists.entry_page(connection, chosen, None, MOST_IDS)
        return ",".join(str(row.entry_id) for row in page.rows)

    def _mark(self, given: Parameters) -> None:
        kind, wanted, number = given.get("mark"), given.get("as"), given.number("id")
        engine = self._services.engine
        if kind == "item":
            marks = {"read": {"unread": False}, "unread": {"unread": True}} | {
                "saved": {"starred": True},
                "unsaved": {"starred": False},
            }
            if number is not None and number < _LARGEST and wanted in marks:
                run_transaction(engine, lambda connection: entry_lists.mark(connection, [number], **marks[wanted]))
            return
        if kind not in ("feed", "group") or wanted != "read" or number is None:
            return
        if kind == "group" and given.get("id") == _EVERYTHING:
            chosen = Selection()
        else:
            with reading(engine) as connection:
                name = source_lists.name_of_number(connection, number) if number < 2**31 else None
            what, _, which = (name or "").partition(":")
            if what != {"feed": "source", "group": "folder"}[kind]:
                return
            chosen = Selection(source_id=which) if kind == "feed" else Selection(folder=_folder(which))
        with reading(engine) as connection:
            through = entry_lists.newest_key(connection)
        before = given.number("before")
        entry_lists.mark_all_read(engine, chosen, through=through, found_to=min(before, _LARGEST) if before else None)


def _folder(name: str) -> str:
    return "" if name == NO_FOLDER else name
