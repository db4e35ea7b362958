"""The callback of WebSub hubs, at ``/feeds/websub/TOKEN``; hubs authenticate by the token and their signature."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from douban_pipeline.core.mounts import Mount
from douban_pipeline.feeds import websub
from douban_pipeline.feeds.services import MAX_BODY_BYTES, FeedsServices


def hubs_mount(services: FeedsServices) -> Mount:
    """Return the callback as a part of the service: a push may be as large as what a poll fetches."""
    router, path = websub_router(services), websub.PATH
    return Mount("feeds hubs", router, prefix=path, public=[path], most_body=MAX_BODY_BYTES)


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
        kind, signature = request.headers.get("content-type", ""), request.headers.get("x-hub-signature", "")
        # Nothing is read of who has no subscription's token: a body may have some megabytes.
        known = await run_in_threadpool(websub.subscription_of, services, token) is not None
        if known:
            body = await request.body()
            known = await run_in_threadpool(websub.receive, services, token, body, kind, signature)
        # 410 ends the subscription at the hub (section 7); a wrong signature is answered like a right one.
        return Response(status_code=202 if known else 410)

    return router
