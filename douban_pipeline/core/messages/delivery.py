"""One POST within a wall-clock limit. Its errors say whether the message may have been delivered."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx

from douban_pipeline.core.deadline import Deadline
from douban_pipeline.core.messages.types import DeliveryError

DEADLINE_SECONDS = 10.0
"""Wall-clock limit of one call, in seconds: senders wait for it."""
_MOST_ANSWER = 64 * 1024
_LOOPBACK = ("all://127.0.0.1", "all://localhost", "all://[::1]")

# httpx logs the full address of every call.
logging.getLogger("httpx").setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class DeliveryRequest:
    """One request. The address is a secret and is excluded from ``repr``."""

    url: str = field(repr=False)
    content: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False, default_factory=dict)
    query: Mapping[str, str] = field(repr=False, default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeliveryAnswer:
    """An HTTP answer."""

    status: int
    body: bytes
    retry_after: float | None = None


def post(request: DeliveryRequest, seconds: float = DEADLINE_SECONDS) -> DeliveryAnswer:
    """Send a request once and return the whole answer; no redirect is followed.

    Raises:
        DeliveryError: No complete answer came in time. The outcome is uncertain once writing the request began. The
            error is not chained to the library's, which may contain the address.
    """
    body = bytearray()
    began = False
    with Deadline(seconds) as deadline:

        def trace(event: str, info: Mapping[str, Any]) -> None:
            nonlocal began
            began = began or event.endswith("send_request_headers.started")
            deadline.trace(event, info)

        try:
            target = httpx.URL(request.url)
            target = target.copy_merge_params(request.query) if request.query else target
            with (
                httpx.Client(timeout=seconds, mounts=dict.fromkeys(_LOOPBACK), verify=_trust()) as client,
                client.stream(
                    "POST", target, headers=request.headers, content=request.content, extensions={"trace": trace}
                ) as response,
            ):
                for chunk in response.iter_bytes():
                    body += chunk
                    if deadline.passed or len(body) > _MOST_ANSWER:
                        break
                if not deadline.passed:
                    return DeliveryAnswer(response.status_code, bytes(body), _retry_after(response.headers))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            if not deadline.passed:
                what = "没有按时回答" if isinstance(error, httpx.TimeoutException) else "连接不上"
                what = "连接中断" if began and what == "连接不上" else what
                raise DeliveryError(f"{what}（{type(error).__name__}）", reached=False, uncertain=began) from None
    raise DeliveryError(f"{seconds:g} 秒内没有完整的回答", reached=False, uncertain=began)


def refuse_status(answer: DeliveryAnswer) -> None:
    """Raise unless the answer's status is a success.

    After a gateway's 5xx it is unknown whether the message arrived; 503 means that it was not processed.

    Raises:
        DeliveryError: The status is not a success.
    """
    if 200 <= answer.status < 300:
        return
    why = "（不跟随跳转）" if 300 <= answer.status < 400 else ""
    raise DeliveryError(
        f"HTTP {answer.status}{why}",
        reached=True,
        uncertain=answer.status >= 500 and answer.status != 503,
        retry_after=answer.retry_after,
    )


@cache
def _trust() -> ssl.SSLContext:
    """Return the trusted certificates, loaded once: loading takes longer than a call."""
    return httpx.create_ssl_context()


def _retry_after(headers: httpx.Headers) -> float | None:
    try:
        return float(headers.get("Retry-After", ""))
    except ValueError:
        return None
