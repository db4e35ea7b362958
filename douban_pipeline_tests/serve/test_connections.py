"""How much a client may send, on a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from fastapi import APIRouter, Request
from pydantic import BaseModel

from douban_pipeline.core.mounts import Mount
from douban_pipeline.serve.app import create_app
from douban_pipeline.serve.middleware import MOST_BODY
from douban_pipeline.serve.settings import ServeSettings
from douban_pipeline_tests.serve.test_serving import listening


class Said(BaseModel):
    """A body as the systems' paths take it."""

    text: str


@contextmanager
def service() -> Iterator[tuple[str, list[int]]]:
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

    mounts = [Mount("take", router, public=["/take"])]
    with listening(create_app(ServeSettings(_env_file=None), mounts)) as base:
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
