"""The callback of WebSub hubs, at ``/feeds/websub/TOKEN``; hubs authenticate by the token and their signature."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from douban_pipeline.feeds import websub
from douban_pipeline.feeds.services import FeedsServices


def websub_router(services: FeedsServices) -> APIRouter:
    """Return the routes by which hubs verify subscriptions and push."""
    router = APIRouter()

    @router.get("/{token}", include_in_schema=False)
    def verify(token: str, request: Request) -> Response:
        challenge = websub.verify(services, token, dict(request.query_params))
        if challenge is None:
            return Response("no such subscription was asked for", status_code=404, media_type="text/plain")
        # As plain text, whatever a hub sends: it is shown to nobody.
        return Response(challenge, media_type="text/plain")

    @router.post("/{token}", include_in_schema=False)
    async def push(token: str, request: Request) -> Response:
        body, kind = await request.body(), request.headers.get("content-type", "")
        signature = request.headers.get("x-hub-signature", "")
        known = await run_in_threadpool(websub.receive, services, token, body, kind, signature)
        # 410 ends the subscription at the hub (section 7); a wrong signature is answered like a right one.
        return Response(status_code=202 if known else 410)

    return router
