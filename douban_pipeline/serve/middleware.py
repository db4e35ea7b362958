"""What a request passes before any system reads it: whose it is behind a proxy, from which site, how large it is."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Mapping, Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from douban_pipeline.core.settings_base import is_loopback
from douban_pipeline.serve.settings import Network

logger = logging.getLogger(__name__)

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Forwarding:
    """Takes the client's address, the scheme and the user from the headers of named proxies alone.

    The address is the last one in ``X-Forwarded-For`` that is not itself a named proxy's: what stands before it was
    written by somebody else. Starlette's and uvicorn's own treatment is not used, which trusts 127.0.0.1 unasked.

    Args:
        app: The application.
        proxies: Addresses and networks of the proxies; without any, the peer is the client, even on loopback.
        user_header: Header with the user, removed from requests that come from elsewhere; empty for none.
    """

    def __init__(self, app: ASGIApp, proxies: Sequence[Network], user_header: str = "") -> None:
        self._app, self._proxies = app, proxies
        self._user_header = user_header.lower().encode()
        self._warned = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "http":
            peer = _parsed(scope["client"][0]) if scope.get("client") else None
            if peer is not None and self._names(peer):
                self._believe(scope, peer)
            else:
                self._disbelieve(scope, peer)
        await self._app(scope, receive, send)

    def _believe(self, scope: Scope, peer: _Address) -> None:
        client = peer
        for part in reversed(_values(scope, b"x-forwarded-for")):
            found = _parsed(part)
            if found is None:
                break
            client = found
            if not self._names(found):
                break
        scope["client"] = (str(client), scope["client"][1] if client == peer else 0)
        scheme = _values(scope, b"x-forwarded-proto")
        if scheme and scheme[-1] in ("http", "https"):
            scope["scheme"] = scheme[-1]

    def _disbelieve(self, scope: Scope, peer: _Address | None) -> None:
        if self._user_header:
            scope["headers"] = [pair for pair in scope["headers"] if pair[0] != self._user_header]
        if not self._warned and (_values(scope, b"x-forwarded-for") or _passes_on(scope, peer)):
            self._warned = True
            logger.warning(
                "%s passes on requests of others and is not believed: if it is your proxy, have it send "
                "X-Forwarded-For and name it in DOUBAN_PIPELINE_SERVE_PROXIES; until then all its visitors are counted "
                "as one address",
                peer,
            )

    def _names(self, address: _Address) -> bool:
        return any(address in network for network in self._proxies)


def _passes_on(scope: Scope, peer: _Address | None) -> bool:
    """Return whether something on this machine asks for a name that is not this machine's."""
    host = Headers(scope=scope).get("host", "")
    return peer is not None and peer.is_loopback and bool(host) and not is_loopback(f"http://{host}")


def _values(scope: Scope, name: bytes) -> list[str]:
    text = ",".join(value.decode("latin1") for given, value in scope["headers"] if given == name)
    return [part.strip() for part in text.split(",") if part.strip()]


def _parsed(text: str) -> _Address | None:
    """Return an address, with or without a port; of IPv4 in either form. None for anything else."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


MOST_BODY = 1024 * 1024
"""Bytes of a request's body: the largest that a page of ours sends, 2,000 videos of a review sheet, is 50 KB, and no
system takes files over HTTP. What programs send to a mount may have another limit, `Mount.most_body`."""


class _TooLargeError(Exception):
    """More was sent than a body may have."""


class BodyLimit:
    """Refuses requests with bodies above `MOST_BODY`: by the header before a byte is read, or as soon as more is read.

    Args:
        app: The application.
        most: Maximum number of bytes.
        other: Maximum numbers of bytes by the prefix of a path.
    """

    def __init__(self, app: ASGIApp, most: int = MOST_BODY, other: Mapping[str, int] | None = None) -> None:
        self._app, self._most, self._other = app, most, other or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        prefixes = (prefix for prefix in self._other if scope["path"].startswith(f"{prefix}/"))
        most = max((self._other[prefix] for prefix in prefixes), default=self._most)
        lengths = [value for name, value in scope["headers"] if name == b"content-length"]
        if any(not length.isdigit() or int(length[:20]) > most for length in lengths):
            await _refusal(most)(scope, receive, send)
            return
        read, begun, refused = 0, False, False

        async def receive_counted() -> Message:
            nonlocal read, refused
            message = await receive()
            read += len(message.get("body", b""))
            if read > most:
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
            await _refusal(most)(scope, receive, send)


def _refusal(most: int) -> JSONResponse:
    return JSONResponse({"detail": f"请求正文超过 {most} 字节"}, 413)


_METHODS = "GET, POST, PUT, PATCH, DELETE"
_HEADERS = "authorization, content-type, idempotency-key, if-none-match"
_PREFLIGHT_SECONDS = "600"


class CrossOrigin:
    """Answers preflights of pages of listed sites, and lets them read answers of public paths (CORS).

    Pages of other sites get no header, so that browsers neither send their JSON nor show them an answer. Starlette's
    own middleware is not used, which holds for all paths of an application.

    Args:
        app: The application.
        paths: Prefixes of paths with the origins that may call them.
    """

    def __init__(self, app: ASGIApp, paths: Mapping[str, frozenset[str]]) -> None:
        self._app = app
        self._paths = {prefix: origins for prefix, origins in paths.items() if origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        allowed = self._allowed(scope) if scope["type"] == "http" and self._paths else None
        if allowed is None:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin", "")
        known = origin.casefold() in allowed
        if known and scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            granted = {
                "Access-Control-Allow-Methods": _METHODS,
                "Access-Control-Allow-Headers": _HEADERS,
                "Access-Control-Max-Age": _PREFLIGHT_SECONDS,
                **_granted(origin),
            }
            await Response(status_code=204, headers=granted)(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                answer.add_vary_header("Origin")
                for name, value in (_granted(origin) if known else {}).items():
                    answer[name] = value
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def _allowed(self, scope: Scope) -> frozenset[str] | None:
        path: str = scope["path"]
        return next((origins for prefix, origins in self._paths.items() if path.startswith(prefix)), None)


def _granted(origin: str) -> dict[str, str]:
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Credentials": "true",
        "Access-Control-Expose-Headers": "ETag, Retry-After",
        "Vary": "Origin",
    }
