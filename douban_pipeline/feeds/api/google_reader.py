"""The API of Google Reader, which most readers speak: ``/feeds/greader``. What clients send is in its tests.

Lists, marks and sources are those of the page ``/feeds/``. A source's id is ``feed/`` and its key, a folder is a label.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, PlainTextResponse
from sqlalchemy import Connection, Row

from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.guesses import TooManyGuessesError
from douban_pipeline.feeds import subscriptions
from douban_pipeline.feeds.api.access import USER, ReaderAccess
from douban_pipeline.feeds.api.parameters import Parameters, read_parameters
from douban_pipeline.feeds.reading.content import safe_html
from douban_pipeline.feeds.services import FeedsServices
from douban_pipeline.feeds.store import entry_lists, source_lists, sources
from douban_pipeline.feeds.store.entry_lists import Cursor, Selection
from douban_pipeline.feeds.subscriptions import SourceRequest

PREFIX = "/feeds/greader"
NO_FOLDER = "未分组"
"""Label of sources in no folder: some readers fail at a source without one."""

_STATE = "user/-/state/com.google/"
_LABEL = "user/-/label/"
_ITEM = "tag:google.com,2005:reader/item/"
FIRST_ID = 0xA0_0000_0000_00
"""Added to an entry's key to make its id. Readers send ids as decimals, as 16 hexadecimal digits, and as fewer of them;
with this one a decimal has 15 digits, and hexadecimal digits begin with an a."""
MOST_IDS, MOST_ITEMS = 10_000, 1000
_FEW = 20
_SECOND = 1_000_000


class _RefusedError(Exception):
    """A request that cannot be answered; its text is sent."""


def item_id(entry_id: int) -> int:
    """Return the id that readers have for an entry."""
    return FIRST_ID + entry_id


def entry_of_item(given: str) -> int | None:
    """Return the key of an entry by the id that a reader sent, in any of its forms; None if it is none."""
    digits = given.strip().removeprefix(_ITEM).lower()
    decimal = digits.isascii() and digits.isdigit() and len(digits) == 15
    try:
        found = int(digits, 10 if decimal else 16) - FIRST_ID
    except ValueError:
        return None
    return found if 0 < found < 2**47 else None


def google_reader_router(services: FeedsServices, access: ReaderAccess) -> APIRouter:
    """Return the router of the API, which asks for the password itself."""
    router, answers = APIRouter(), GoogleReader(services, access)

    @router.api_route("/accounts/ClientLogin", methods=["GET", "POST"])
    async def log_in(request: Request) -> Response:
        given = await read_parameters(request)
        try:
            right = await access.logs_in(request, given.get("Email"), given.get("Passwd"))
        except TooManyGuessesError as refused:
            return _later(refused)
        if not right:
            return PlainTextResponse("Error=BadAuthentication\n", 401)
        if given.get("output") == "json":
            return JSONResponse({"SID": access.token, "LSID": access.token, "Auth": access.token})
        return PlainTextResponse("".join(f"{name}={access.token}\n" for name in ("SID", "LSID", "Auth")))

    @router.api_route("/reader/api/0/{call:path}", methods=["GET", "POST"])
    async def call(call: str, request: Request) -> Response:
        try:
            if not await access.knows(request):
                return PlainTextResponse("Unauthorized", 401, {"WWW-Authenticate": "GoogleLogin"})
        except TooManyGuessesError as refused:
            return _later(refused)
        given = await read_parameters(request)
        try:
            return await run_in_threadpool(answers.answer, call, request.method, given)
        except (_RefusedError, ProblemsError) as refused_call:
            return PlainTextResponse(str(refused_call), 400)

    return router


def _later(refused: TooManyGuessesError) -> Response:
    return PlainTextResponse("Error=TooManyAttempts\n", 429, {"Retry-After": str(refused.seconds)})


class GoogleReader:
    """Answers calls of the API.

    Args:
        services: The feeds' services.
        access: Who has the token for changes.
    """

    def __init__(self, services: FeedsServices, access: ReaderAccess) -> None:
        self._services, self._access = services, access
        self._reads: dict[str, Callable[[Parameters], Any]] = {
            "user-info": lambda _: {"userId": "1", "userName": USER, "userProfileId": "1", "userEmail": USER},
            "preference/list": lambda _: {"prefs": []},
            "preference/stream/list": lambda _: {"streamprefs": {}},
            "subscription/list": self._subscriptions,
            "tag/list": self._tags,
            "unread-count": self._unread_counts,
            "stream/items/ids": self._ids,
            "stream/items/contents": self._items,
            "stream/contents": lambda given: self._stream(given.get("s") or f"{_STATE}reading-list", given),
        }
        self._changes: dict[str, Callable[[Parameters], Any]] = {
            "edit-tag": self._edit_tag,
            "mark-all-as-read": self._mark_all,
            "subscription/edit": self._edit_subscription,
            "subscription/quickadd": self._quick_add,
            "rename-tag": lambda given: self._rename(given, _folder_of(given.get("dest"))),
            "disable-tag": lambda given: self._rename(given, ""),
        }

    def answer(self, call: str, method: str, given: Parameters) -> Response:
        """Return the answer to a call."""
        stream = call.lstrip("/").removeprefix("stream/contents/")
        call = call.strip("/")
        if call == "token":
            return PlainTextResponse(self._access.edit_token)
        if call.startswith("stream/contents/"):  # a feed's address may end with a slash
            return JSONResponse(self._stream(stream, given))
        if call in self._reads:
            return JSONResponse(self._reads[call](given))
        if call not in self._changes:
            return PlainTextResponse("Not Found", 404)
        if method != "POST":
            return PlainTextResponse("POST it", 405, {"Allow": "POST"})
        token = given.get("T").encode()
        if token and not hmac.compare_digest(
            token, self._access.edit_token.encode()
        ):  # a reader that has an old one asks for another and comes back
            return PlainTextResponse("Unauthorized", 401, {"X-Reader-Google-Bad-Token": "true"})
        found = self._changes[call](given)
        return PlainTextResponse("OK") if found is None else JSONResponse(found)

    def _subscriptions(self, _: Parameters) -> dict[str, Any]:
        with reading(self._services.engine) as connection:
            rows = source_lists.followed(connection)
        found = [
            {
                "id": f"feed/{row.source_id}",
                "title": row.title or row.url,
                "categories": [_category(row.folder or NO_FOLDER)],
                "url": row.url,
                "htmlUrl": _site(row.url),
                "sortid": f"{number:08X}",
            }
            for number, row in enumerate(rows, 1)
        ]
        return {"subscriptions": found}

    def _tags(self, _: Parameters) -> dict[str, Any]:
        with reading(self._services.engine) as connection:
            names = source_lists.folders(connection)
        labels = [{"id": f"{_LABEL}{name}", "type": "folder"} for name in (*names, NO_FOLDER)]
        return {"tags": [{"id": f"{_STATE}starred"}, {"id": f"{_STATE}reading-list"}, *labels]}

    def _unread_counts(self, _: Parameters) -> dict[str, Any]:
        with reading(self._services.engine) as connection:
            counts = entry_lists.unread_counts(connection)
            newest = entry_lists.newest_unread(connection, list(counts))
            in_folders = source_lists.folders_of(connection, counts)
        found: dict[str, tuple[int, int]] = {}
        for source_id, folder in in_folders.items():
            for name in (f"feed/{source_id}", f"{_LABEL}{folder or NO_FOLDER}", f"{_STATE}reading-list"):
                count, moment = found.get(name, (0, 0))
                found[name] = (count + counts[source_id], max(moment, newest.get(source_id, 0)))
        rows = [
            {"id": name, "count": count, "newestItemTimestampUsec": str(moment * _SECOND)}
            for name, (count, moment) in sorted(found.items())
        ]
        return {"max": 1_000_000_000, "unreadcounts": rows}

    def _page(self, stream: str, given: Parameters, most: int) -> tuple[Sequence[Row[Any]], str]:
        limit = min(max(given.number("n", _FEW) or _FEW, 1), most)
        with reading(self._services.engine) as connection:
            chosen = self._selection(connection, stream, given)
            if chosen is None:
                return [], ""
            page = entry_lists.entry_page(
                connection, chosen, Cursor.parse(given.get("c")), limit, oldest_first=given.get("r") == "o"
            )
        return page.rows, str(page.next) if page.next is not None else ""

    def _selection(self, connection: Connection, stream: str, given: Parameters) -> Selection | None:
        """Return the list that a stream is; None for a stream that has no entries here, such as of shared ones."""
        chosen = self._stream_selection(connection, _plain_stream(stream))
        if chosen is None:
            return None
        for without in given.all("xt"):
            state = _plain_stream(without).removeprefix(_STATE)
            chosen = _narrowed(chosen, {"read": {"unread": True}, "starred": {"starred": False}}.get(state, {}))
        for only in given.all("it"):
            state = _plain_stream(only).removeprefix(_STATE)
            chosen = _narrowed(chosen, {"read": {"unread": False}, "starred": {"starred": True}}.get(state, {}))
        return replace(chosen, found_from=given.number("ot"), found_to=given.number("nt"))

    def _stream_selection(self, connection: Connection, stream: str) -> Selection | None:
        states = {
            "reading-list": Selection(),
            "read": Selection(unread=False),
            "kept-unread": Selection(unread=True),
            "starred": Selection(starred=True),
        }
        if stream.startswith(_STATE):
            return states.get(stream.removeprefix(_STATE))
        if stream.startswith(_LABEL):
            return Selection(folder=_folder_of(stream))
        if stream.startswith("feed/"):
            return Selection(source_id=self._source_id(connection, stream))
        raise _RefusedError(f"no such stream: {stream[:100]}")

    def _source_id(self, connection: Connection, stream: str) -> str:
        found = sources.find_source(connection, stream.removeprefix("feed/"))
        if found is None:
            raise _RefusedError(f"no such feed: {stream[:100]}")
        return found.source_id

    def _ids(self, given: Parameters) -> dict[str, Any]:
        rows, following = self._page(given.get("s") or f"{_STATE}reading-list", given, MOST_IDS)
        refs = [
            {"id": str(item_id(row.entry_id)), "directStreamIds": [], "timestampUsec": str(row.found_at * _SECOND)}
            for row in rows
        ]
        return {"itemRefs": refs, **({"continuation": following} if following else {})}

    def _stream(self, stream: str, given: Parameters) -> dict[str, Any]:
        rows, following = self._page(stream, given, MOST_ITEMS)
        found = self._shown([row.entry_id for row in rows], stream)
        return {**found, **({"continuation": following} if following else {})}

    def _items(self, given: Parameters) -> dict[str, Any]:
        wanted = [found for each in given.all("i")[:MOST_ITEMS] if (found := entry_of_item(each)) is not None]
        return self._shown(wanted, f"{_STATE}reading-list")

    def _shown(self, wanted: Sequence[int], stream: str) -> dict[str, Any]:
        """Return entries in the order given."""
        with reading(self._services.engine) as connection:
            rows = {row.entry_id: row for row in entry_lists.read_entries(connection, wanted)}
            known = entry_lists.titles_of(connection, [row.source_id for row in rows.values()])
        items = [_item(rows[each], known.get(rows[each].source_id)) for each in dict.fromkeys(wanted) if each in rows]
        now = self._services.now()
        return {"direction": "ltr", "id": stream, "title": "", "author": USER, "updated": now, "items": items}

    def _edit_tag(self, given: Parameters) -> None:
        ids = [found for each in given.all("i") if (found := entry_of_item(each)) is not None]
        marks: dict[str, bool] = {}
        for added, tags in ((True, given.all("a")), (False, given.all("r"))):
            for tag in tags:
                state = _plain_stream(tag).removeprefix(_STATE)
                if state in ("read", "kept-unread"):
                    marks["unread"] = added != (state == "read")
                elif state == "starred":
                    marks["starred"] = added
        run_transaction(self._services.engine, lambda connection: entry_lists.mark(connection, ids, **marks))

    def _mark_all(self, given: Parameters) -> None:
        engine = self._services.engine
        with reading(engine) as connection:
            chosen = self._stream_selection(connection, _plain_stream(given.get("s")))
            through = entry_lists.newest_key(connection)
        if chosen is not None:
            entry_lists.mark_all_read(engine, chosen, through=through, found_to=_seconds(given.number("ts")))

    def _edit_subscription(self, given: Parameters) -> None:
        stream, action = given.get("s"), given.get("ac")
        if action == "subscribe":
            self._follow(stream.removeprefix("feed/"), given.get("t"), given.get("a"))
            return
        if action not in ("edit", "unsubscribe"):
            raise _RefusedError(f"no such action: {action[:100]}")
        now = self._services.now()
        with reading(self._services.engine) as connection:
            source_id = self._source_id(connection, stream)
            current = source_lists.folders_of(connection, [source_id]).get(source_id, "")
        if action == "unsubscribe":
            subscriptions.remove(self._services, [source_id])
            return
        values: dict[str, Any] = {"title": given.get("t").strip()[:300]} if given.get("t").strip() else {}
        if given.get("a"):
            values["folder"] = _folder_of(given.get("a"))[:200] or None
        elif "r" in given and _folder_of(given.get("r")) == current:
            values["folder"] = None
        if values:
            run_transaction(
                self._services.engine, lambda connection: sources.update_source(connection, source_id, values, now)
            )

    def _quick_add(self, given: Parameters) -> dict[str, Any]:
        address = given.get("quickadd").removeprefix("feed/").strip()
        try:
            source_id, title = self._follow(address, "", "")
        except ProblemsError as error:
            return {"query": address, "numResults": 0, "error": str(error)}
        return {"query": address, "numResults": 1, "streamId": f"feed/{source_id}", "streamName": title}

    def _follow(self, address: str, title: str, label: str) -> tuple[str, str]:
        folder = _folder_of(label)[:200] if label else ""
        request, _ = subscriptions.find_feed(self._services, SourceRequest(url=address, title=title, folder=folder))
        report = subscriptions.follow(self._services, [request], dry_run=False, keep_known=True)
        [found] = [*report.added, *report.known]
        if folder and report.known:
            values, now = {"folder": folder}, self._services.now()
            run_transaction(
                self._services.engine,
                lambda connection: sources.update_source(connection, found.source_id, values, now),
            )
        return found.source_id, found.title or found.url

    def _rename(self, given: Parameters, after: str) -> None:
        before = _folder_of(given.get("s") or given.get("t"))
        if before:
            run_transaction(
                self._services.engine,
                lambda connection: source_lists.rename_folder(connection, before, after[:200]),
            )


def _plain_stream(stream: str) -> str:
    """Return a stream's id with a dash for the user, whose number some readers send."""
    parts = stream.split("/", 2)
    return f"user/-/{parts[2]}" if len(parts) == 3 and parts[0] == "user" else stream


def _folder_of(label: str) -> str:
    name = _plain_stream(label).removeprefix(_LABEL).strip()
    return "" if name == NO_FOLDER else name


def _category(folder: str) -> dict[str, str]:
    return {"id": f"{_LABEL}{folder}", "label": folder, "type": "folder"}


def _narrowed(chosen: Selection, values: Mapping[str, Any]) -> Selection:
    return replace(chosen, **values)


def _site(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/"


def _seconds(moment: int | None) -> int | None:
    """Return seconds of a moment in seconds, milliseconds, microseconds (as the API says) or nanoseconds."""
    if not moment:
        return None
    while moment > 100_000_000_000:
        moment //= 1000
    return moment


def _item(row: Row[Any], of: Row[Any] | None) -> dict[str, Any]:
    states = ["reading-list", *(() if row.unread else ("read",)), *(("starred",) if row.starred else ())]
    folder = (of.folder if of is not None else "") or NO_FOLDER
    url = of.url if of is not None else ""
    links = [{"href": row.link, "type": "text/html"}] if row.link else []
    return {
        "id": f"{_ITEM}{item_id(row.entry_id):016x}",
        "crawlTimeMsec": str(row.found_at * 1000),
        "timestampUsec": str(row.found_at * _SECOND),
        "published": row.published_at,
        "updated": row.published_at,
        "title": row.title,
        "canonical": links,
        "alternate": links,
        "categories": [*(f"{_STATE}{state}" for state in states), f"{_LABEL}{folder}"],
        "origin": {
            "streamId": f"feed/{row.source_id}",
            "title": of.title or url if of is not None else "",
            "htmlUrl": _site(url),
        },
        "summary": {"direction": "ltr", "content": safe_html(row.content, row.summary, row.link)},
        "author": "",
    }
