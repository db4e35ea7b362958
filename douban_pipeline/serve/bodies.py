"""A limit on the bodies of requests, before any system reads them."""

from __future__ import annotations

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BODY = 1024 * 1024
"""Bytes of a request's body, for every path: the largest that a page of ours sends, 2,000 videos of a review sheet, is
50 KB, and no system takes files over HTTP."""


class _TooLargeError(Exception):
    """More was sent than a body may have."""


class BodyLimit:
    """Refuses requests with bodies above `MOST_BODY`: by the header before a byte is read, or as soon as more is read.

    Args:
        app: The application.
        most: Maximum number of bytes.
    """

    def __init__(self, app: ASGIApp, most: int = MOST_BODY) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        lengths = [value for name, value in scope["headers"] if name == b"content-length"]
        if any(not length.isdigit() or int(length[:20]) > self._most for length in lengths):
            await self._refusal()(scope, receive, send)
            return
        read, begun, refused = 0, False, False

        async def receive_counted() -> Message:
            nonlocal read, refused
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._most:
                refused = True
                raise _TooLargeError
            return message

        async def send_unless_refused(message: Message) -> None:
            nonlocal begun
            if refused and not begun:  # what a system makes of the interruption
                return
            begun = True
            await send(message)

        try:
            await self._app(scope, receive_counted, send_unless_refused)
        except Exception:
            if not refused:
                raise
        if refused and not begun:
            await self._refusal()(scope, receive, send)

    def _refusal(self) -> JSONResponse:
        return JSONResponse({"detail": f"请求正文超过 {self._most} 字节"}, 413)
