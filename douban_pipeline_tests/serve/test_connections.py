"""What a client may send: how much, and for how long. On a real socket, with short limits."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import httpx
import pytest
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel
from starlette.types import Receive, Scope, Send

from douban_pipeline.core.mounts import Mount
from douban_pipeline.serve.app import create_app
from douban_pipeline.serve.connections import ConnectionLimits
from douban_pipeline.serve.middleware import MOST_BODY
from douban_pipeline.serve.settings import ServeSettings
from douban_pipeline_tests.serve.test_serving import listening

SHORT = ConnectionLimits(headers=0.5, body=0.5, rest=0.5, stalled=0.5)
_ROUNDS, _PAUSE = 100, 0.1
"""Ten seconds, twenty times the limits above: a crowded machine takes its time."""


class Said(BaseModel):
    """A body as the systems' paths take it."""

    text: str


class Much(Response):
    """An answer of 64 MB, in pieces that wait until the client has taken those before; notes -1 when it is done."""

    def __init__(self, ended: list[int]) -> None:
        super().__init__()
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(1000):
            await send({"type": "http.response.body", "body": bytes(65_536), "more_body": True})
        await send({"type": "http.response.body"})
        self._ended.append(-1)


@contextmanager
def service(limits: ConnectionLimits | None = None) -> Iterator[tuple[str, list[int]]]:
    """Yield the address of a service, and the sizes of the bodies that it read."""
    router, read = APIRouter(), []

    @router.post("/take/json")
    def take(body: Said) -> str:
        read.append(len(body.text))
        return "taken"

    @router.post("/take/stream")
    async def stream(request: Request) -> str:
        size = 0
        async for chunk in request.stream():
            size += len(chunk)
        read.append(size)
        return "taken"

    @router.get("/take/much")
    def much() -> Much:
        return Much(read)

    @router.get("/take/pause")
    async def pause() -> None:
        await asyncio.sleep(_PAUSE)

    mounts = [Mount("take", router, public=["/take"])]
    with listening(create_app(ServeSettings(_env_file=None), mounts), limits=limits) as base:
        yield base, read


def sent(size: int) -> Iterator[bytes]:
    """Yield a JSON body of so many bytes in pieces, so that it is sent chunked."""
    yield b'{"text": "'
    left = size - len('{"text": ""}')
    while left > 0:
        yield b"x" * min(left, 65_536)
        left -= 65_536
    yield b'"}'


@pytest.mark.parametrize("path", ["/take/json", "/take/stream"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_may_be_a_megabyte(path: str, chunked: bool) -> None:
    with service() as (base, read), httpx.Client(base_url=base, headers={"Content-Type": "application/json"}) as client:

        def post(size: int) -> httpx.Response:
            return client.post(path, content=sent(size) if chunked else b"".join(sent(size)))

        assert post(MOST_BODY).status_code == 200
        for size in (MOST_BODY + 1, 20 * MOST_BODY):
            refused = post(size)
            assert (refused.status_code, "请求正文超过" in refused.json()["detail"]) == (413, True)
            assert refused.headers["x-frame-options"] == "DENY"
        assert len(read) == 1, "no system saw the others"
        assert post(100).status_code == 200


@contextmanager
def connection(base: str) -> Iterator[socket.socket]:
    host, _, port = base.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=_PAUSE) as opened:
        yield opened


def is_closed(opened: socket.socket, trickle: bytes = b"") -> bool:
    """Return whether the server closes a connection although a byte is sent to it again and again."""
    for _ in range(_ROUNDS):
        try:
            if trickle:
                opened.sendall(trickle)
            while opened.recv(65_536):
                pass
        except TimeoutError:
            continue
        except OSError:
            pass
        return True
    return False


HEAD = b"POST /take/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.mark.parametrize(
    ("begun", "trickle"),
    [
        (b"", b""),
        (b"GET / HT", b""),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: ", b"x"),
        (HEAD + b"Content-Length: 100000\r\n\r\n", b"x"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (HEAD + b"Content-Length: 0\r\n\r\nGET / HTTP/1.1\r\nX-Long: ", b"x"),
        (b"POST /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n", b"x"),
    ],
    ids=["silence", "half a line", "headers", "body", "chunks", "a second request", "a body that nobody reads"],
)
def test_who_sends_a_byte_now_and_then_is_gone_within_the_limit(begun: bytes, trickle: bytes) -> None:
    with service(SHORT) as (base, _), connection(base) as slow:
        slow.sendall(begun)
        assert is_closed(slow, trickle)


def test_who_does_not_read_the_answer_is_gone() -> None:
    with service(SHORT) as (base, ended), connection(base) as deaf, httpx.Client(base_url=base) as other:
        deaf.sendall(b"GET /take/much HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        for _ in range(_ROUNDS):
            assert other.get("/take/pause", timeout=30).status_code == 200
            if ended:
                break
        assert ended == [-1], "the answer is given up"
        assert is_closed(deaf)


def test_others_are_answered_while_many_are_slow() -> None:
    with service(ConnectionLimits(headers=60, body=60)) as (base, _), ExitStack() as stack:
        slow: Sequence[socket.socket] = [stack.enter_context(connection(base)) for _ in range(100)]
        for number, each in enumerate(slow):
            each.sendall(HEAD + (b"Content-Length: 9\r\n\r\nx" if number % 2 else b""))
        assert httpx.post(f"{base}/take/json", json={"text": "x"}, timeout=30).status_code == 200
