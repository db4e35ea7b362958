"""One HTTP exchange with an outside source: bounded in time and size, following redirects, checking each address."""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any
from urllib.parse import urljoin

import httpx

from douban_pipeline.core.deadline import Deadline
from douban_pipeline.core.errors import SourceSilent, SourceUnavailable
from douban_pipeline.core.http_answers import Admit, HttpExchange, HttpRequest
from douban_pipeline.core.payload import AnswerRules

USER_AGENT = "Mozilla/5.0 (compatible; douban_pipeline)"
MAX_BYTES = 8 * 1024 * 1024
MAX_REDIRECTS = 3
Hop = Callable[[httpx.URL], AbstractContextManager[object]]
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PERMANENT = frozenset({301, 308})
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

# httpx logs the full address of every call, and an address may contain a key.
logging.getLogger("httpx").setLevel(logging.WARNING)


class Transport:
    """Sends requests to one source. Safe to share between threads. Loopback is never reached through a proxy.

    Args:
        source: Name of the source, for errors.
        rules: What the answers of this source mean; some redirects are answers.
        headers: Extra request headers. They may hold a secret: only the requested host gets them, and no error shows
            them.
        admit: Check that refuses addresses; all are allowed without it.
        timeout: Seconds for connecting and for each read.
        deadline: Seconds an exchange may take in total, with its redirects, however slowly the source sends.
        max_bytes: Largest answer, uncompressed.
        keep_alive: Connections kept open between calls. On a reused connection ``deadline`` counts from the headers of
            the answer, and ``timeout`` applies before.
        hop: Admits a redirect to another host, whose address it is called with, and lasts while that host is asked;
            None admits every one. The time in which it waits does not count for ``deadline``.
    """

    def __init__(
        self,
        source: str,
        rules: AnswerRules,
        headers: Mapping[str, str],
        admit: Admit | None,
        *,
        timeout: float,
        deadline: float,
        max_bytes: int,
        keep_alive: int,
        hop: Hop | None = None,
    ) -> None:
        self.source = source
        self._rules = rules
        self._headers = headers
        self._admit = admit
        self._hop = hop
        self._deadline = deadline
        self._max_bytes = max_bytes
        self._client = httpx.Client(
            timeout=timeout,
            headers={"User-Agent": USER_AGENT, "Accept": "application/json, */*;q=0.5"},
            # By default each call opens a new connection: calls are seconds apart.
            limits=httpx.Limits(max_keepalive_connections=keep_alive),
            mounts={f"all://{host}": None for host in _LOOPBACK},
            verify=_tls(),
        )

    @property
    def closed(self) -> bool:
        """Whether the transport is closed."""
        return self._client.is_closed

    def close(self) -> None:
        """Close all connections; a second call does nothing."""
        self._client.close()

    def send(self, request: HttpRequest) -> HttpExchange:
        """Send a request once and return the answer, whatever its status; redirects of a GET are followed.

        Raises:
            SourceUnavailable: No complete answer came in time, or the address is unusable or not admitted.
        """
        target = request.url
        moved_to, for_good = "", True
        left = self._deadline
        try:
            for _ in range(MAX_REDIRECTS + 1):
                with self._at(request.url, target):
                    began = time.monotonic()
                    with Deadline(max(left, 0.001)) as deadline:
                        status, headers, body = self._call(request, target, deadline)
                    left -= time.monotonic() - began
                location = headers.get("location", "")
                if status not in _REDIRECTS or not location:
                    return HttpExchange(status, headers, body, moved_to)
                next_url = urljoin(str(target), location)
                self._rules.refuse_redirect(self.source, next_url)
                if request.content is not None:
                    return HttpExchange(status, headers, body)
                for_good = for_good and status in _PERMANENT
                target = httpx.URL(next_url)
                if for_good:
                    moved_to = str(target)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, ValueError) as error:
            raise unusable(self.source, error) from None
        raise SourceUnavailable(self.source, f"more than {MAX_REDIRECTS} redirects")

    def _at(self, requested: httpx.URL, target: httpx.URL) -> AbstractContextManager[object]:
        """Return what lasts while a hop's host is asked: nothing for the requested host."""
        if self._hop is None or (target.host, target.port) == (requested.host, requested.port):
            return nullcontext()
        return self._hop(target)

    def _call(self, request: HttpRequest, url: httpx.URL, deadline: Deadline) -> tuple[int, httpx.Headers, bytes]:
        # A redirect may lead to any host; our headers are meant for the requested host alone.
        headers = {} if _origin(url) != _origin(request.url) else {**self._headers, **(request.headers or {})}
        if request.content is not None:
            headers = {"Content-Type": request.content_type, **headers}
        body = bytearray()
        try:
            if self._admit is not None:
                self._admit(url, None)
            trace = self._watched(url, deadline)
            with self._client.stream(
                request.method, url, content=request.content, headers=headers, extensions={"trace": trace}
            ) as response:
                deadline.watch(response.extensions["network_stream"])
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > self._max_bytes:
                        raise SourceUnavailable(self.source, f"an answer larger than {self._max_bytes} bytes")
                    if deadline.passed:
                        break
            if not deadline.passed:
                return response.status_code, response.headers, bytes(body)
        except httpx.DecodingError as error:
            raise SourceUnavailable(self.source, "an answer that cannot be decompressed") from error
        except (httpx.UnsupportedProtocol, httpx.LocalProtocolError):
            raise
        except httpx.TransportError as error:
            if not deadline.passed:
                kind = type(error).__name__
                what = "no answer in time" if isinstance(error, httpx.TimeoutException) else "no connection"
                raise SourceSilent(self.source, f"{what} ({kind})", retryable=True) from error
        raise SourceSilent(self.source, f"no complete answer within {self._deadline:g} s")

    def _watched(self, url: httpx.URL, deadline: Deadline) -> Callable[[str, Mapping[str, Any]], None]:
        """Return the tracer of a call: it sets the deadline's socket and checks the peer before anything is sent."""
        admit = self._admit
        if admit is None:
            return deadline.trace

        def trace(event: str, info: Mapping[str, Any]) -> None:
            deadline.trace(event, info)
            if event.endswith(".connect_tcp.complete"):
                peer = info["return_value"].get_extra_info("server_addr")
                admit(url, str(peer[0]) if peer else "")

        return trace


def unusable(source: str, error: Exception) -> SourceUnavailable:
    """Return the error for an unusable address or key, without httpx's own message, which quotes it."""
    return SourceUnavailable(source, f"an unusable address or key ({type(error).__name__})")


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


@cache
def _tls() -> ssl.SSLContext:
    """Return the process's TLS context, created once: loading the certificates takes longer than many a call."""
    return httpx.create_ssl_context()
