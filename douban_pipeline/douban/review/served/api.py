"""HTTP API of the served sheet, below one prefix. Authentication (tokens, cookies) is done by the service."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.pictures import NoPicture
from douban_pipeline.douban.review.records.record import DecisionError
from douban_pipeline.douban.review.records.rules import MOST_NOTE, MOST_REVIEWER
from douban_pipeline.douban.review.records.snapshot import LARGEST_ID
from douban_pipeline.douban.review.served.desk import NotUndone, NotYet, ReviewDesk, SentChoice
from douban_pipeline.douban.review.served.lookup import Lookup, NotLookedUp
from douban_pipeline.douban.review.served.pictures import Pictures
from douban_pipeline.douban.sources.subject_urls import SMALLEST_ID
from douban_pipeline.douban.store.states import DecisionAction

MOST_AT_ONCE = 60
"""Most cards that a page claims at once, and half of the most decisions that are sent together."""

_NAME = r"^[A-Za-z0-9-]{8,64}$"
_Video = Annotated[int, Field(ge=1, le=LARGEST_ID)]
_Token = Annotated[str, Field(pattern=_NAME)]
_Reviewer = Annotated[str, Field(max_length=MOST_REVIEWER)]
_WEEK = 604_800


class _CardsBody(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Opened(_CardsBody):
    """A page that opens, its name before a reload, how many cards it shows at once, and which one before all."""

    page: _Token
    former: _Token | None = None
    reviewer: _Reviewer = ""
    most: int = Field(ge=1, le=MOST_AT_ONCE)
    first: _Video | None = None


class WantedCards(_CardsBody):
    """Cards that a page wants to show, in order of preference."""

    page: _Token
    reviewer: _Reviewer = ""
    wanted: list[_Video] = Field(max_length=2000)
    most: int = Field(ge=1, le=MOST_AT_ONCE)


class Sent(_CardsBody):
    """A choice that was sent: the name of its batch's run, its video and its actions."""

    run: str = Field(pattern=_NAME)
    vod: _Video
    actions: list[DecisionAction] = Field(max_length=2)

    @property
    def choice(self) -> SentChoice:
        """The choice in the form that the desk uses."""
        return SentChoice(self.run, self.vod, tuple(self.actions))


class ShownCards(_CardsBody):
    """The cards that a page shows, and the sent choices that it waits for."""

    page: _Token
    reviewer: _Reviewer = ""
    held: list[_Video] = Field(max_length=2000)
    sent: list[Sent] = Field(max_length=200)
    hidden: bool = False


class ChosenRow(_CardsBody):
    """One decision, with the fields of a row of ``record_decisions``."""

    vod_id: _Video
    action: DecisionAction
    douban_id: int = Field(0, ge=0, le=LARGEST_ID)
    days: int = Field(0, ge=0, le=100_000)
    lock: bool = False
    accept_conflicts: bool = False
    override_cms_lock: bool = False
    verdict_id: int = Field(0, ge=0, lt=2**63)
    seen_id: int | None = Field(None, ge=0, lt=2**32)


class Chosen(_CardsBody):
    """Decisions to record together."""

    request: _Token
    reviewer: _Reviewer
    note: str = Field("", max_length=MOST_NOTE)
    decisions: list[ChosenRow] = Field(min_length=1, max_length=2 * MOST_AT_ONCE)


class Undone(_CardsBody):
    """A choice to undo."""

    request: _Token
    reviewer: _Reviewer
    sent: Sent


class Asking(_CardsBody):
    """A page whose reviewer has no card and asks the others for some."""

    page: _Token
    reviewer: _Reviewer = ""


class Closed(_CardsBody):
    """The videos that a page releases: it is closed, or it hands them over."""

    page: _Token
    given_up: list[_Video] = Field(max_length=2000)


class SearchedWords(_CardsBody):
    """Words that a reviewer searches Douban for."""

    words: str = Field(min_length=1, max_length=100)


class NamedSubject(_CardsBody):
    """A subject that a reviewer names for a video."""

    vod: _Video
    id: int = Field(ge=SMALLEST_ID, le=LARGEST_ID)


_KNOWN = (NotYet, NotUndone, NotLookedUp, NoPicture, DecisionError, DatabaseError, SQLAlchemyError)


def _refusal(error: Exception) -> HTTPException:
    match error:
        case NotYet():
            return HTTPException(409, str(error))
        case NotUndone():
            return HTTPException(422, str(error))
        case NotLookedUp():
            return HTTPException(404 if error.missing else 503, str(error))
        case NoPicture():
            return HTTPException(404, str(error), {"Cache-Control": "private, max-age=600"})
        case DecisionError():
            return HTTPException(422, "；".join(error.problems))
        case _:
            return HTTPException(503, f"数据库此刻无法读取（{type(error).__name__}）")


class _Answered(APIRoute):
    """A route whose known errors are answered with their sentence."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler."""
        handler = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await handler(request)
            except _KNOWN as error:
                raise _refusal(error) from error

        return answered


def review_router(desk: ReviewDesk, pictures: Pictures, lookup: Lookup) -> APIRouter:
    """Return the router of the served sheet."""
    router = APIRouter(route_class=_Answered)

    @router.get("")
    def without_slash(request: Request) -> Response:
        return RedirectResponse(f"{request.url.path}/", 307)

    @router.get("/")
    def page(request: Request) -> Response:
        body, policy = desk.page(_user(request))
        # Not cached, so that a new version is shown at once.
        headers = {"Content-Security-Policy": policy, "Cache-Control": "no-store"}
        return Response(body, media_type="text/html; charset=utf-8", headers=headers)

    @router.get("/queue")
    def queue(page: Annotated[str, Field(pattern=_NAME)]) -> Response:
        return JSONResponse(desk.queue(page))

    @router.post("/open")
    def opened(asked: Opened, request: Request) -> Response:
        reviewer = _user(request) or asked.reviewer
        return JSONResponse(desk.open(asked.page, reviewer, asked.most, asked.former or "", asked.first or 0))

    @router.post("/cards")
    def cards(asked: WantedCards, request: Request) -> Response:
        return JSONResponse(desk.cards(asked.page, _user(request) or asked.reviewer, asked.wanted, asked.most))

    @router.post("/live")
    def live(shown: ShownCards, request: Request) -> Response:
        reviewer, sent = _user(request) or shown.reviewer, [each.choice for each in shown.sent]
        return JSONResponse(desk.live(shown.page, reviewer, set(shown.held), sent, hidden=shown.hidden))

    @router.post("/decisions")
    def decisions(chosen: Chosen, request: Request) -> Response:
        rows = [row.model_dump(mode="json", exclude_defaults=True) for row in chosen.decisions]
        return JSONResponse(
            {"run": desk.decide(chosen.request, _reviewer(request, chosen.reviewer), chosen.note, rows)}
        )

    @router.post("/undo")
    def undo(undone: Undone, request: Request) -> Response:
        desk.undo(undone.request, _reviewer(request, undone.reviewer), undone.sent.choice)
        return JSONResponse({})

    @router.post("/ask")
    def ask(asking: Asking, request: Request) -> Response:
        return JSONResponse({"held": desk.ask_for_cards(asking.page, _user(request) or asking.reviewer)})

    @router.post("/release")
    def release(closed: Closed) -> Response:
        desk.release(closed.page, closed.given_up)
        return Response(status_code=204)

    @router.post("/search")
    def search(asked: SearchedWords) -> Response:
        return JSONResponse({"hits": lookup.by_words(asked.words)})

    @router.post("/subject")
    def subject(named: NamedSubject) -> Response:
        return JSONResponse(lookup.by_id(named.vod, named.id))

    @router.get("/picture/{kind}/{number}")
    def picture(kind: str, number: int) -> Response:
        if not 0 < number <= LARGEST_ID:
            raise NoPicture("没有这个编号")
        found = pictures.of(kind, number)
        # Sandboxed: opened by itself it runs no script, whatever its content is.
        headers = {"Cache-Control": f"private, max-age={_WEEK}", "Content-Security-Policy": "sandbox"}
        return Response(found.body, media_type=found.media_type, headers=headers)

    return router


def _user(request: Request) -> str:
    """Return the logged-in user, as set by the service; empty if unknown."""
    return str(getattr(request.state, "user", ""))[:MOST_REVIEWER]


def _reviewer(request: Request, given: str) -> str:
    name = (_user(request) or given).strip()
    if not name:
        raise HTTPException(422, "请先填写审核员")
    return name
